#include "agent/proc/tool.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <optional>

#include "agent/proc/spawn.hpp"
#include "base/descriptor.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

struct Running {
  std::optional<Child> child;
  asio::posix::stream_descriptor output;
  asio::steady_timer limit;
};

bool start(Running& running, const asio::any_io_executor& executor, const Tool& tool) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const Descriptor output(ends[1]);
  boost::system::error_code why;
  running.output.assign(ends[0], why);
  if (why) {
    ::close(ends[0]);
    return false;
  }
  const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (nowhere.number() < 0) return false;
  SpawnRequest request;
  request.program = tool.program;
  request.argv = tool.argv;
  request.environment = tool.environment;
  request.stdout_fd = output.number();
  request.stderr_fd = nowhere.number();
  auto child = spawn(executor, request);
  if (child) running.child.emplace(std::move(*child));
  return running.child.has_value();
}

/// Its own coroutine, because a process in the kernel's hands is not waited for.
asio::awaitable<void> reap(std::shared_ptr<Running> running, Orphans& orphans) {
  const auto status = co_await running->child->wait();
  static_cast<void>(status);
  orphans.no_longer_except(running->child->pid());
}

}  // namespace

asio::awaitable<std::string> output_of(asio::any_io_executor executor, Orphans& orphans, Tool tool,
                                       std::size_t bytes_max, TimePoint deadline) {
  const auto running = std::make_shared<Running>(Running{
      {}, asio::posix::stream_descriptor(executor), asio::steady_timer(executor, deadline)});
  std::string text;
  if (!start(*running, executor, tool)) co_return text;
  orphans.except(running->child->pid());
  asio::co_spawn(executor, reap(running, orphans), asio::detached);
  running->limit.async_wait([running](const boost::system::error_code& why) {
    if (!why) running->output.close();
  });
  std::array<char, 16384> chunk{};
  const auto token = asio::as_tuple(asio::use_awaitable);
  while (text.size() < bytes_max) {
    const auto [why, bytes] = co_await running->output.async_read_some(asio::buffer(chunk), token);
    if (why) break;
    text.append(chunk.data(), std::min(bytes, bytes_max - text.size()));
  }
  running->limit.cancel();
  running->child->signal_group(SIGKILL);
  co_return text;
}

}  // namespace ddprun
