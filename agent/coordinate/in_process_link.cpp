#include "agent/coordinate/in_process_link.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>
#include <variant>

#include "rendezvous/round/run.hpp"

namespace ddprun {

namespace asio = boost::asio;

class InProcessLink::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const asio::any_io_executor& executor, const RunId& run, Sink sink)
      : executor_(executor), sink_(std::move(sink)), run_(options_of(run)), timer_(executor) {}

  void connect(client::LinkId link) {
    link_ = link;
    deliver(client::LinkUp{link});
  }
  void send(client::LinkId link, const protocol::Message& message) {
    if (link != link_) return;
    perform(run_.step(round::Received{round::LinkId(link), round::Peer{}, message}, Clock::now()));
  }
  void close(client::LinkId link) {
    if (link != link_) return;
    link_ = 0;
    perform(run_.step(round::LinksLost{{{round::LinkId(link), "closed"}}}, Clock::now()));
  }
  void shut() {
    sink_ = {};
    timer_.cancel();
  }

 private:
  static round::RunOptions options_of(const RunId& run) {
    round::RunOptions options{run, "in-process"};
    options.single_node = true;
    return options;
  }

  void deliver(client::Event event) {
    asio::post(executor_, [self = shared_from_this(), event = std::move(event)] {
      if (self->sink_) self->sink_(event);
    });
  }
  void perform(round::Actions actions) {
    for (round::Action& action : actions) {
      std::visit([this](auto& one) { act(one); }, action);
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
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
      if (!cancelled && self->sink_) self->perform(self->run_.step(round::Tick{}, Clock::now()));
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
};

InProcessLink::InProcessLink(asio::any_io_executor executor, const RunId& run, Sink sink)
    : impl_(std::make_shared<Impl>(executor, run, std::move(sink))) {}

InProcessLink::~InProcessLink() {
  impl_->shut();
}

void InProcessLink::connect(client::LinkId link) {
  impl_->connect(link);
}

void InProcessLink::send(client::LinkId link, const protocol::Message& message) {
  impl_->send(link, message);
}

void InProcessLink::close(client::LinkId link) {
  impl_->close(link);
}

asio::awaitable<void> InProcessLink::flush() {
  co_return;
}

}  // namespace ddprun
