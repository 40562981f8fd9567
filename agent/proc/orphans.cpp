#include "agent/proc/orphans.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/proc/process_table.hpp"
#include "base/process_setup.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

bool orphans_come_here() {
  int subreaper = 0;
  return ::getpid() == 1 || (::prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper != 0);
}

}  // namespace

Orphans::Orphans(asio::any_io_executor executor) : ended_(std::move(executor)) {}

asio::awaitable<void> Orphans::reap() {
  if (!orphans_come_here()) co_return;
  ended_.add(SIGCHLD);
  unblock_signals({SIGCHLD});
  boost::system::error_code why;
  while (!why) {
    reap_ended();  // before the first signal too: an earlier program may have left some
    co_await ended_.async_wait(asio::redirect_error(asio::use_awaitable, why));
  }
}

// Child by child, because waiting for any child would collect the statuses of workers, and WNOWAIT
// never gets past a worker that has exited.
void Orphans::reap_ended() const {
  for (const pid_t child : children_of_this_process()) {
    siginfo_t ignored = {};
    if (own_.count(child) == 0) {
      ::waitid(P_PID, static_cast<id_t>(child), &ignored, WEXITED | WNOHANG);
    }
  }
}

}  // namespace ddprun
