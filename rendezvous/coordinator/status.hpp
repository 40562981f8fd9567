// The contents of GET /status, as JSON and as an HTML page, and Pages, which keeps them for a time:
// whatever the rate of requests, they cost little. Thread rule: one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/quota.hpp"
#include "rendezvous/coordinator/http.hpp"
#include "rendezvous/coordinator/outbox.hpp"
#include "rendezvous/round/event.hpp"
#include "rendezvous/round/status.hpp"
#include "rendezvous/store/server.hpp"

namespace ddprun::coordinator {

struct RunView {
  struct Line {
    Duration ago;
    std::string text;
  };
  round::Status status;
  std::vector<Line> log;  // oldest first
};

/// A run whose nodes are sent to another coordinator.
struct MovedRun {
  std::string run_id;
  std::string coordinator;  // "10.0.0.2:41234"
};

struct ServerView {
  std::string address;
  Duration uptime{};
  WallTime now{};
  std::size_t connections = 0;  // of the port, including agents and store clients
  std::size_t agents = 0;
  std::size_t rejected = 0;  // connections without secret or certificate
  store::Counters store;
  std::vector<RunView> runs;  // sorted by run id
  std::vector<MovedRun> moved;
};

[[nodiscard]] std::string to_json(const ServerView& view);
/// Reloads itself. Escapes everything that was received from peers.
[[nodiscard]] std::string to_html(const ServerView& view);

class Pages {
 public:
  /// `unsent` counts the memory of responses.
  Pages(StatusAccess access, Budget& unsent) : access_(access), unsent_(unsent) {}

  /// nullopt while the request is incomplete.
  [[nodiscard]] std::optional<HttpAsk> asked(std::string_view received,
                                             const round::Peer& peer) const;
  [[nodiscard]] bool is_fresh(Page page, TimePoint now) const;
  /// Replaces it. `begun`: when `view` was begun.
  void render(Page page, const ServerView& view, TimePoint begun);
  /// `moved`: where all is, if not here. Else a page that is asked for is fresh.
  [[nodiscard]] SharedFrame answer(const HttpAsk& asked, const std::string& moved) const;
  /// The JSON page, which is fresh.
  [[nodiscard]] std::string json() const;
  void drop() { json_ = html_ = {}; }

 private:
  struct Cached {
    SharedFrame frame;
    TimePoint fresh_until;
  };
  [[nodiscard]] SharedFrame frame(std::string bytes) const;
  [[nodiscard]] const Cached& of(Page page) const { return page == Page::kJson ? json_ : html_; }

  StatusAccess access_;
  Budget& unsent_;
  Cached json_;
  Cached html_;
};

}  // namespace ddprun::coordinator
