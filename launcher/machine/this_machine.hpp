// ThisMachine: the facts of the machine and process that ddprun runs on. Thread rule: the
// launcher's thread.
#pragma once

#include <optional>
#include <utility>

#include "launcher/machine/machine.hpp"

namespace ddprun {

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
