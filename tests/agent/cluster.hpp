// Cluster: a run of several agents on loopback, each a process of its own, with shell scripts as
// workers. Thread rule: one thread. Ownership: kills what it started, by pid.
#pragma once

#include <string>
#include <vector>

#include "tests/agent/agent_run.hpp"
#include "tests/support/free_port.hpp"

namespace ddprun::test {

class Cluster {
 public:
  enum class Coordinator { kDaemon, kFirstAgent };
  /// With kFirstAgent the first start() is the host; start() waits until it listens.
  explicit Cluster(Coordinator coordinator = Coordinator::kDaemon) : coordinator_(coordinator) {
    // Below the ephemeral range, so that no client gets the port while no daemon listens.
    if (coordinator == Coordinator::kDaemon) start_daemon(free_port());
  }

  /// An agent with `workers` workers. DIR is the cluster's directory, NODE the number of the agent.
  Command& start(int workers, const std::string& nodes, const std::string& script,
                 Argv options = {}) {
    const std::string number = std::to_string(agents_.size());
    const bool host = coordinator_ == Coordinator::kFirstAgent && agents_.empty();
    if (host) {
      options.insert(options.begin(), "host=" + dir_.file("port"));
    } else {
      options.insert(options.begin(), "rdzv=" + std::to_string(port_));
    }
    options.insert(options.begin() + 1, "nodes=" + nodes);
    agents_.push_back(
        std::make_unique<Command>(driver(workers, std::move(options), script),
                                  Environment{{"DIR", dir_.path()}, {"NODE", number}}));
    if (host) port_ = pid_in(dir_.file("port"));
    return *agents_.back();
  }

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string file(const std::string& name) const { return dir_.file(name); }
  /// Whether a worker comes to write a whole line into this file.
  [[nodiscard]] bool has_line(const std::string& name) const {
    return wait_until([&] { return content(file(name)).find('\n') != std::string::npos; });
  }
  /// The daemon again, on the same port.
  void start_daemon(int port) {
    daemon_ =
        std::make_unique<Command>(Argv{RDZVD, "--port", std::to_string(port), "--state-file=off"});
    REQUIRE(wait_until([this] { return daemon_->out().find('\n') != std::string::npos; }));
    const std::string ready = daemon_->out();
    port_ = std::stoi(ready.substr(ready.rfind(':') + 1));
  }
  void kill_daemon() {
    daemon_->signal(SIGKILL);
    (void)daemon_->wait();
  }

 private:
  Coordinator coordinator_;
  TemporaryDirectory dir_;
  std::unique_ptr<Command> daemon_;
  std::vector<std::unique_ptr<Command>> agents_;
  int port_ = 0;
};

/// Announces itself in $DIR/<round>.<rank>, with its pid, then stays until it is signalled.
inline const std::string kStayInRound = "echo $$$$ > $DIR/$DDPRUN_ROUND.$RANK; exec sleep 1000";

}  // namespace ddprun::test
