// The C++ interface of the link, with worker.h.
#include <algorithm>
#include <climits>

#include "worker_api/worker.h"
#include "worker_api/worker.hpp"

namespace ddprun {

int step_done(std::int64_t step) {
  return ddprun_worker_step_done(step);
}

int ready() {
  return ddprun_worker_ready();
}

int checkpoint_written(std::int64_t step, const std::string& path) {
  return ddprun_worker_checkpoint_written(step, path.c_str());
}

int handle_stop() {
  return ddprun_worker_handle_stop();
}

int stop_requested() {
  return ddprun_worker_stop_requested();
}

bool connected() {
  return ddprun_worker_connected() == 1;
}

int wait_for_stop(std::chrono::milliseconds timeout) {
  return ddprun_worker_wait_for_stop(
      static_cast<int>(std::clamp<std::int64_t>(timeout.count(), 0, INT_MAX)));
}

Section::Section(const std::string& name, std::chrono::milliseconds timeout)
    : number_(ddprun_worker_section_begin(name.c_str(), timeout.count())) {}

Section::~Section() {
  ddprun_worker_section_end(number_);
}

}  // namespace ddprun
