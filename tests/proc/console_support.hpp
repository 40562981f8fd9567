// What the tests of ConsoleWriter share.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "agent/output/console.hpp"
#include "agent/output/console_queue.hpp"
#include "base/process_setup.hpp"
#include "tests/proc/support.hpp"

namespace proc_test {

inline std::shared_ptr<ddprun::ConsoleWriter> writer(boost::asio::io_context& io, int descriptor) {
  ddprun::prepare_process();  // a closed console must not kill the test
  auto console = std::make_shared<ddprun::ConsoleWriter>(io.get_executor(), descriptor);
  console->hold_workers_up_for(ddprun::kConsoleStallAtStop);  // a test does not wait for a minute
  return console;
}

/// Lines of some 60 bytes.
inline std::string numbered(int first, int count) {
  std::string lines;
  for (int number = first; number < first + count; ++number) {
    lines += "line " + std::to_string(number) + " " + std::string(50, 'x') + "\n";
  }
  return lines;
}

}  // namespace proc_test
