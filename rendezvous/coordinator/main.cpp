#include <CLI/CLI.hpp>

#include "rendezvous/coordinator/daemon.hpp"

namespace {

constexpr const char* kTooSmall = "must be at least 1";

// "8388608", "8MiB" and "8 MB" are equal; a limit of 0 would refuse all clients.
void add_limit(CLI::App& app, const char* flag, std::size_t& limit, const char* help) {
  app.add_option(flag, limit, help)
      ->transform(
          CLI::AsSizeValue(false).description(""))  // CLI11's description is a line of brackets
      ->transform(CLI::Validator(
          [](const std::string& text) -> std::string {
            return text.starts_with('-') ? kTooSmall : "";
          },
          ""))  // transforms run from last to first: "-1" never becomes a huge size
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string { return text == "0" ? kTooSmall : ""; }, ""))
      ->capture_default_str()
      ->type_name("N")
      ->group(
          "Limits (values like 64KB and 8MB are accepted; a client that exceeds one is "
          "disconnected)");
}

}  // namespace

int main(int argc, char** argv) {
  ddprun::coordinator::DaemonOptions options;
  CLI::App app(
      "The rendezvous of runs over several nodes, for a host that trains nothing: the coordinator\n"
      "of any number of ddprun runs, a c10d store (what torch.distributed.TCPStore connects to) "
      "and\n"
      "a status page (GET /status), all on one port, until SIGTERM or SIGINT. Stopping it\n"
      "does not stop the runs: workers keep running, and agents reconnect to its replacement.\n"
      "Prints 'ready ADDRESS:PORT' on stdout once clients can connect. Nothing is authenticated "
      "or\n"
      "encrypted: bind only an address of a trusted network.",
      "ddprun-rdzvd");
  app.add_option("--bind", options.bind, "IP address to listen on, not a name")
      ->capture_default_str()
      ->type_name("ADDRESS");
  app.add_option("--port", options.port, "Port to listen on; 0: the kernel picks a free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str()
      ->type_name("PORT");
  add_limit(app, "--max-runs", options.limits.runs, "Active runs");
  add_limit(app, "--max-agents", options.limits.agents, "Connected agents of all runs");
  auto& limits = options.store;
  add_limit(app, "--max-connections", limits.connections,
            "Connections, of agents and clients of the store");
  add_limit(app, "--max-key-bytes", limits.key_bytes, "Length of one key");
  add_limit(app, "--max-value-bytes", limits.value_bytes, "Length of one value in a request");
  add_limit(app, "--max-keys-per-request", limits.keys_per_request, "Keys in one request");
  add_limit(app, "--max-request-bytes", limits.request_bytes, "Size of one request");
  add_limit(app, "--max-keys", limits.keys, "Keys, queues and awaited names in the store");
  add_limit(app, "--max-waits", limits.waits, "Waiting (client, key) pairs in the store");
  add_limit(app, "--max-store-bytes", limits.store_bytes, "Memory of the store");
  add_limit(app, "--max-reply-bytes", limits.reply_bytes, "Memory of all unsent replies");
  add_limit(app, "--max-unsent-bytes", limits.unsent_bytes,
            "A client with more unread replies is not served until it reads");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "ddprun-rdzvd: " << error.what() << " (see ddprun-rdzvd --help)\n";
    return 2;
  }
  return ddprun::coordinator::run(options);
}
