// The connection half of Membership: connecting, hello, keep-alives, a coordinator that does not
// answer, and another one in its place (docs/FAILOVER.md).
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/address.hpp"
#include "base/exit_status.hpp"
#include "base/format.hpp"
#include "rendezvous/client/membership.hpp"
#include "rendezvous/client/membership/sense.hpp"
#include "rendezvous/protocol/limits.hpp"

namespace ddprun::client {

using namespace protocol;
using link::Answered;
using link::Connecting;
using link::Down;
using link::Greeted;
using link::Open;
using Step = CoordinatorSearch::Step;

namespace {

/// Doubles from kRetryMin to kRetryMax, or to a quarter of the silence limit: that is how long a
/// coordinator waits for agents to come back. Each agent a little different, so that thousands do
/// not return at once.
[[nodiscard]] Duration retry_delay(int attempts, const Hello& hello) {
  const Duration longest = std::min<Duration>(kRetryMax, hello.terms.silence_max() / 4);
  const Duration base = std::min(longest, kRetryMin * (1 << std::min(attempts, 10)));
  const std::size_t spread = (std::hash<std::string>{}(hello.agent.value()) >> 7) % 256;
  return base * 3 / 4 + base * static_cast<int>(spread) / 1024;
}

[[nodiscard]] Milliseconds to_ms(Duration duration) {
  return std::chrono::duration_cast<Milliseconds>(duration);
}

// For a node that cannot know whether the others continue.
constexpr const char* kRemedy =
    "no majority of the nodes can be reached from here; ddprun-rdzvd on another host, a third node "
    "or --rdzv-backend=etcd-v3 survive such a loss";

}  // namespace

Duration Membership::soon() const {
  return retry_delay(1, options_.hello);
}

void Membership::connect() {
  link_ = Connecting{now_};
  actions_.emplace_back(Connect{++link_id_, search_.is_away() ? search_.place() : where_});
}

void Membership::on(const LinkUp& up) {
  if (up.link != link_id_ || !std::holds_alternative<Connecting>(link_)) return;
  link_ = Open{now_};
  options_.hello.reached = up.reached;
  // What listens there has not taken the port of the coordinator that decided the round.
  if (up.elsewhere && round_ && !search_.is_away()) round_->start.succession.at_endpoint = false;
  if (stores_.port() != 0) say_hello(now_);
}

void Membership::say_hello(TimePoint heard) {
  link_ = Greeted{heard, now_ + options_.hello.terms.keep_alive_interval};
  Hello hello = options_.hello;
  hello.store_port = stores_.port();
  hello.seen = seen_;
  hello.age = to_ms(now_ - start_);
  hello.stop_timeout += to_ms(options_.failure_grace);
  // Where it looks for another coordinator, that is not the one here.
  if (search_.is_away() && !search_.is_candidate()) hello.runs_coordinator = false;
  if (round_) {
    hello.claim = round_->claim();
    hello.claim->failed_unheard = round_->failure && round_->failed_at > spoke_at_;
  }
  send(std::move(hello));
  // What the lost link may have swallowed is repeated; the coordinator takes each thing once.
  report();
  if (round_ && round_->stopped) send(*round_->stopped);
}

void Membership::on(const LinkDown& down) {
  if (down.link != link_id_ || is_down()) return;
  LinkLoss loss = is_up() ? LinkLoss::kEnded : LinkLoss::kSilent;
  if (down.refused) loss = LinkLoss::kRefused;
  lose_link(down.evidence, LinkEnd::kGone, loss);
}

// The workers keep running: the new coordinator learns of them from the hello.
void Membership::on(const CoordinatorMoved& moved) {
  if (moved.known) options_.coordinator = moved.coordinator;
  options_.hello.runs_coordinator = moved.here;
  if (!moved.known || way_out_.is_decided()) return;
  if (is_up() && way_out_.is_leaving())
    return;  // what it asked is answered there, or its link ends
  const std::string why = "the coordinator is " + moved.coordinator;
  if (is_up()) send(Reconnecting{why});
  const bool joined = reach_.joined;
  if (!is_down()) drop_link(LinkEnd::kOpen);
  if (joined) notices_.note(why, actions_);
  reach_.attempts = 0;
  if (stores_.port() != 0) connect();
}

// A node that has finished needs no coordinator but for the verdict, and does not wait for ever.
// Nor does one that trains: a verdict is kept for a time only.
void Membership::on(const CoordinatorAwaited& awaited) {
  if (!reach_.joined || answered()) return;
  reach_.awaited = awaited.what;
  const bool waits = state() != NodeState::kSucceeded && now_ - reach_.gone_at < kAwaitedMax;
  if (waits) reach_.lost_at = now_;
}

// A node that trains is of the run, or of one that has ended: then it gets that one's verdict.
void Membership::on(const ElectionBarred& barred) {
  if (round_ || seen_ > Round(0) || is_up() || !way_out_.is_staying()) return;
  end(End{kExitRefused, barred.why});
}

void Membership::lose_link(const std::string& evidence, LinkEnd link_end, LinkLoss loss) {
  const bool had_it = answered();
  drop_link(link_end);
  if (way_out_.is_decided()) return;
  if (way_out_.is_leaving()) {
    const bool let_go = had_it && link_end == LinkEnd::kGone;
    return let_go ? end(known_end(way_out_.end())) : stop_leaving();
  }
  // At a host of the list there is nothing, as long as the endpoint's node lives.
  if (search_.has_hosts() && search_.is_away()) return look_further(loss, had_it);
  const std::string known = options_.coordinator + ": ";  // the sentence already names it
  reach_.cause = evidence.starts_with(known) ? evidence.substr(known.size()) : evidence;
  if (!reach_.joined) {
    wait_for_coordinator(": " + reach_.cause);
    return look_further(loss, had_it);
  }
  if (had_it || !reach_.loss_noted) note_loss();
  look_further(loss, had_it);
}

void Membership::note_loss() {
  reach_.loss_noted = true;
  const std::string limit =
      duration_text(coordinator_deadline() - reach_.lost_at) + " (--rdzv-conf coordinator_timeout)";
  const std::string what =
      reach_.resigned.empty()
          ? "lost the coordinator " + options_.coordinator + ": " + reach_.cause + "; retrying for "
          : reach_.resigned + "; looking for the next coordinator for ";
  notices_.note(what + limit + (group_.is_alive() ? ", the workers keep running" : ""), actions_);
}

void Membership::wait_for_coordinator(const std::string& why) {
  notices_.wait_for(Wait{"waiting for the coordinator " + options_.coordinator + why, "gives up",
                         "join_timeout", coordinator_deadline()},
                    now_, actions_);
}

/// When a coordinator that does not answer is given up.
TimePoint Membership::coordinator_deadline() const {
  const Duration first = options_.hello.terms.join_timeout;
  return reach_.lost_at + (reach_.joined ? options_.coordinator_timeout : first);
}

/// After this the link is down and a retry is due.
void Membership::drop_link(LinkEnd link_end) {
  if (answered()) {
    reach_.lost_at = reach_.gone_at = now_;
    reach_.attempts = 0;
  }
  if (link_end == LinkEnd::kOpen) close_link();
  link_ = Down{};
  if (way_out_.is_decided()) return;
  link_ = Down{now_ + retry_delay(reach_.attempts++, options_.hello)};
}

void Membership::close_link() {
  if (!is_down()) actions_.emplace_back(CloseLink{link_id_});
  link_ = Down{};
}

void Membership::on(const Incoming& incoming) {
  if (incoming.link != link_id_ || !is_up()) return;
  hear(now_);
  // A candidate without a majority answers heartbeats alone: it is not the coordinator yet.
  if (search_.is_away() && std::holds_alternative<Beat>(incoming.message)) return;
  if (const auto* moved = std::get_if<Moved>(&incoming.message)) return take(*moved);
  // Another server has that port by now.
  const auto* refused = std::get_if<Refused>(&incoming.message);
  const bool is_other = refused != nullptr && refused->code == RefusalCode::kWrongRun;
  if (search_.is_away() && refused != nullptr && (reach_.joined || is_other)) {
    return lose_link(refused->sentence, LinkEnd::kOpen, LinkLoss::kRefused);
  }
  if (search_.is_away()) {
    find_coordinator();
  }
  spoke_at_ = now_;
  reach_.resigned.clear();
  // Heartbeats alone are no answer to the first hello: join_timeout holds.
  if (!reach_.joined && std::holds_alternative<Beat>(incoming.message)) return;
  if (const auto* greeted = std::get_if<Greeted>(&link_)) link_ = Answered{*greeted};
  reach_.awaited.clear();
  was_greeted_ = std::exchange(reach_.joined, true);
  if (!was_greeted_) notices_.end_wait();
  notices_.repeat_waits();
  if (std::exchange(reach_.loss_noted, false)) {
    notices_.note("the coordinator " + options_.coordinator + " answers again", actions_);
  }
  std::visit(
      [this](const auto& message) {
        if constexpr (requires { take(message); }) take(message);
      },
      incoming.message);
}

void Membership::on(const StoreOpened& opened) {
  stores_.opened(opened.port);
  if (const auto* open = std::get_if<Open>(&link_)) return say_hello(open->heard);
  if (is_up()) return report();
  const auto* down = std::get_if<Down>(&link_);
  if (down != nullptr && !down->retry_at && !way_out_.is_decided()) connect();
}

void Membership::on(const Tick&) {
  stores_.close_overdue(now_, actions_);
  end_if_nothing_left();
  if (!way_out_.is_decided()) {
    notice_silence();
    beat_if_due();
    give_up_on_coordinator();
  }
  if (const auto until = way_out_.until(); until && now_ >= *until) stop_leaving();
  if (ended()) return;
  notices_.note_wait_if_due(now_, actions_);
  const auto* down = std::get_if<Down>(&link_);
  const bool retries = down != nullptr && down->retry_at && now_ >= *down->retry_at;
  if (retries && stores_.port() != 0) connect();
}

void Membership::notice_silence() {
  if (const auto* connecting = std::get_if<Connecting>(&link_)) {
    if (now_ - connecting->since < attempt_max()) return;
    return lose_link("no connection within " + duration_text(attempt_max()), LinkEnd::kOpen,
                     LinkLoss::kSilent);
  }
  if (!is_up()) return;
  const Terms& terms = options_.hello.terms;
  const bool overslept = armed_ && now_ - *armed_ > terms.keep_alive_interval;
  // This process itself did not run: what the coordinator sent may lie unread.
  if (overslept) hear(now_ - terms.silence_max() + terms.keep_alive_interval);
  if (now_ - heard() < terms.silence_max()) return;
  const std::string silence = "no heartbeat for " + duration_text(terms.silence_max());
  if (!way_out_.is_leaving()) send(Reconnecting{silence});
  lose_link(answered() ? silence : "it accepts the connection and sends nothing", LinkEnd::kOpen,
            LinkLoss::kSilent);
}

void Membership::beat_if_due() {
  Greeted* const greeted = greeting();
  if (greeted == nullptr || now_ < greeted->beat_at) return;
  send(Beat{});
  greeted->beat_at = now_ + options_.hello.terms.keep_alive_interval;
}

void Membership::take(const Beat& beat) {
  if (beat.echo) send(beat);
}

void Membership::give_up_on_coordinator() {
  if (answered() || now_ < coordinator_deadline()) return;
  const std::string option = reach_.joined ? "coordinator_timeout" : "join_timeout";
  const Duration waited = coordinator_deadline() - reach_.lost_at;
  const std::string sentence =
      "the coordinator " + options_.coordinator + " did not answer for " + duration_text(waited) +
      " (--rdzv-conf " + option + "=" + seconds_text(waited) + ")" +
      (reach_.cause.empty() ? "" : "; last attempt: " + reach_.cause) +
      (reach_.awaited.empty() ? "" : "; " + reach_.awaited + " does not answer") +
      (search_.has_successors() ? "; " + std::string(kRemedy) : "");
  if (state() == NodeState::kSucceeded) return end(succeeded_here(sentence));
  const int code = reach_.joined ? kExitCoordinatorLost : kExitJoinTimeout;
  end(known_end(End{code, sentence}));
}

// All ranks of this node have exited with 0. If those of the other nodes have, the run succeeded;
// if not, their nodes know the failure and report it.
End Membership::succeeded_here(const std::string& why_unknown) const {
  const std::string known = "all ranks of this node exited with code 0";
  return known_end(End{0, known + "; how the other nodes ended is unknown: " + why_unknown});
}

const char* Membership::link_name() const {
  static constexpr std::array<const char*, std::variant_size_v<link::State>> kNames{
      "Down", "Connecting", "Open", "Greeted", "Answered"};
  return kNames.at(link_.index());
}

Greeted* Membership::greeting() {
  if (auto* answered = std::get_if<Answered>(&link_)) return answered;
  return std::get_if<Greeted>(&link_);
}

TimePoint Membership::heard() {
  if (const auto* open = std::get_if<Open>(&link_)) return open->heard;
  return greeting()->heard;
}

void Membership::hear(TimePoint when) {
  auto* open = std::get_if<Open>(&link_);
  TimePoint& heard = open != nullptr ? open->heard : greeting()->heard;
  heard = std::max(heard, when);
}

void Membership::send(Message message) {
  if (is_up()) actions_.emplace_back(SendMessage{link_id_, std::move(message)});
}

void Membership::arm() {
  const std::optional<TimePoint> next = next_deadline();
  if (!next) {
    armed_.reset();
    return;
  }
  if (armed_ && *armed_ > now_ && *armed_ <= *next) return;
  armed_ = next;
  actions_.emplace_back(ArmTimer{*next});
}

std::optional<TimePoint> Membership::next_deadline() {
  std::optional<TimePoint> next;
  const auto take = [&next](std::optional<TimePoint> deadline) {
    if (deadline && (!next || *deadline < *next)) next = deadline;
  };
  if (!way_out_.is_decided()) {
    if (const auto* down = std::get_if<Down>(&link_)) take(down->retry_at);
    if (const auto* connecting = std::get_if<Connecting>(&link_)) {
      take(connecting->since + attempt_max());
    }
    if (is_up()) take(heard() + options_.hello.terms.silence_max());
    if (const Greeted* greeted = greeting()) take(greeted->beat_at);
    if (!answered()) take(coordinator_deadline());
  }
  take(way_out_.until());
  take(notices_.due());
  for (const Stores::Released& store : stores_.released()) take(store.close_at);
  return next;
}

/// The link is down, and a retry is due later.
void Membership::look_further(LinkLoss loss, bool had_it) {
  const bool was_candidate = search_.is_candidate();
  const bool refused = loss == LinkLoss::kRefused && !search_.is_away();
  if (refused && round_ && round_->of_coordinator) round_->author_ended = true;
  if (!search_.is_away()) has_ended_ = refused;
  turned_away_ = loss == LinkLoss::kEnded && !had_it && !search_.is_away();
  if (had_it) aside_.reset();
  // The run is over: no other node takes it on.
  if (round_ && round_->verdict) return await_last_word(loss);
  const Step step = search_.lost(loss, had_it);
  if (was_candidate) withdraw();
  go(step);
}

/// The coordinator had told how the run ends, and that is all there is to know if it is gone.
void Membership::await_last_word(LinkLoss loss) {
  const bool is_gone = loss != LinkLoss::kEnded;
  if (is_gone && group_.is_none()) end(known_end(End{}));
}

void Membership::go(Step step) {
  switch (step) {
    case Step::kSoon:
      reach_.attempts = 1;
      link_ = link::Down{now_ + soon()};
      return;
    case Step::kAgain:
    case Step::kStart:
      if (aside_) {  // the endpoint does not know
        where_ = std::exchange(aside_, std::nullopt);
        return;
      }
      // A node that turns a new one away coordinates the run no more, or not yet: the endpoint may
      // know. Of a round the end of its coordinator matters, and that is learned there.
      if (turned_away_ && !round_) aside_ = std::exchange(where_, std::nullopt);
      // Who has ended need not be asked again; the node of the endpoint may be back.
      if (!has_ended_) return;
      where_.reset();
      return;
    case Step::kLead: {
      options_.hello.runs_coordinator = true;
      coordinates_ = true;
      const bool ended = round_ && round_->author_ended;
      const std::string why =
          reach_.resigned.empty()
              ? "lost the coordinator " + options_.coordinator + ": " + reach_.cause
              : reach_.resigned;
      actions_.emplace_back(Coordinate{ended ? round_->start.stamp.author : "",
                                       why + "; " + options_.hello.host + " coordinates the run",
                                       round_ ? round_->start.succession.origin : ""});
      break;
    }
    case Step::kNow:
    case Step::kGo:
      break;
  }
  if (stores_.port() != 0) connect();
}

void Membership::withdraw() {
  options_.hello.runs_coordinator = false;
  coordinates_ = false;
  actions_.emplace_back(Withdraw{});
}

void Membership::on(const Abdicated& abdicated) {
  if (way_out_.is_decided() || !search_.is_candidate()) return;
  if (way_out_.is_leaving()) return stop_leaving();
  reach_.cause = abdicated.reason;
  drop_link(LinkEnd::kOpen);
  withdraw();
  go(search_.abdicated());
}

/// Who answers where this agent has looked coordinates the run.
void Membership::find_coordinator() {
  if (!search_.is_candidate()) options_.hello.runs_coordinator = false;
  move_to(search_.place());
  search_.found();
  reach_.loss_noted = false;
  if (round_) round_->of_coordinator = false;
  const std::string other =
      where_->host + " (" + options_.coordinator + ") coordinates the run now";
  const bool here = options_.hello.runs_coordinator;
  notices_.note(here ? "this node coordinates the run now" : other, actions_);
}

/// From now on it is looked for there; the one before it may be suspended, and learn that late.
void Membership::move_to(Place place) {
  std::erase(former_, place);
  if (where_ && *where_ != place) {
    std::erase(former_, *where_);
    former_.push_back(*where_);
    if (former_.size() > kSuccessorsMax) former_.erase(former_.begin());
  }
  options_.coordinator = host_and_port(place.address, place.port);
  where_ = std::move(place);
  aside_.reset();
}

void Membership::take(const Settled& settled) {
  if (round_ && round_->start.stamp == settled.stamp) round_->settled = true;
}

void Membership::take(const Resigned& resigned) {
  reach_.resigned = resigned.reason;
  if (round_ && resigned.cuts_short) round_->cut_short = true;
  if (!way_out_.is_staying()) return;  // the end of the link lets it go
  search_.resigned();
  lose_link("it has resigned", LinkEnd::kOpen, LinkLoss::kEnded);
}

void Membership::take(const Moved& moved) {
  if (way_out_.is_decided()) return;
  if (way_out_.is_leaving()) return stop_leaving();
  if (!can_be_host(moved.address)) return;
  if (coordinates_) withdraw();  // it listens here as before
  options_.hello.runs_coordinator = false;
  move_to({moved.address, moved.address, moved.port});
  search_.moved();
  if (round_) round_->of_coordinator = false;
  notices_.note("the run is coordinated by " + options_.coordinator, actions_);
  drop_link(LinkEnd::kOpen);
}

/// A host that does not answer is not waited for as long where others may coordinate.
Duration Membership::attempt_max() const {
  const Duration share = options_.hello.terms.silence_max() / 4;
  return search_.is_away() ? std::min(kConnectMax, share) : kConnectMax;
}

}  // namespace ddprun::client
