#include "agent/warm/processes.hpp"

#include <unistd.h>

#include "tests/support/catch.hpp"

namespace ddprun::warm {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a process that is ready has starved when it has not run, one that sleeps as counted") {
  const Processor before{milliseconds(20), milliseconds(5), false};
  const Duration since = milliseconds(500);
  const auto starved = [&](int ran, int waited, bool ready) {
    return Processor{milliseconds(ran), milliseconds(waited), ready}.starved(before, since);
  };
  CHECK(starved(20, 5, true) == since);
  CHECK(starved(120, 5, true) == milliseconds(400));
  CHECK(starved(520, 5, true) == Duration(0));  // it runs in circles
  CHECK(starved(20, 5, false) == Duration(0));  // it is stopped
  CHECK(starved(21, 305, false) == milliseconds(300));
  CHECK(starved(21, 3000, false) == since);
}

TEST_CASE("the processor that this process has had is read from the kernel, of none it is zero") {
  const Processor now = processor_of(::getpid());
  CHECK(now.ready);
  CHECK(now.ran >= Duration(0));
  const Processor gone = processor_of(0);
  CHECK(!gone.ready);
  CHECK(gone.ran == Duration(0));
  CHECK(!has_ready_member(::getpid()));
}

}  // namespace
}  // namespace ddprun::warm
