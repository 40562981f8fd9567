// A machine whose facts the test chooses, and helpers to read what a command line came to.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "launcher/configure.hpp"
#include "launcher/machine/machine.hpp"
#include "tests/launcher/outcome.hpp"

namespace ddprun::test {

class FakeMachine : public Machine {
 public:
  [[nodiscard]] const Environment& environment() const override { return variables; }
  [[nodiscard]] std::string working_directory() const override { return "/home/me"; }
  [[nodiscard]] std::string program_folder() const override { return folder; }
  [[nodiscard]] FileKind inspect(const std::string& path) const override {
    const auto found = files.find(path);
    return found == files.end() ? FileKind::kMissing : found->second;
  }
  [[nodiscard]] bool is_plain_file(const std::string& path) const override {
    return files.contains(path);
  }
  [[nodiscard]] int count_cpus() const override { return cpus; }
  [[nodiscard]] int count_gpus() const override { return gpus; }
  [[nodiscard]] Result<std::vector<std::string>> xpus() const override {
    if (xpu_count < 0) return Error{ErrorKind::kUsage, "ONEAPI_DEVICE_SELECTOR is odd"};
    return std::vector<std::string>(static_cast<std::size_t>(xpu_count));
  }
  [[nodiscard]] std::vector<GpuDevice> choosable_gpus() const override { return choosable; }
  [[nodiscard]] std::optional<double> cpu_quota() const override { return quota; }
  [[nodiscard]] Result<std::vector<CpuSet>> numa_cpus(NumaMode mode,
                                                      const std::vector<std::string>& devices,
                                                      int workers) const override {
    asked_near = devices;
    if (gpus == 0) return Error{ErrorKind::kUsage, "there is no device"};
    const int first = 10 * static_cast<int>(mode);
    std::vector<CpuSet> bound;
    for (int rank = 0; rank < workers; ++rank) bound.push_back({first + rank});
    return bound;
  }
  [[nodiscard]] Whereabouts locate(const std::string& host) const override {
    const auto found = addresses.find(host);
    if (found != addresses.end()) return {Whereabouts::Place::kHere, found->second};
    if (unresolved.contains(host)) return {Whereabouts::Place::kUnknown, ""};
    return {Whereabouts::Place::kElsewhere, ""};
  }
  [[nodiscard]] Result<std::string> agreed_line(const std::string& path, const std::string& key,
                                                const std::string& line,
                                                Agree agree) const override {
    const auto found = agreed.find(path + " " + key);
    if (agree == Agree::kLook) return found == agreed.end() ? "" : found->second;
    return agreed.emplace(path + " " + key, line).first->second;
  }
  [[nodiscard]] Result<SharedSecret> secret_in(const std::string& path,
                                               const std::string& shown) const override {
    const auto found = secrets.find(path);
    if (found != secrets.end()) return found->second;
    return Error{ErrorKind::kUsage, shown + ": cannot read it"};
  }
  [[nodiscard]] Result<SharedSecret> secret_of_variable() const override { return secret; }
  [[nodiscard]] Result<SharedSecret> secret_at_home() const override { return home_secret; }
  [[nodiscard]] std::string host_name() const override { return name; }
  [[nodiscard]] bool is_in_shell() const override { return in_shell; }
  [[nodiscard]] std::string random_id() const override {
    return "12345678-1234-4234-8234-123456789abc";
  }

  Environment variables;
  std::vector<GpuDevice> choosable;
  std::optional<double> quota;
  mutable std::vector<std::string> asked_near;  // the devices of numa_cpus()
  std::map<std::string, FileKind> files;
  std::map<std::string, SharedSecret> secrets{{"s", std::make_shared<Secret>()}};  // by path
  SharedSecret home_secret{};
  SharedSecret secret;  // DDPRUN_SECRET
  std::map<std::string, std::string> addresses{
      {"127.0.0.1", "127.0.0.1"}, {"localhost", "127.0.0.1"}, {"node-1", "10.0.0.1"}};
  std::set<std::string> unresolved;  // names that do not resolve yet; any other is elsewhere
  mutable std::map<std::string, std::string> agreed;  // lines by path and key
  std::string folder = "/usr/bin";                    // of ddprun
  std::string name = "node-1";
  int cpus = 8;
  int gpus = 0;
  int xpu_count = 0;  // -1: they cannot be counted
  bool in_shell = false;
};

inline FakeMachine with_variables(
    std::initializer_list<std::pair<const std::string, std::string>> variables) {
  FakeMachine machine;
  machine.variables.insert(variables.begin(), variables.end());
  return machine;
}

/// The launch of a command line that must be accepted.
inline Launch launch_of(const Words& words, const FakeMachine& machine = FakeMachine()) {
  const auto intent = value_of(configure(words, machine));
  REQUIRE(std::holds_alternative<Launch>(intent));
  return std::get<Launch>(intent);
}

inline LaunchConfig config_of(const Words& words, const FakeMachine& machine = FakeMachine()) {
  return launch_of(words, machine).config;
}

/// The error of a command line that must be refused.
inline Error refusal_of(const Words& words, const FakeMachine& machine = FakeMachine()) {
  return error_of(configure(words, machine));
}

}  // namespace ddprun::test
