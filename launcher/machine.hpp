// Machine: the facts about this computer that a command line needs, asked only when they matter.
// Tests give their own. Thread rule: the one thread of the launcher.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "base/result.hpp"

namespace ddprun {

/// What a file says about how to run it.
enum class FileKind {
  kMissing,
  kPythonScript,  // "#!" names a Python
  kProgram,       // executable, and ELF or "#!" of something else
  kOther,         // anything else: a directory, an archive, a text
};

/// What a host's name or address literal means on this machine.
struct Whereabouts {
  enum class Place { kHere, kElsewhere, kUnknown };  // kUnknown: the name does not resolve (yet)
  Place place = Place::kUnknown;
  std::string literal;  // kHere: an own address, not a loopback one where there is a choice
};

class Machine {
 public:
  virtual ~Machine() = default;

  [[nodiscard]] virtual const Environment& environment() const = 0;
  [[nodiscard]] virtual std::string working_directory() const = 0;
  [[nodiscard]] virtual FileKind inspect(const std::string& path) const = 0;
  /// An existing path that is not a directory.
  [[nodiscard]] virtual bool is_plain_file(const std::string& path) const = 0;
  /// CPUs that this process may use; at least 1.
  [[nodiscard]] virtual int count_cpus() const = 0;
  /// GPUs that a worker would see.
  [[nodiscard]] virtual int count_gpus() const = 0;
  /// The literal of an address of this machine that `host` (a name or a literal) stands for. An
  /// error when it does not resolve, or belongs to another machine.
  [[nodiscard]] virtual Result<std::string> own_address(const std::string& host) const = 0;
  /// The same question where each answer is a good one.
  [[nodiscard]] virtual Whereabouts locate(const std::string& host) const = 0;
  /// What this machine calls itself, with or without its domain.
  [[nodiscard]] virtual std::string host_name() const = 0;
  /// A shell with a terminal started this process, or something that such a shell started.
  [[nodiscard]] virtual bool is_in_shell() const = 0;
  /// A fresh random UUID (version 4).
  [[nodiscard]] virtual std::string random_id() const = 0;
};

}  // namespace ddprun
