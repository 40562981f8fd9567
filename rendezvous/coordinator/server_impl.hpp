// Implementation of Server: the events of a Reactor go to Links, what these have heard goes to the
// runs, to the pages or to the store, and what is due goes to tick(). All calls go down: Links,
// StoreDoor and Pages know nothing of this class. Private to this room. Thread rule: one thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/quota.hpp"
#include "base/random_uuid.hpp"
#include "net/reactor.hpp"
#include "rendezvous/coordinator/held.hpp"
#include "rendezvous/coordinator/links.hpp"
#include "rendezvous/coordinator/server.hpp"
#include "rendezvous/coordinator/status.hpp"
#include "rendezvous/coordinator/store_door.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::coordinator {

/// Log lines of all runs together: 30 MB a day.
inline constexpr int kLinesMax = 4096;
inline constexpr std::chrono::seconds kLineInterval{1};

/// One run: its decisions, its timer and its last notes.
struct RunEntry : std::enable_shared_from_this<RunEntry> {
  RunEntry(boost::asio::any_io_executor executor, round::RunOptions options, std::string from)
      : id(options.run_id),
        founder(std::move(from)),
        run(std::move(options)),
        timer(std::move(executor)) {}

  struct Line {
    TimePoint at;
    std::string text;
  };
  RunId id;
  std::string founder;  // the network of its first agent
  round::Run run;
  boost::asio::steady_timer timer;
  std::optional<TimePoint> finished_at;  // kept to answer late agents
  std::deque<Line> notes;
  std::string kept{};      // the lineage that LiveRuns keeps for it; empty: none
  TimePoint had_agents{};  // when it last had one
  LogQuota quota{kRunLinesMax, kRunLineInterval};
};

/// Where another coordinator of the only run is, and the link on which that is repeated.
struct Elsewhere {
  protocol::Moved place;
  std::uint64_t link = 0;
  protocol::Lead said{};
  bool is_proven = false;  // by a secret or a certificate
};

