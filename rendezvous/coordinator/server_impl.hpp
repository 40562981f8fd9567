// Implementation of Server: links on a Reactor, and the calls into round::Run. Private to this
// room. Nothing is erased while an event is handled: a closed link is marked kClosed, and erased at
// the end of the batch (settle_all()). Thread rule: one thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log_quota.hpp"
#include "base/random_uuid.hpp"
#include "net/reactor.hpp"
#include "rendezvous/coordinator/held.hpp"
#include "rendezvous/coordinator/http.hpp"
#include "rendezvous/coordinator/limits.hpp"
#include "rendezvous/coordinator/link.hpp"
#include "rendezvous/coordinator/server.hpp"
#include "rendezvous/coordinator/status.hpp"
#include "rendezvous/coordinator/store_gate.hpp"
#include "rendezvous/coordinator/unproven.hpp"
#include "rendezvous/round/run.hpp"
#include "rendezvous/store/server.hpp"

namespace ddprun::coordinator {

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
  void close_store(Round ended) { ended_stores_.erase(ended); }
  [[nodiscard]] std::vector<StoreWait> store_waits() const { return store_->waits(); }
  void on_rank_claims(std::function<void(const RankClaims&)> seen) {
    if (store_) store_->on_rank_claims(std::move(seen));
  }
  static boost::asio::awaitable<void> settle(std::shared_ptr<Impl> self);
  [[nodiscard]] bool is_ending() const;
  [[nodiscard]] std::optional<LedRound> led() const;
  [[nodiscard]] bool has_moved() const { return elsewhere_.has_value(); }
  void on_rival(MeetRival meets) { meets_rival_ = std::move(meets); }
  void on_resigned(std::function<void()> resigned) { resigned_ = std::move(resigned); }
  void resume();
  void recorded(const RunRecord& record);
  void close();
  [[nodiscard]] std::string status_json();
  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const { return reactor_.endpoint(); }
  [[nodiscard]] const std::string& nonce() const { return nonce_; }

 private:
  // server.cpp: lifetime of the server, new connections.
  void drain() { reactor_.drain(links_.size()); }
  void on_accept(int socket, const sockaddr_storage& from) override;
  void make_room();
  net::Reactor::Turn on_batch_end() override;
  void on_exhausted(const std::string& why) override;
  /// A client that was handed to the store counts there alone.
  [[nodiscard]] std::size_t connections() const {
    return links_.size() - closed_links_.size() + store_->connections();
  }
  [[nodiscard]] bool settled() const;

  // server_links.cpp: lifetime of a connection.
  void on_event(std::uint64_t id, std::uint32_t events) override;
  void read_some(Link& link);
  void receive(Link& link);
  void understand(Link& link, std::string_view input);
  [[nodiscard]] std::unique_ptr<store::Server> make_store() const;
  void arrive(Link& link, std::string_view input);
  void hand_to_store(Link& link);
  void adopt_in_store(Link& link);
  void begin_agent(Link& link, std::string_view input);
  void digest(Link& link, std::string_view input);
  std::size_t parse(Link& link, protocol::FrameReader& reader);
  void rest_if_due(Link& link);
  void arm_rest();
  void count_partial(Link& link, std::size_t bytes);
  void forget_partial(Link& link);
  void send(Link& link, SharedFrame frame);
  void enqueue(Link& link, SharedFrame frame);
  void flush(Link& link);
  void watch(Link& link);
  void close_link(Link& link);
  enum class By { kPeer, kNetwork };  // what ended the link
  void lose(Link& link, const std::string& evidence, By by = By::kPeer);
  void mark_closed(Link& link);
  void set_due(Link& link);
  void forget_due(Link& link);
  void arm_idle_timeout();
  void close_idle_links();
  void settle_all();
  void settle_soon();
  [[nodiscard]] Link* find(std::uint64_t id);
  void log_once(const Link& link, const std::string& cause);

  // server_gate.cpp: clients of the store that may be of an ended round.
  void close_gate(Round ended);
  void wait_at_gate(Link& link);
  void arm_gate();
  void tell_who_is_waited_for();
  void look_at_gate();
  void pass_gate();

