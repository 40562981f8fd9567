// The wires of a world in which coordinators fail over: hosts, ports that listen, and TCP
// connections with what their kernels do when a process ends, a host falls silent, a wire is cut in
// one direction, or packets come to an end that is gone. Deterministic, single thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/protocol/messages.hpp"
#include "tests/sim/network.hpp"

namespace ddprun::failover {

using sim::Random;
using sim::Timeline;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

using SocketId = int;
inline constexpr SocketId kNoSocket = -1;
using ProcessId = int;
inline constexpr ProcessId kNoProcess = -1;

struct Accepted {};  // the handshake is complete at the listening side
struct Fin {};
struct Reset {};
using Packet = std::variant<protocol::Message, Accepted, Fin, Reset>;

/// One end of a connection, as its kernel has it.
struct Socket {
  int host = 0;
  int peer_host = 0;
  ProcessId process = kNoProcess;  // kNoProcess: of the kernel alone
  SocketId peer = kNoSocket;
  std::uint64_t listener = 0;  // which accepts it, until it has
  int listener_port = 0;
  bool is_connecting = false;
  bool is_closed = false;
  bool is_up = false;                   // the connection was made: to be told
  std::deque<protocol::Message> inbox;  // received, and not read
  std::string ended;                    // how the other end went; empty: it is there
  bool is_refused = false;
  // To the other end, in order.
  std::deque<std::pair<TimePoint, Packet>> flight;
  TimePoint last_arrival{};
  bool is_scheduled = false;
  bool has_reset = false;
};

class Net {
 public:
  struct Options {
    int hosts = 2;
    Duration latency_min = milliseconds(1);
    Duration latency_max = milliseconds(1);
  };
  using Wake = std::function<void(ProcessId)>;
  Net(Timeline& timeline, Random& random, const Options& options, Wake wake);

  // Faults.
  void cut(int from, int to, bool is_cut);
  [[nodiscard]] bool is_cut(int from, int to) const { return cut_.contains({from, to}); }
  /// Neither its processes nor its kernel do anything meanwhile.
  void freeze(int host, bool is_frozen);
  [[nodiscard]] bool is_frozen(int host) const { return frozen_.contains(host); }
  /// All that it had is gone, without a word.
  void power_off(int host);
  void power_on(int host);
  [[nodiscard]] bool is_off(int host) const { return off_.contains(host); }
  /// Both ends of all connections between these hosts get a reset.
  void break_links(int left, int right);

  // System calls.
  [[nodiscard]] bool listen(ProcessId process, int host, int port);
  void unlisten(int host, int port);
  [[nodiscard]] bool is_readable(int host, int port) const;
  [[nodiscard]] SocketId accept(int host, int port);
  [[nodiscard]] SocketId connect(ProcessId process, int from, int host, int port);
  void send(SocketId socket, protocol::Message message);
  void close(SocketId socket);
  [[nodiscard]] Socket& at(SocketId socket) { return *sockets_[static_cast<std::size_t>(socket)]; }
  /// Its kernel closes all that it had.
  void end_process(ProcessId process);
  /// Those of its sockets to which something has come since the last call, in no order.
  [[nodiscard]] std::vector<SocketId> take_news(ProcessId process);

 private:
  struct Listener {
    ProcessId process = kNoProcess;
    std::uint64_t number = 0;
    std::deque<SocketId> backlog;
  };
  struct Attempt {
    SocketId socket = kNoSocket;
    int host = 0;
    int port = 0;
    Duration retry = seconds(1);
  };
  [[nodiscard]] SocketId make_socket(int host, int peer_host, ProcessId process);
  [[nodiscard]] bool severed(int from, int to) const;
  [[nodiscard]] Duration latency(int from, int to);
  void wake(SocketId socket);
  void knock(Attempt attempt);
  void knock_later(Attempt attempt);
  void arrive(const Attempt& attempt);
  void establish(const Attempt& attempt, std::uint64_t listener);
  void push(SocketId from, Packet packet);
  void schedule(SocketId from, TimePoint when);
  void pump(SocketId from);
  void deliver(SocketId to, Packet packet);
  void take(SocketId to, Accepted);
  void resume_stalled();

  Timeline& timeline_;
  Random& random_;
  Options options_;
  Wake wake_;
  std::vector<std::unique_ptr<Socket>> sockets_;
  std::map<std::pair<int, int>, Listener> listeners_;  // by host and port
  std::vector<Duration> latency_;                      // by direction; empty: all the same
  std::map<ProcessId, std::vector<SocketId>> news_;
  // What a process had once: what was closed is still in it.
  std::map<ProcessId, std::vector<SocketId>> owned_;
  std::map<ProcessId, std::vector<std::pair<int, int>>> listened_at_;
  std::map<SocketId, TimePoint> stalled_;  // and since when
  std::set<std::pair<int, int>> cut_;
  std::set<int> frozen_;
  std::set<int> off_;
  std::uint64_t listened_ = 0;
};

}  // namespace ddprun::failover
