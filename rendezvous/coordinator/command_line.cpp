#include "rendezvous/coordinator/command_line.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "base/program_name.hpp"

namespace ddprun::coordinator {

namespace {

constexpr std::size_t kPortMax = 65535;

std::optional<std::size_t> whole_number(std::string_view digits) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// The power of 1024 that "", "B", "k", "KB", "KiB" or "G" stands for.
std::optional<int> unit_power(std::string unit) {
  unit = CLI::detail::to_lower(CLI::detail::trim(unit));
  constexpr std::string_view kPrefixes = "kmgtpe";
  if (unit.empty() || unit == "b") return 0;
  const auto power = kPrefixes.find(unit[0]);
  const std::string rest = unit.substr(1);
  if (power == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib")) return {};
  return static_cast<int>(power) + 1;
}

StatusAccess status_access(const std::string& text) {
  if (const auto access = parse_status_access(text)) return *access;
  throw UsageError{"--status " + text + " is not one of off, local and all"};
}

void read_port(const std::string& text, std::uint16_t& port) {
  const auto number = whole_number(text);
  if (!number || *number > kPortMax) {
    throw UsageError{"--port " + text + " is not a port; use a number from 0 to 65535"};
  }
  port = static_cast<std::uint16_t>(*number);
}

}  // namespace

CommandLine::CommandLine()
    : app_(
          "The rendezvous of runs over several nodes, for a host that trains nothing: the "
          "coordinator\n"
          "of any number of ddprun runs, a c10d store (what torch.distributed.TCPStore connects "
          "to) and\n"
          "a status page (GET /status), all on one port, until SIGTERM or SIGINT. Stopping it\n"
          "does not stop the runs: workers keep running, and agents reconnect to its "
          "replacement.\n"
          "Prints 'ready ADDRESS:PORT' on stdout once clients can connect. The store and the "
          "status page\n"
          "are not encrypted, nor without --secret-file or --tls-cert the links of agents: bind "
          "only an\n"
          "address of a trusted network.",
          "ddprun-rdzvd") {
  app_.allow_extras();
  app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app_.set_version_flag("--version", std::string("ddprun-rdzvd ") + kVersion, "Print the version");
  app_.add_option("--bind", options_.bind, "IP address to listen on, not a name")
      ->capture_default_str()
      ->type_name("ADDRESS");
  app_.add_option("--port", port_, "Port to listen on; 0: the kernel picks a free port")
      ->capture_default_str()
      ->type_name("PORT");
  app_.add_option("--secret-file", options_.secret_file,
                  "File with a secret, readable only for its owner, or - for the first line of "
                  "standard input: agents without it (--rdzv-secret-file) are refused, and "
                  "links are encrypted")
      ->check([](const std::string& file) {
        return file.empty() ? std::string("is empty, and meant to be the file of a secret") : "";
      })
      ->type_name("FILE");
  app_.add_option("--tls-cert", certificates_.cert.path,
                  "File with the certificate of this host, for those who have a CA in place of a "
                  "secret: agents without one of that CA (--rdzv-tls-cert) are refused, and links "
                  "are encrypted; its subjectAltName has the name or address by which agents come")
      ->type_name("FILE");
  app_.add_option("--tls-key", certificates_.key.path,
                  "File with the key of --tls-cert, readable only for its owner")
      ->type_name("FILE");
  app_.add_option("--tls-ca", certificates_.ca.path,
                  "File with the certificates of the CA that has signed those of agents")
      ->type_name("FILE");
  app_.add_option("--status", status_, std::string(kStatusHelp.substr(0, kStatusHelp.size() - 1)))
      ->capture_default_str()
      ->type_name(std::string(kStatusMetavar));
  app_.add_option(
          "--state-file", state_file_,
          "File in which it keeps which runs have a round, so that after a restart it tells "
          "their nodes from strangers; off: none [default: for a --port that is not 0, "
          "rdzvd-HOST-ADDRESS-PORT.json in $STATE_DIRECTORY, $XDG_STATE_HOME/ddprun or "
          "~/.local/state/ddprun]")
      ->type_name("FILE");
  add_limit("--max-runs", options_.limits.runs, "Active runs");
  add_limit("--max-agents", options_.limits.agents, "Connected agents of all runs");
  auto& limits = options_.store;
  add_limit("--max-connections", limits.connections,
            "Connections, of agents and clients of the store");
  add_limit("--max-key-bytes", limits.key_bytes, "Length of one key");
  add_limit("--max-value-bytes", limits.value_bytes, "Length of one value in a request");
  add_limit("--max-keys-per-request", limits.keys_per_request, "Keys in one request");
  add_limit("--max-request-bytes", limits.request_bytes, "Size of one request");
  add_limit("--max-keys", limits.keys, "Keys, queues and awaited names in the store");
  add_limit("--max-waits", limits.waits, "Waiting (client, key) pairs in the store");
  add_limit("--max-store-bytes", limits.store_bytes, "Memory of the store");
  add_limit("--max-reply-bytes", limits.reply_bytes, "Memory of all unsent replies");
  add_limit("--max-unsent-bytes", limits.unsent_bytes,
            "A client with more unread replies is not served until it reads");
}

void CommandLine::add_limit(const char* flag, std::size_t& limit, const char* help) {
  Number& option = limits_.emplace_back(Number{flag, &limit, std::to_string(limit)});
  app_.add_option(flag, option.text, help)
      ->capture_default_str()
      ->type_name("N")
      ->group(
          "Limits (values like 64KB and 8MB are accepted; a client that exceeds one is "
          "disconnected)");
}

std::vector<CommandLine::Described> CommandLine::described_options() const {
  std::vector<Described> all;
  for (const CLI::Option* option : app_.get_options()) {
    const std::string type = option->get_type_name();
    const std::string preset = option->get_default_str();
    all.push_back(
        {option->get_name(false, true) + (type.empty() ? "" : " " + type),
         option->get_description() + (preset.empty() ? "" : " [default " + preset + "]")});
  }
  return all;
}

void CommandLine::parse(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ArgumentMismatch& missing) {
    const std::string_view text = missing.what();  // "--port: 1 required PORT missing"
    throw UsageError{std::string(text.substr(0, text.find(':'))) + " needs a value"};
  }
  refuse_unknown();
  read_port(port_, options_.port);
  options_.status = status_access(status_);
  for (const Number& limit : limits_) read_limit(limit);
  read_certificates();
  if (app_.count("--state-file") > 0) options_.state_file = state_file_ == "off" ? "" : state_file_;
}

void CommandLine::read_certificates() {
  const struct {
    const char* flag;
    PemFile& file;
  } files[] = {{"--tls-cert", certificates_.cert},
               {"--tls-key", certificates_.key},
               {"--tls-ca", certificates_.ca}};
  const auto given = std::count_if(std::begin(files), std::end(files),
                                   [this](const auto& each) { return app_.count(each.flag) > 0; });
  if (given == 0) return;
  for (const auto& [flag, file] : files) {
    if (file.path.empty()) {
      throw UsageError{"--tls-cert, --tls-key and --tls-ca go together; " + std::string(flag) +
                       " is missing"};
    }
    file.shown = std::string(flag) + "=" + file.path;
  }
  if (!options_.secret_file.empty()) {
    throw UsageError{"--secret-file and --tls-cert exclude each other: pass one of the two"};
  }
  options_.certificates = certificates_;
}

void CommandLine::refuse_unknown() const {
  const std::vector<std::string> unknown = app_.remaining();
  if (unknown.empty()) return;
  for (const std::string& word : unknown) {
    if (word.starts_with('-')) throw UsageError{"unknown option " + word};
  }
  throw UsageError{"unexpected argument " + unknown.front() + "; all arguments are options"};
}

// "8388608", "8MiB" and "8 MB" are equal; a limit of 0 would refuse all clients.
void CommandLine::read_limit(const Number& option) {
  const auto digits = std::min(option.text.find_first_not_of("0123456789"), option.text.size());
  const auto number = whole_number(std::string_view(option.text).substr(0, digits));
  const auto power = unit_power(option.text.substr(digits));
  const int bits = 10 * power.value_or(0);
  if (!number || !power || *number == 0 || (*number << bits) >> bits != *number) {
    throw UsageError{option.flag + " " + option.text +
                     " is not a positive number, such as 1000, 64KB or 8MB"};
  }
  *option.limit = *number << bits;
}

}  // namespace ddprun::coordinator