  // server_tls.cpp: links with a secret, or certificates.
  void begin_tls(Link& link);
  void await_turn(Link& link, std::string_view input);
  void serve_unproven();
  void arm_unproven();
  void say_that_unproven_wait(const Link& link);
  void open_sealed(Link& link, std::string_view input);
  void reject(Link& link, const std::string& cause);
  void forget_handshake(Link& link);
  [[nodiscard]] SharedFrame sealed(Link& link, const Frame& frame);

  // server_runs.cpp: runs.
  void on_message(Link& link, protocol::Message message);
  void answer(Link& link, const protocol::Probe& probe);
  void on_hello(Link& link, protocol::Message message);
  [[nodiscard]] bool is_of_another_run(const Link& link, const std::string& run) const;
  void strip(const Link& link, protocol::Hello& hello);
  [[nodiscard]] std::shared_ptr<RunEntry> new_run(const Link& link, const protocol::Hello& hello);
  [[nodiscard]] bool is_held_back(const protocol::Hello& hello, const RunEntry* entry) const;
  [[nodiscard]] bool is_given_up(const protocol::Hello& hello, const RunEntry& entry) const;
  void keep_if_live(RunEntry& entry);
  [[nodiscard]] static bool can_coordinate(const Link& link, const round::Peer& peer,
                                           const protocol::Hello& hello);
  void admit_to_store(Link& link);
  void admit_members(const RunEntry& entry);
  [[nodiscard]] std::optional<protocol::Refused> refusal_of(const Link& link,
                                                            const protocol::Hello& hello) const;
  void forget_if_unused(const std::shared_ptr<RunEntry>& entry);
  [[nodiscard]] std::shared_ptr<RunEntry> find_run(const protocol::Hello& hello);
  void forget_old_runs();
  void forget_run_without_agents();
  void step(std::shared_ptr<RunEntry> entry, const round::Event& event);
  [[nodiscard]] bool may_act() const {
    return acts_to_the_end_ || !options_.may_act || options_.may_act();
  }
  void perform(RunEntry& entry, round::Actions actions);
  void arm_run(RunEntry& entry, TimePoint deadline);
  void note(RunEntry& entry, const round::Note& note);
  void finish_run(RunEntry& entry);

  // server_held.cpp: what waits until this coordinator may act, or its verdict is recorded.
  [[nodiscard]] bool is_held() const { return unsaid_ || !held_.empty() || !may_act(); }
  void hold(std::shared_ptr<RunEntry> entry, const round::Event& event);
  void release();
  void decide(const std::shared_ptr<RunEntry>& entry, const round::Event& event);
  [[nodiscard]] bool tell_record(const RunEntry& entry);
  void say(const std::string& more);
  void await_keeper();
  void end_without_keeper();

  // server_succession.cpp: another coordinator of the run.
  [[nodiscard]] bool may_hand_over(const Link& link, const protocol::Lead& lead);
  void on_lead(Link& link, const protocol::Lead& lead);
  void hand_over(Link& link, const protocol::Lead& lead);
  [[nodiscard]] std::string own_key() const;
  [[nodiscard]] static bool goes_there(const protocol::Hello& hello, const Elsewhere& place);
  [[nodiscard]] bool send_there(Link& link, const protocol::Hello& hello);
  [[nodiscard]] bool introduce(Link& link, const protocol::Lead& lead);
  void meet(const Link& link, const protocol::Lead& lead);
  [[nodiscard]] bool is_of_own_run(const Link& link, const protocol::Lead& lead) const;
  void send_away(Link& link, protocol::Moved moved);
  void forget_leader(const Link& link);
  void resign(RunEntry& entry);
  void refuse(Link& link, protocol::Refused refused);
  void refuse_hello(Link& link, const protocol::Hello& hello, protocol::Refused refused);
  void refuse_as_malformed(Link& link, const std::string& cause);
  [[nodiscard]] SharedFrame frame_of(protocol::Message message);

  // server_status.cpp: what HTTP shows.
  void ask(Link& link, std::string_view input);
  [[nodiscard]] SharedFrame page(Page kind);
  [[nodiscard]] std::string moved_for(const round::Peer& peer) const;
  [[nodiscard]] ServerView view(TimePoint now) const;

