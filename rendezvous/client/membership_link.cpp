// The connection half of Membership: connecting, hello, keep-alives, a coordinator that does not
// answer.
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/duration_text.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun::client {

using namespace protocol;
using link::Answered;
using link::Connecting;
using link::Down;
using link::Greeted;
using link::Open;

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

}  // namespace

void Membership::connect() {
  link_ = Connecting{now_};
  actions_.emplace_back(Connect{++link_id_});
}

void Membership::on(const LinkUp& up) {
  if (up.link != link_id_ || !std::holds_alternative<Connecting>(link_)) return;
  link_ = Open{now_};
  if (store_port_ != 0) say_hello(now_);
}

void Membership::say_hello(TimePoint heard) {
  link_ = Greeted{heard, now_ + options_.hello.terms.keep_alive_interval};
  Hello hello = options_.hello;
  hello.store_port = store_port_;
  hello.seen = seen_;
  hello.age = to_ms(now_ - start_);
  if (round_) {
    hello.claim =
        Claim{round_->stamp, round_->group_rank, round_->group_size, round_->restarts, state_};
  }
  send(std::move(hello));
  if (!round_) return;
  // What the lost link may have swallowed is said again; the coordinator takes each thing once.
  report();
  if (stopped_) send(*stopped_);
}

void Membership::on(const LinkDown& down) {
  if (down.link != link_id_ || is_down()) return;
  lose_link(down.evidence, LinkEnd::kGone);
}

void Membership::lose_link(const std::string& evidence, LinkEnd link_end) {
  const bool had_it = answered();
  drop_link(link_end);
  if (verdict_) return;  // it is done with us
  if (leaving_) return stop_leaving();
  const std::string known = options_.coordinator + ": ";  // the sentence names it already
  cause_ = evidence.starts_with(known) ? evidence.substr(known.size()) : evidence;
  if (!joined_) {
    wait_for_coordinator(": " + cause_);
  } else if (had_it || !loss_told_) {
    loss_told_ = true;
    note("lost the coordinator " + options_.coordinator + ": " + cause_ + "; trying again for " +
         duration_text(coordinator_deadline() - lost_at_) + " (--rdzv-conf coordinator_timeout)" +
         (group_ == Group::kAlive ? ", the workers run on" : ""));
  }
}

void Membership::wait_for_coordinator(const std::string& why) {
  wait_for(Wait{"waiting for the coordinator " + options_.coordinator + why, "gives up",
                "join_timeout", coordinator_deadline()});
}

/// When a coordinator that has not been heard of is given up.
TimePoint Membership::coordinator_deadline() const {
  return lost_at_ +
         (joined_ ? options_.coordinator_timeout : Duration(options_.hello.terms.join_timeout));
}

/// After this the link is down and a retry is due.
void Membership::drop_link(LinkEnd link_end) {
  if (!is_down() && link_end == LinkEnd::kOpen) actions_.emplace_back(CloseLink{link_id_});
  if (answered()) {
    lost_at_ = now_;
    attempts_ = 0;
  }
  link_ = Down{};
  if (!verdict_) link_ = Down{now_ + retry_delay(attempts_++, options_.hello)};
}

void Membership::on(const Incoming& incoming) {
  if (incoming.link != link_id_ || !is_up()) return;
  if (const auto* greeted = std::get_if<Greeted>(&link_)) link_ = Answered{*greeted};
  hear(now_);
  if (!std::exchange(joined_, true)) wait_.reset();
  told_waits_.clear();
  if (std::exchange(loss_told_, false)) {
    note("the coordinator " + options_.coordinator + " answers again");
  }
  std::visit(
      [this](const auto& message) {
        if constexpr (requires { take(message); }) take(message);
      },
      incoming.message);
}

void Membership::on(const StoreOpened& opened) {
  store_port_ = opened.port;
  if (const auto* open = std::get_if<Open>(&link_)) return say_hello(open->heard);
  if (is_up()) return report();
  const auto* down = std::get_if<Down>(&link_);
  if (down != nullptr && !down->retry_at && !verdict_) connect();
}

