#include "agent/coordinate/in_process_link.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>
#include <variant>

#include "rendezvous/round/run.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

round::RunOptions options_of(const RunId& run) {
  round::RunOptions options{run, "in-process"};
  options.single_node = true;
  return options;
}

/// Every event is posted, so that the agent is never called from inside one of its own calls.
class InProcessLink final : public client::CoordinatorLink {
 public:
  InProcessLink(const asio::any_io_executor& executor, const RunId& run, Sink sink)
      : executor_(executor), sink_(std::move(sink)), run_(options_of(run)), timer_(executor) {}

  void connect(client::LinkId link) override {
    link_ = link;
    deliver(client::LinkUp{link});
  }
  void send(client::LinkId link, const protocol::Message& message) override {
    if (link == link_) step(round::Received{round::LinkId(link), round::Peer{}, message});
  }
  void close(client::LinkId link) override {
    if (link != link_) return;
    link_ = 0;
    step(round::LinksLost{{{round::LinkId(link), "closed"}}});
  }
  asio::awaitable<void> flush() override { co_return; }

 private:
  void deliver(client::Event event) {
    asio::post(executor_, [this, weak = std::weak_ptr<int>(alive_), event = std::move(event)] {
      if (weak.lock() != nullptr) sink_(event);
    });
  }
  void step(const round::Event& event) {
    round::Actions actions = run_.step(event, Clock::now());
    for (round::Action& action : actions) {
      std::visit([this](auto& alternative) { act(alternative); }, action);
    }
  }
  void act(round::Send& action) {
    deliver(client::Incoming{action.link.value(), std::move(action.message)});
  }
  void act(const round::Close& action) {
    if (std::exchange(link_, 0) != 0) deliver(client::LinkDown{action.link.value(), "closed"});
  }
  void act(const round::ArmTimer& action) {
    timer_.expires_at(action.deadline);
    // A timer that has expired already is not cancelled any more.
    timer_.async_wait(
        [this, weak = std::weak_ptr<int>(alive_)](const boost::system::error_code& cancelled) {
          if (!cancelled && weak.lock() != nullptr) step(round::Tick{});
        });
  }
  void act(const round::Note&) {}  // the agent prints what concerns it
  void act(const round::Finish&) { timer_.cancel(); }
  void act(const round::Abdicate&) {}  // there is no other node
  void act(const round::Resign&) {}    // the same

  asio::any_io_executor executor_;
  Sink sink_;
  round::Run run_;
  asio::steady_timer timer_;
  client::LinkId link_ = 0;  // 0: none is up
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace

std::unique_ptr<client::CoordinatorLink> make_in_process_link(asio::any_io_executor executor,
                                                              const RunId& run,
                                                              client::CoordinatorLink::Sink sink) {
  return std::make_unique<InProcessLink>(executor, run, std::move(sink));
}

}  // namespace ddprun