  struct CachedPage {
    SharedFrame frame;
    TimePoint fresh_until;
  };

  boost::asio::any_io_executor executor_;
  ServerOptions options_;
  net::SharedTlsContext tls_;  // null: links in clear text
  TimePoint started_ = Clock::now();
  net::Reactor reactor_;
  boost::asio::steady_timer idle_timeout_;  // runs only while a link is due
  boost::asio::steady_timer settled_;       // cancelled when settled() may hold
  boost::asio::steady_timer rest_timer_;    // runs only while a link rests
  boost::asio::steady_timer gate_timer_;    // runs only while a client waits at the gate
  bool idle_timeout_armed_ = false;
  bool ending_ = false;  // shut_down() was called: no new run starts
  bool closed_ = false;
  bool peer_floods_ = false;  // set when a peer has sent more than it is read of in this batch

  std::unique_ptr<store::Server> store_;
  std::map<Round, std::unique_ptr<store::Server>> ended_stores_;  // which still have clients
  StoreGate gate_;
  std::vector<std::pair<TimePoint, std::uint64_t>> at_gate_;  // links, in order of arrival
  bool gate_told_ = false;
  Budget unsent_;
  Budget partial_;
  std::unique_ptr<char[]> receive_buffer_;
  std::unique_ptr<protocol::FrameReader> spare_reader_;
  protocol::Message last_message_;  // what last_frame_ says: equal messages are encoded once
  SharedFrame last_frame_;
  CachedPage json_page_;
  CachedPage html_page_;

  const std::string nonce_ = random_uuid();
  std::uint64_t runs_begun_ = 0;
  std::size_t unfinished_ = 0;
  std::unordered_map<std::string, std::shared_ptr<RunEntry>> runs_;
  std::unordered_map<std::string, std::size_t> founders_;  // by network: unfinished runs

  std::size_t agents_ = 0;   // links of agents
  std::size_t leaving_ = 0;  // closing links whose agents may still read a last message
  net::ConnectionTable<Link> links_;
  std::list<std::pair<TimePoint, std::uint64_t>> due_;  // soonest first
  std::list<std::uint64_t> incomplete_;       // links with counted partial bytes, longest first
  Unproven unproven_;                         // links whose agents have proved nothing yet
  Unproven unheard_;                          // links without a hello, in clear text
  boost::asio::steady_timer unproven_timer_;  // runs only while such a link waits for its turn
  LogQuota unproven_quota_{1, kUnprovenLineInterval};
  boost::asio::steady_timer settle_timer_;  // runs only while losses wait for the rest of a batch
  bool settles_soon_ = false;
  std::size_t rejected_ = 0;  // links without the proof, and agents in clear text
  std::multimap<TimePoint, std::uint64_t> resting_;  // links, by when they are read again
  std::vector<std::uint64_t> to_flush_;
  std::map<std::shared_ptr<RunEntry>, round::LinksLost> lost_;  // in this batch
  // Until resume().
  Held<std::shared_ptr<RunEntry>> held_;
  RunRecord last_record_;
  /// A verdict that is not recorded yet.
  struct Unsaid {
    std::shared_ptr<RunEntry> entry;
    round::Actions actions;
  };
  std::optional<Unsaid> unsaid_;
  boost::asio::steady_timer keeper_timer_;  // runs only while anything is held
  bool keeper_awaited_ = false;
  bool keeper_overdue_ = false;
  bool stop_asked_ = false;               // while it might not act
  bool acts_to_the_end_ = false;          // the run has ended: no other coordinator has its nodes
  std::optional<Elsewhere> elsewhere_{};  // if the only run is not coordinated here
  MeetRival meets_rival_;
  std::function<void()> resigned_;
  std::vector<std::uint64_t> closed_links_;  // in links_ until the end of the batch
  net::LoggedCauses logged_;
  LogQuota quota_{kLinesMax, kLineInterval};
  LogQuotas closed_quotas_{kClosedLinesMax, kClosedLineInterval, kClosedKindsMax};
};

}  // namespace ddprun::coordinator
