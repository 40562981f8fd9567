// Machine: the facts about this machine that a command line needs, queried only when required.
// Tests provide their own. Thread rule: the launcher's thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/devices/devices.hpp"
#include "agent/proc/numa.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"

namespace ddprun {

// A file in which the nodes of a run agree on a line: that of the first one to write. It may be on
// a file system that they share, and serve several runs, one after another or together. Thread
// rule: any; other processes write it at the same time.

inline constexpr std::chrono::milliseconds kLockMax = std::chrono::seconds(10);

enum class Agree {
  kWrite,
  kLook,  // leaves the file as it is: empty where no line stands there
};

/// The line of `key` in the file: `line`, unless there is another one already. The file is created
/// where it is missing. kLook has the same errors. Neither has a line end, and `key` no blank.
/// Errors: kUsage with a sentence that names the path, for what cannot be opened, written or locked
/// in time, and for the file of another program, or of another user where all may write.
[[nodiscard]] Result<std::string> agree_on_line(const std::string& path, const std::string& key,
                                                const std::string& line,
                                                Agree agree = Agree::kWrite,
                                                std::chrono::milliseconds lock_max = kLockMax);

/// How to run a file, according to its contents.
enum class FileKind {
  kMissing,
  kPythonScript,   // "#!" names a Python
  kProgram,        // executable, and ELF or "#!" of something else
  kNotExecutable,  // the same without the permission to execute it
  kOther,          // anything else: a directory, an archive, a text
};

/// What a host name or address literal refers to on this machine.
struct Whereabouts {
  enum class Place { kHere, kElsewhere, kUnknown };  // kUnknown: the name does not resolve (yet)
  Place place = Place::kUnknown;
  std::string literal;                // kHere: an own address, preferably not loopback
  std::vector<std::string> others{};  // kHere: addresses of that name that this machine lacks
};

class Machine {
 public:
  virtual ~Machine() = default;