void Membership::on(const Tick&) {
  close_overdue_stores();
  if (verdict_) return note_wait_if_due();
  notice_silence();
  beat_if_due();
  give_up_on_coordinator();
  if (leave_until_ && now_ >= *leave_until_ && !verdict_) stop_leaving();
  note_wait_if_due();
  const auto* down = std::get_if<Down>(&link_);
  const bool retries = down != nullptr && down->retry_at && now_ >= *down->retry_at;
  if (retries && !verdict_ && store_port_ != 0) connect();
}

void Membership::notice_silence() {
  if (const auto* connecting = std::get_if<Connecting>(&link_)) {
    if (now_ - connecting->since < kConnectMax) return;
    return lose_link("no connection within " + duration_text(kConnectMax), LinkEnd::kOpen);
  }
  if (!is_up()) return;
  const Terms& terms = options_.hello.terms;
  const bool overslept = armed_ && now_ - *armed_ > terms.keep_alive_interval;
  // This process itself did not run: what the coordinator sent may lie unread.
  if (overslept) hear(now_ - terms.silence_max() + terms.keep_alive_interval);
  if (now_ - heard() < terms.silence_max()) return;
  const std::string silence = "no heartbeat for " + duration_text(terms.silence_max());
  if (!leaving_) send(Reconnecting{silence});
  lose_link(answered() ? silence : "it takes the connection and says nothing", LinkEnd::kOpen);
}

void Membership::beat_if_due() {
  Greeted* const greeted = greeting();
  if (greeted == nullptr || now_ < greeted->beat_at) return;
  send(Beat{});
  greeted->beat_at = now_ + options_.hello.terms.keep_alive_interval;
}

void Membership::give_up_on_coordinator() {
  if (answered() || now_ < coordinator_deadline()) return;
  const std::string option = joined_ ? "coordinator_timeout" : "join_timeout";
  const Duration waited = coordinator_deadline() - lost_at_;
  const std::string sentence = "the coordinator " + options_.coordinator + " did not answer for " +
                               duration_text(waited) + " (--rdzv-conf " + option + "=" +
                               seconds_text(waited) + ")" +
                               (cause_.empty() ? "" : "; last attempt: " + cause_);
  if (state_ == NodeState::kSucceeded) return end(succeeded_here(sentence));
  end(known_end(End{1, sentence, std::nullopt}));
}

// All ranks of this node have exited with 0. If those of the other nodes have, the run succeeded;
// if not, their nodes have the failure and tell it.
End Membership::succeeded_here(const std::string& why_unknown) const {
  return End{0,
             "all ranks of this node exited with code 0; how the other nodes ended is unknown: " +
                 why_unknown,
             std::nullopt};
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
  std::optional<TimePoint> next;
  const auto take = [&next](TimePoint one) {
    if (!next || one < *next) next = one;
  };
  if (!verdict_) {
    if (const auto* down = std::get_if<Down>(&link_); down != nullptr && down->retry_at) {
      take(*down->retry_at);
    }
    if (const auto* connecting = std::get_if<Connecting>(&link_)) {
      take(connecting->since + kConnectMax);
    }
    if (is_up()) take(heard() + options_.hello.terms.silence_max());
    if (const Greeted* greeted = greeting()) take(greeted->beat_at);
    if (leave_until_) take(*leave_until_);
    if (!answered()) take(coordinator_deadline());
  }
  if (wait_ && waits_since_) take(*waits_since_ + kQuietMax);
  for (const ReleasedStore& store : released_) take(store.close_at);
  if (!next) {
    armed_.reset();
    return;
  }
  if (armed_ && *armed_ > now_ && *armed_ <= *next) return;
  armed_ = next;
  actions_.emplace_back(ArmTimer{*next});
}

}  // namespace ddprun::client
