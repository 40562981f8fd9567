#include "rendezvous/etcd/elector.hpp"

#include <time.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <utility>

namespace ddprun::etcd {

namespace asio = boost::asio;

namespace {

/// It counts while the machine sleeps, as etcd's clock does.
TimePoint boot_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return TimePoint(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace

class Elector::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const asio::any_io_executor& executor, ElectorOptions options, ElectorUser& user)
      : executor_(executor),
        keys_(std::move(options.keys)),
        agent_(options.election.agent),
        within_(std::max<Duration>(std::chrono::seconds(1), options.election.ttl / 3)),
        user_(&user),
        client_(executor, std::move(options.client)),
        election_(std::move(options.election), boot_now()),
        timer_(executor),
        settled_(executor) {}

  void start() {
    asio::post(executor_, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && self->user_) self->perform(self->election_.begin(boot_now()));
    });
  }
  void close() {
    user_ = nullptr;
    timer_.cancel();
    settled_.cancel();
  }
  [[nodiscard]] bool may_act() const { return boot_now() < election_.acts_until(); }

  /// What an action causes at once waits until the other actions of its step are carried out.
  void feed(Event event) {
    events_.push_back(std::move(event));
    if (std::exchange(feeding_, true)) return;
    while (!events_.empty() && user_ != nullptr) {
      const Event next = std::move(events_.front());
      events_.pop_front();
      perform(election_.step(next, boot_now()));
    }
    feeding_ = false;
    settled_.cancel();
  }

  static asio::awaitable<void> resign(std::shared_ptr<Impl> self) {
    const TimePoint end = Clock::now() + kResignMax;
    const auto moved = asio::as_tuple(asio::use_awaitable);
    while (!self->election_.is_recorded() && Clock::now() < end) {
      self->settled_.expires_at(end);
      co_await self->settled_.async_wait(moved);
    }
    self->feed(Resign{});
    while (self->revoking_ > 0 && Clock::now() < end) {
      self->settled_.expires_at(end);
      co_await self->settled_.async_wait(moved);
    }
  }

 private:
  void perform(const Actions& actions) {
    for (const Action& action : actions) {
      if (user_ == nullptr) return;
      std::visit([this](const auto& one) { act(one); }, action);
    }
  }

  /// `read` makes the event of an answer's body; nullopt: it is no answer of etcd.
  template <class Read>
  void ask(RequestId id, const std::string& path, std::string body, Read read) {
    client_.call(path, std::move(body), within_,
                 [this, weak = weak_from_this(), id, path, read](const Reply& reply) {
                   const auto self = weak.lock();
                   if (self == nullptr || user_ == nullptr) return;
                   std::optional<Event> event;
                   if (reply.answered) event = read(reply.body);
                   if (event) return feed(std::move(*event));
                   const std::string why = reply.answered
                                               ? "an answer to " + path + " that etcd does not give"
                                               : reply.failure;
                   feed(Failed{id, why, reply.reach, reply.refused});
                 });
  }

  void act(const AskLook& look) {
    ask(look.id, "/v3/kv/txn", look_body(keys_),
        [id = look.id](const std::string& body) -> std::optional<Event> {
          auto answer = read_look(body);
          if (!answer) return std::nullopt;
          return Looked{id, std::move(*answer)};
        });
  }
  void act(const AskGrant& grant) {
    ask(grant.id, "/v3/lease/grant", grant_body(grant.ttl),
        [id = grant.id](const std::string& body) -> std::optional<Event> {
          const auto answer = read_grant(body);
          if (!answer) return std::nullopt;
          return Granted{id, *answer};
        });
  }
  void act(const AskCampaign& campaign) {
    auto offered = user_->offer(client_.own_address());
    if (!offered) {
      user_->note("this node cannot coordinate: " + offered.error().sentence);
      return feed(Failed{campaign.id, offered.error().sentence, Reach::kServer});
    }
    offered->agent = agent_;
    ask(campaign.id, "/v3/kv/txn",
        campaign_body(keys_, campaign.lease, *offered, campaign.record_revision),
        [this, id = campaign.id](const std::string& body) -> std::optional<Event> {
          auto answer = read_campaign(body);
          if (!answer) return std::nullopt;
          if (!answer->won) user_->withdraw();
          return Campaigned{id, std::move(*answer)};
        });
  }
  void act(const AskRenew& renew) {
    ask(renew.id, "/v3/lease/keepalive", lease_body(renew.lease),
        [id = renew.id](const std::string& body) -> std::optional<Event> {
          const auto ttl = read_renewal(body);
          if (!ttl) return std::nullopt;
          return Renewed{id, *ttl};
        });
  }
  // Under a lease of its own, so that nothing of a run stays for ever.
  void act(const AskRecord& write) {
    client_.call("/v3/lease/grant", grant_body(write.ttl), within_,
                 [this, weak = weak_from_this(), write](const Reply& reply) {
                   const auto self = weak.lock();
                   if (self == nullptr || user_ == nullptr) return;
                   const auto granted = reply.answered ? read_grant(reply.body) : std::nullopt;
                   if (!granted) return feed(Failed{write.id, reply.failure, reply.reach});
                   put_record(write, granted->lease);
                 });
  }
  void put_record(const AskRecord& write, LeaseId lease) {
    ask(write.id, "/v3/kv/txn",
        record_body(keys_, write.term, lease, write.record, write.record_revision),
        [id = write.id, term = write.term](const std::string& body) -> std::optional<Event> {
          const auto answer = read_recorded(body);
          if (!answer) return std::nullopt;
          const bool leads = answer->written || (answer->key && answer->key->term == term);
          return Recorded{id, leads, answer->written, answer->record_revision};
        });
  }
  void act(const AskWatch& watch) {
    client_.watch(
        watch_body(keys_, watch.from), within_,
        [this, weak = weak_from_this(), id = watch.id](std::string_view line) {
          const auto self = weak.lock();
          if (self == nullptr || user_ == nullptr) return;
          auto answer = read_watch(line);
          if (answer && answer->changed) feed(Watched{id, std::move(answer->key)});
          if (answer && !answer->ended.empty()) feed(WatchEnded{id, answer->ended});
        },
        [this, weak = weak_from_this(), id = watch.id](const std::string& why) {
          const auto self = weak.lock();
          if (self != nullptr && user_ != nullptr) feed(WatchEnded{id, why});
        });
  }
  void act(const Revoke& revoke) {
    ++revoking_;
    client_.call("/v3/lease/revoke", lease_body(revoke.lease), within_,
                 [this, weak = weak_from_this()](const Reply& /*reply*/) {
                   const auto self = weak.lock();
                   if (self == nullptr) return;
                   --revoking_;
                   settled_.cancel();
                 });
  }
  void act(const Follow& follow) { user_->follow(follow.leader); }
  void act(const Lead& lead) { user_->lead(lead.term, lead.record); }
  void act(const Kept& kept) { user_->recorded(kept.record); }
  void act(const Act&) { user_->act(); }
  void act(const StepDown&) { user_->step_down(); }
  void act(const Await&) { user_->await_etcd(); }
  void act(const Note& note) { user_->note(note.text); }
  void act(const Bar& bar) { user_->bar(bar.why); }
  void act(const Refuse& refuse) { user_->refuse(refuse.why); }
  void act(const ArmTimer& timer) {
    timer_.expires_after(timer.deadline - boot_now());
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
      const auto self = weak.lock();
      if (!cancelled && self != nullptr && self->user_ != nullptr) self->feed(Tick{});
    });
  }

  asio::any_io_executor executor_;
  Keys keys_;
  std::string agent_;
  Duration within_;
  ElectorUser* user_;  // null once closed
  Client client_;
  Election election_;
  asio::steady_timer timer_;
  asio::steady_timer settled_;  // a condition variable, for resign()
  std::deque<Event> events_;
  bool feeding_ = false;
  int revoking_ = 0;
};

Elector::Elector(asio::any_io_executor executor, ElectorOptions options, ElectorUser& user)
    : impl_(std::make_shared<Impl>(executor, std::move(options), user)) {}

Elector::~Elector() {
  impl_->close();
}

void Elector::start() {
  impl_->start();
}

void Elector::set_record(const RunRecord& record) {
  impl_->feed(RecordChanged{record});
}

bool Elector::may_act() const {
  return impl_->may_act();
}

asio::awaitable<void> Elector::resign() {
  return Impl::resign(impl_);
}

}  // namespace ddprun::etcd