  [[nodiscard]] virtual const Environment& environment() const = 0;
  [[nodiscard]] virtual std::string working_directory() const = 0;
  /// Where this program's file lies, links resolved; empty if the kernel does not say.
  [[nodiscard]] virtual std::string program_folder() const = 0;
  [[nodiscard]] virtual FileKind inspect(const std::string& path) const = 0;
  /// An existing path that is not a directory.
  [[nodiscard]] virtual bool is_plain_file(const std::string& path) const = 0;
  /// CPUs that this process may use; at least 1.
  [[nodiscard]] virtual int count_cpus() const = 0;
  /// GPUs that a worker would see.
  [[nodiscard]] virtual int count_gpus() const = 0;
  /// The devices that --gpus chooses from.
  [[nodiscard]] virtual std::vector<GpuDevice> choosable_gpus() const = 0;
  /// The CPUs whose time the cgroups of this process allow; none: no limit.
  [[nodiscard]] virtual std::optional<double> cpu_quota() const = 0;
  /// PCI addresses of the Intel GPUs (XPUs) that a worker would see, "" where one is unknown. The
  /// error names the variable that cannot be followed, no option.
  [[nodiscard]] virtual Result<std::vector<std::string>> xpus() const = 0;
  /// The CPUs near the device of each of `workers`. `devices`: their PCI addresses; empty: those
  /// that are visible. The error names no option.
  [[nodiscard]] virtual Result<std::vector<CpuSet>> numa_cpus(
      NumaMode mode, const std::vector<std::string>& devices, int workers) const = 0;
  /// What `host` (a name or a literal) refers to. May block in the resolver.
  [[nodiscard]] virtual Whereabouts locate(const std::string& host) const = 0;
  /// agree_on_line().
  [[nodiscard]] virtual Result<std::string> agreed_line(const std::string& path,
                                                        const std::string& key,
                                                        const std::string& line,
                                                        Agree agree) const = 0;
  /// read_secret() of base/secret.hpp; a credential of munge is opened.
  [[nodiscard]] virtual Result<SharedSecret> secret_in(const std::string& path,
                                                       const std::string& shown) const = 0;
  /// What DDPRUN_SECRET said when this process began; null: it was unset.
  [[nodiscard]] virtual Result<SharedSecret> secret_of_variable() const = 0;
  /// read_home_secret().
  [[nodiscard]] virtual Result<SharedSecret> secret_at_home() const = 0;
  /// As gethostname() reports it, with or without a domain; empty if it fails.
  [[nodiscard]] virtual std::string host_name() const = 0;
  /// Whether the user started ddprun in a shell: it has a terminal and does not lead its session.
  [[nodiscard]] virtual bool is_in_shell() const = 0;
  /// A new random UUID (version 4).
  [[nodiscard]] virtual std::string random_id() const = 0;
};

// The secret of a user in the home directory, which runs over several nodes take by themselves:
// with a home that all nodes share they are closed without an option. Thread rule: the launcher's
// thread.

/// What --rdzv-secret-file takes in its place: no secret, whatever is at home.
inline constexpr std::string_view kNoSecret = "off";

/// `$XDG_CONFIG_HOME/ddprun/secret`, else `~/.config/ddprun/secret`; empty without a home.
[[nodiscard]] std::string home_secret_path(const Environment& environment);
/// Null: there is none. Fails as read_secret() does, also where other users may read it.
[[nodiscard]] Result<SharedSecret> read_home_secret(const Environment& environment);
/// Makes one, random, that no other user can read, in directories that no other user can enter.
/// Returns its path. Fails with kUsage if there is one, otherwise kSystem.
[[nodiscard]] Result<std::string> make_home_secret(const Environment& environment);

// Credentials of munge, which authenticates users in a cluster of Slurm: how a secret passes
// through what is not encrypted, as the input and the environment that srun brings to each node.
// libmunge is loaded when there is a credential. Thread rule: the launcher's thread, which waits
// for munged.

/// What the credential `given` contains, or `given` itself where it is none. `shown`: where it
/// comes from, for the sentence. Refuses one of another user, one that other users could open, and
/// one that is not encrypted (kUsage). Fails with kSystem where libmunge or munged is missing.
[[nodiscard]] Result<SharedSecret> open_credential(SharedSecret given, const std::string& shown);

// ThisMachine: the facts of the machine and process that ddprun runs on. Thread rule: the
// launcher's thread.

/// The process that the user started. The agent below it has a pid and a session of its own.
struct UserProcess {
  int pid = 0;
  bool in_shell = false;  // it has a terminal and does not lead its session
  int started = -1;  // a descriptor that gets the run id once all workers run (--detach); -1: none
  SharedSecret secret = nullptr;  // DDPRUN_SECRET; null: it was unset
  // --rdzv-secret-file=- beside --detach: what was read before standard input was closed.
  std::optional<Result<SharedSecret>> secret_line{};
};
[[nodiscard]] UserProcess this_process();

class ThisMachine : public Machine {
 public:
  explicit ThisMachine(Environment environment, UserProcess user = {})
      : environment_(std::move(environment)), user_(std::move(user)) {}

  [[nodiscard]] const Environment& environment() const override { return environment_; }
  [[nodiscard]] std::string working_directory() const override;
  [[nodiscard]] std::string program_folder() const override;
  [[nodiscard]] FileKind inspect(const std::string& path) const override;
  [[nodiscard]] bool is_plain_file(const std::string& path) const override;
  [[nodiscard]] int count_cpus() const override;
  [[nodiscard]] int count_gpus() const override;
  [[nodiscard]] std::vector<GpuDevice> choosable_gpus() const override;
  [[nodiscard]] std::optional<double> cpu_quota() const override;
  [[nodiscard]] Result<std::vector<std::string>> xpus() const override;
  [[nodiscard]] Result<std::vector<CpuSet>> numa_cpus(NumaMode mode,
                                                      const std::vector<std::string>& devices,
                                                      int workers) const override;
  /// These use the resolver only for names that are neither a literal nor "localhost".
  [[nodiscard]] Whereabouts locate(const std::string& host) const override;
  [[nodiscard]] Result<std::string> agreed_line(const std::string& path, const std::string& key,
                                                const std::string& line,
                                                Agree agree) const override;
  [[nodiscard]] Result<SharedSecret> secret_in(const std::string& path,
                                               const std::string& shown) const override;
  [[nodiscard]] Result<SharedSecret> secret_of_variable() const override;
  [[nodiscard]] Result<SharedSecret> secret_at_home() const override;
  [[nodiscard]] std::string host_name() const override;
  [[nodiscard]] bool is_in_shell() const override { return user_.in_shell; }
  [[nodiscard]] std::string random_id() const override;

 private:
  Environment environment_;
  UserProcess user_;
};

}  // namespace ddprun
