// CommandLine: the options of ddprun-rdzvd. CLI11 splits them and prints the help; values and
// refusals are ours. Thread rule: one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <deque>
#include <string>
#include <vector>

#include "rendezvous/coordinator/daemon.hpp"

namespace ddprun::coordinator {

/// A mistake on the command line, for the user.
struct UsageError {
  std::string sentence;
};

class CommandLine {
 public:
  CommandLine();
  /// Throws UsageError, and CLI::CallForHelp or CallForVersion if the user asks for that.
  void parse(int argc, char** argv);
  /// After parse().
  [[nodiscard]] const DaemonOptions& options() const { return options_; }
  [[nodiscard]] std::string help() const { return app_.help(); }

  /// For the manual.
  struct Described {
    std::string spelling;  // "--port PORT"
    std::string text;      // with the default
  };
  [[nodiscard]] std::vector<Described> described_options() const;
  [[nodiscard]] std::string description() const { return app_.get_description(); }

 private:
  /// An option whose value is a number, as the command line has it.
  struct Number {
    std::string flag;
    std::size_t* limit;
    std::string text;
  };

  void add_limit(const char* flag, std::size_t& limit, const char* help);
  static void read_limit(const Number& option);
  void read_certificates();
  void refuse_unknown() const;

  DaemonOptions options_;
  Certificates certificates_;
  std::string status_{kStatusPreset};
  std::string state_file_;
  std::string port_ = std::to_string(options_.port);
  std::deque<Number> limits_;  // CLI11 keeps references to the texts
  CLI::App app_;
};

}  // namespace ddprun::coordinator
