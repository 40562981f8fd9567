// The options below "Other" in --help.
#include <algorithm>
#include <array>

#include "launcher/request/rows.hpp"

namespace ddprun {
namespace {

// Python's names for the levels at which torchrun's events are not shown.
bool is_above_info(const std::string& level) {
  constexpr std::array kLevels{"WARN", "WARNING", "ERROR", "FATAL", "CRITICAL"};
  return std::find(kLevels.begin(), kLevels.end(), level) != kLevels.end();
}

/// Whether torchrun's events are written to the console; as there, not with a LOGLEVEL above INFO.
/// dynamic_rendezvous is silent in torchrun, too, unless a program that imports it replaces the
/// handler.
Result<bool> read_events(const Given& given) {
  if (given.text == "console") {
    return !is_above_info(value_or(given.environment, "LOGLEVEL", "INFO"));
  }
  if (given.text == "null" || given.text == "dynamic_rendezvous") return false;
  return usage(given.shown() + ": no such handler; null, console and dynamic_rendezvous work");
}

/// TORCHELASTIC_HEALTH_CHECK_PORT on the wildcard address; as in torchrun a value that is not a
/// port is ignored.
void take_health_port(const Given& given, Request& request) {
  const std::string variable(spec_of(given.id).fallback);
  const std::string value = value_or(given.environment, variable, "");
  const auto port = parse_port(value);
  if (port && *port != 0) {
    request.http = HttpConfig{"", *port, HttpConfig::Origin::kVariable};
  } else if (!value.empty()) {
    request.notes.push_back(variable + "='" + value +
                            "' is not a port from 1 to 65535: ignored, there is no health check "
                            "here");
  }
}

Result<void> take_http(const Given& given, Request& request) {
  if (given.text.empty()) {
    take_health_port(given, request);
    return {};
  }
  const auto endpoint = parse_endpoint(given.text, given.name);
  if (!endpoint) return endpoint.error();
  const bool is_address = is_address_literal(endpoint->host) || endpoint->host == "localhost";
  if (!is_address || !endpoint->port) {
    return usage(given.quoted() +
                 " is not an address of this machine with a port, such as 127.0.0.1:9400");
  }
  const std::string host = endpoint->host == "localhost" ? kLoopbackV4 : endpoint->host;
  request.http = HttpConfig{host, *endpoint->port, HttpConfig::Origin::kOption};
  return {};
}

constexpr OptionSpec kOtherRows[]{
    {.id = Id::kEventLogHandler,
     .name = "event-log-handler",
     .variable = Variable::kPet,
     .metavar = "NAME",
     .preset = "null",
     .help = "console: torchrun's events on stderr, one JSON object on a line; null and "
             "dynamic_rendezvous are silent.",
     .take = put<read_events, &Request::torch_events>},
    {.id = Id::kHttp,
     .name = "http",
     .metavar = "ADDR:PORT",
     .help = "Serve a health check of ddprun (/healthz) and Prometheus metrics (/metrics) at this "
             "address of the node, for example 127.0.0.1:9400; port 0: a free one, which is "
             "shown. Off by default.",
     .fallback = "TORCHELASTIC_HEALTH_CHECK_PORT",
     .take = take_http},
    {.id = Id::kStartMethod,
     .name = "start-method",
     .value = Value::kChoice,
     .variable = Variable::kPet,
     .metavar = "METHOD",
     .preset = "spawn",
     .choices = "spawn,fork,forkserver",
     .help = "Accepted for torchrun compatibility and ignored: every worker is a new process.",
     .for_torchrun = true},
    {.id = Id::kPrintCompletion,
     .name = "print-completion",
     .value = Value::kChoiceAction,
     .variable = Variable::kNone,
     .metavar = "SHELL",
     .choices = "bash,zsh,tcsh,fish",
     .help = "Print a completion script for bash, zsh, tcsh or fish."},
    {.id = Id::kDetach,
     .name = "detach",
     .value = Value::kFlag,
     .variable = Variable::kNone,
     .help = "Continue in the background and return once all workers of this node were started; "
             "the output goes to ddprun-PID.out in --log-dir or the working directory.",
     .brief = "continue in the background"},
    {.id = Id::kConfig,
     .name = "config",
     .metavar = "FILE",
     .help = "Take options from a TOML file: their long names, without tables, and arrays for "
             "lists (max-restarts = 3). Command line, variables and scheduler take precedence."},
    {.id = Id::kDryRun,
     .name = "dry-run",
     .value = Value::kFlag,
     .variable = Variable::kNone,
     .help = "Start nothing, and print what this node would start: nodes, ranks, devices, CPUs, "
             "command and environment of every worker.",
     .brief = "show what would start, start nothing",
     .take = put<as_flag, &Request::rendezvous, &RendezvousRequest::leaves_no_trace>},
    {.id = Id::kJson,
     .name = "json",
     .value = Value::kFlag,
     .variable = Variable::kNone,
     .help = "With --dry-run: print it as JSON."},
    {.id = Id::kHelp,
     .name = "help",
     .letter = 'h',
     .value = Value::kAction,
     .variable = Variable::kNone,
     .help = "Print this text; -h: only the options that most runs use."},
    {.id = Id::kShowVersion,
     .name = "version",
     .value = Value::kAction,
     .variable = Variable::kNone,
     .help = "Print the version."},
};

}  // namespace

std::span<const OptionSpec> other_options() {
  return kOtherRows;
}

}  // namespace ddprun