class Server::Impl final : public net::Reactor::Handler, public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::any_io_executor executor, boost::asio::ip::tcp::acceptor listener,
       ServerOptions options);
  ~Impl();

  Result<void> start();
  void shut_down(int exit_code, const std::string& reason);
  void begin_fresh_store(Round ended, std::function<void()> idle);
  void close_store(Round ended) { door_.close_store(ended); }
  [[nodiscard]] std::vector<StoreWait> store_waits() const { return door_.live()->waits(); }
  void on_rank_claims(std::function<void(const RankClaims&)> seen) {
    if (door_.live() != nullptr) door_.live()->on_rank_claims(std::move(seen));
  }
  static boost::asio::awaitable<void> settle(std::shared_ptr<Impl> self);
  [[nodiscard]] bool is_ending() const;
  [[nodiscard]] std::optional<LedRound> led() const;
  [[nodiscard]] bool has_moved() const { return elsewhere() != nullptr; }
  void on_rival(MeetRival meets) { meets_rival_ = std::move(meets); }
  void on_resigned(std::function<void()> resigned) { resigned_ = std::move(resigned); }
  void resume();
  void recorded(const RunRecord& record);
  void close();
  [[nodiscard]] std::string status_json();
  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const { return reactor_.endpoint(); }
  [[nodiscard]] const std::string& nonce() const { return nonce_; }

 private:
  // server.cpp: connections, what is due, and the pages.
  void on_accept(int socket, const sockaddr_storage& from) override;
  void on_event(std::uint64_t id, std::uint32_t events) override;
  net::Reactor::Turn on_batch_end() override;
  void on_exhausted(const std::string& why) override;
  void read(Link& link);
  void hear(Link& link, Links::Heard heard);
  void serve_handshakes();
  void tick();
  void settle_all();
  void arm();
  void drain() { reactor_.drain(links_.size()); }
  /// A client that was handed to the store counts there alone.
  [[nodiscard]] std::size_t connections() const {
    return links_.open() + door_.live()->connections();
  }
  [[nodiscard]] bool settled() const;
  void ask(Link& link);
  void render(Page page);
  [[nodiscard]] std::string moved_for(const round::Peer& peer) const;
  [[nodiscard]] ServerView view(TimePoint now) const;

  // server_hello.cpp: which run an agent comes to, or why it is refused.
  void on_message(Link& link, protocol::Message message);
  void answer(Link& link, const protocol::Probe& probe);
  void on_hello(Link& link, protocol::Message message);
  void strip(const Link& link, protocol::Hello& hello);
  [[nodiscard]] std::shared_ptr<RunEntry> new_run(const Link& link, const protocol::Hello& hello);
  [[nodiscard]] bool is_held_back(const protocol::Hello& hello, const RunEntry* entry) const;
  [[nodiscard]] bool is_given_up(const protocol::Hello& hello, const RunEntry& entry) const;
  [[nodiscard]] std::optional<protocol::Refused> refusal_of(const Link& link,
                                                            const protocol::Hello& hello) const;
  void refuse_hello(Link& link, const protocol::Hello& hello, protocol::Refused refused);
  void refuse_as_malformed(Link& link, const std::string& cause);
  [[nodiscard]] std::shared_ptr<RunEntry> find_run(const protocol::Hello& hello);
  void forget_old_runs();
  void forget_run_without_agents();
  void admit_to_store(Link& link);

  // server_runs.cpp: what a run decides, and what waits until this coordinator may act, or its
  // verdict is recorded.
  void step(std::shared_ptr<RunEntry> entry, const round::Event& event);
  void decide(const std::shared_ptr<RunEntry>& entry, const round::Event& event);
  void perform(RunEntry& entry, round::Actions actions);
  void arm_run(RunEntry& entry, TimePoint deadline);
  void note(RunEntry& entry, const round::Note& note);
  void keep_if_live(RunEntry& entry);
  void forget_if_unused(const std::shared_ptr<RunEntry>& entry);
  void finish_run(RunEntry& entry);
  [[nodiscard]] bool may_act() const {
    return acts_to_the_end_ || !options_.seat.may_act || options_.seat.may_act();
  }
  [[nodiscard]] bool is_held() const { return unsaid_ || !held_.empty() || !may_act(); }
  void hold(std::shared_ptr<RunEntry> entry, const round::Event& event);
  void release();
  [[nodiscard]] bool tell_record(const RunEntry& entry);
  void say(const std::string& more);
  void await_keeper();
  void end_without_keeper();

  // server_succession.cpp: another coordinator of the run (docs/FAILOVER.md).
  void on_lead(Link& link, const protocol::Lead& lead);
  [[nodiscard]] bool may_hand_over(const Link& link, const protocol::Lead& lead);
  void hand_over(Link& link, const protocol::Lead& lead);
  [[nodiscard]] bool introduce(Link& link, const protocol::Lead& lead);
  void meet(const Link& link, const protocol::Lead& lead);
  [[nodiscard]] bool send_there(Link& link, const protocol::Hello& hello);
  void send_away(Link& link, protocol::Moved moved);
  void resign(RunEntry& entry);
  [[nodiscard]] std::string own_key() const;
  [[nodiscard]] bool is_of_own_run(const Link& link, const protocol::Lead& lead) const;
  /// As long as the other one's link is open. Null: the run is coordinated here.
  [[nodiscard]] const Elsewhere* elsewhere() const {
    return elsewhere_ && links_.find(elsewhere_->link) != nullptr ? &*elsewhere_ : nullptr;
  }

  boost::asio::any_io_executor executor_;
  ServerOptions options_;
  const std::string nonce_ = random_uuid();
  TimePoint started_ = Clock::now();
  net::Reactor reactor_;
  Links links_;
  StoreDoor door_;
  Pages pages_;
  bool ending_ = false;  // shut_down() was called: no new run starts
  bool closed_ = false;
  boost::asio::steady_timer timer_;      // for tick()
  std::optional<TimePoint> armed_;       // when it expires
  std::optional<TimePoint> losses_due_;  // set while lost links wait for the rest of a batch
  boost::asio::steady_timer settled_;    // cancelled when settled() may hold

  std::map<std::string, std::shared_ptr<RunEntry>> runs_;
  std::uint64_t runs_begun_ = 0;
  std::size_t unfinished_ = 0;
  std::map<std::string, std::size_t> founders_;  // by network: unfinished runs
  LogQuota quota_{kLinesMax, kLineInterval};

  Held<std::shared_ptr<RunEntry>> held_;  // until resume()
  RunRecord last_record_;
  /// A verdict that is not recorded yet.
  struct Unsaid {
    std::shared_ptr<RunEntry> entry;
    round::Actions actions;
  };
  std::optional<Unsaid> unsaid_;
  std::optional<TimePoint> keeper_due_;  // set from the first thing that waits until that time
  bool keeper_overdue_ = false;
  bool stop_asked_ = false;       // while it might not act
  bool acts_to_the_end_ = false;  // the run has ended: no other coordinator has its nodes

  std::optional<Elsewhere> elsewhere_{};  // if the only run is not coordinated here
  MeetRival meets_rival_;
  std::function<void()> resigned_;
};

}  // namespace ddprun::coordinator
