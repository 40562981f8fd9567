// The C interface, worker.h, with worker.hpp; and the C++ interface of the link, with worker.h.
// Throws no exceptions and writes no field beyond the caller's struct_size.
#include <errno.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "worker_api/rounds.hpp"
#include "worker_api/worker.h"
#include "worker_api/worker.hpp"

namespace {

using ddprun::WorkerEnvironment;
using ddprun::World;

/// With a final NUL; cut where there is no room.
void copy_sentence(const std::string& sentence, char* problem, std::size_t size) {
  if (problem == nullptr || size == 0) return;
  const std::size_t length = std::min(sentence.size(), size - 1);
  std::memcpy(problem, sentence.data(), length);
  problem[length] = '\0';
}

bool copy_text(const std::string& text, char (&target)[DDPRUN_WORKER_TEXT_MAX]) {
  if (text.size() >= DDPRUN_WORKER_TEXT_MAX) return false;
  std::memcpy(target, text.c_str(), text.size() + 1);
  return true;
}

std::string fill(ddprun_worker& out, const WorkerEnvironment& in) {
  out.launched = in.launched ? 1 : 0;
  out.rank = in.rank;
  out.local_rank = in.local_rank;
  out.world_size = in.world_size;
  out.local_world_size = in.local_world_size;
  out.group_rank = in.group_rank;
  out.group_world_size = in.group_world_size;
  out.restart_count = in.restart_count;
  out.max_restarts = in.max_restarts;
  out.round = in.round;
  out.use_agent_store = in.use_agent_store ? 1 : 0;
  out.master_port = in.master_port;
  if (!copy_text(in.master_addr, out.master_addr)) return "MASTER_ADDR is too long";
  if (!copy_text(in.run_id, out.run_id)) return "TORCHELASTIC_RUN_ID is too long";
  return "";
}

/// As many fields as the caller has. Returns what is wrong, or nothing.
std::string copy_worker(ddprun_worker* worker, const WorkerEnvironment& environment) {
  if (worker == nullptr || worker->struct_size < sizeof(std::size_t)) {
    return "set struct_size to sizeof(struct ddprun_worker) first";
  }
  ddprun_worker filled = {};
  std::string problem = fill(filled, environment);
  if (!problem.empty()) return problem;
  filled.struct_size = std::min(worker->struct_size, sizeof(filled));
  std::memcpy(worker, &filled, filled.struct_size);
  return "";
}

int read_into(ddprun_worker* worker, std::string& problem) {
  const auto environment = ddprun::read_worker_environment(problem);
  if (!environment) return -1;
  problem = copy_worker(worker, *environment);
  return problem.empty() ? 0 : -1;
}

int fill_change(ddprun_worker_change* change, const World& world) {
  if (change == nullptr) return 0;
  if (change->struct_size < sizeof(std::size_t)) return EINVAL;
  ddprun_worker_change filled = {};
  filled.struct_size = std::min(change->struct_size, sizeof(filled));
  filled.cause = static_cast<int>(world.cause);
  filled.previous_rank = world.previous_rank;
  filled.previous_world_size = world.previous_world_size;
  std::memcpy(change, &filled, filled.struct_size);
  return 0;
}

int next_into(ddprun_worker* worker, ddprun_worker_change* change, int timeout_ms,
              std::string& problem) {
  World world;
  const int failed = ddprun::next_round(world, std::chrono::milliseconds(timeout_ms), problem);
  if (failed != 0) return failed;
  problem = copy_worker(worker, world);
  return problem.empty() ? fill_change(change, world) : EINVAL;
}

}  // namespace

int ddprun_worker_read(struct ddprun_worker* worker, char* problem, size_t problem_size) {
  try {
    std::string sentence;
    const int result = read_into(worker, sentence);
    copy_sentence(sentence, problem, problem_size);
    return result;
  } catch (const std::exception& error) {
    copy_sentence(error.what(), problem, problem_size);
    return -1;
  }
}

int ddprun_worker_ignore_sigpipe(void) {
  return ddprun::ignore_sigpipe();
}

int ddprun_worker_record_error(const char* message, const char* callstack) {
  if (message == nullptr) return EINVAL;
  try {
    return ddprun::record_error(message, callstack == nullptr ? "" : callstack);
  } catch (const std::exception&) {
    return ENOMEM;
  }
}

int ddprun_worker_survive(void) {
  return ddprun::survive();
}

int ddprun_worker_next_round(ddprun_worker* worker, ddprun_worker_change* change, int timeout_ms,
                             char* problem, size_t problem_size) {
  try {
    std::string sentence;
    const int failed = next_into(worker, change, timeout_ms, sentence);
    copy_sentence(sentence, problem, problem_size);
    return failed;
  } catch (const std::exception& error) {
    copy_sentence(error.what(), problem, problem_size);
    return EINVAL;
  }
}

int ddprun_worker_wait_for_place(int timeout_ms) {
  return ddprun::wait_for_place(std::chrono::milliseconds(timeout_ms));
}

int ddprun_worker_round_pending(void) {
  return ddprun::round_pending();
}

size_t ddprun_worker_variables(char* variables, size_t size) {
  auto& all = ddprun::worker_link::rounds();
  const std::lock_guard lock(all.mutex);
  std::string block;
  if (all.taken) {
    for (const auto& [name, value] : all.taken->variables) {
      block += name;
      block.append("=").append(value).push_back('\0');
    }
  }
  if (variables != nullptr) block.copy(variables, size);
  return block.size();
}

void ddprun_worker_on_round(ddprun_worker_round_callback callback, void* context) {
  if (callback == nullptr) return ddprun::on_round({});
  ddprun::on_round([callback, context](int round, World::Cause cause) {
    callback(round, static_cast<int>(cause), context);
  });
}

void ddprun_worker_sockets_begin(void) {
  ddprun::sockets_begin();
}

int ddprun_worker_sockets_end(void) {
  return ddprun::sockets_end();
}

int ddprun_worker_abandon_sockets(void) {
  return ddprun::abandon_sockets();
}

int ddprun_worker_agree(const char* name, const void* value, size_t size, void* agreed,
                        size_t* agreed_size, int timeout_ms) {
  const bool is_whole = name != nullptr && agreed != nullptr && agreed_size != nullptr;
  if (!is_whole || (value == nullptr && size > 0)) return EINVAL;
  try {
    std::string text(size == 0 ? "" : static_cast<const char*>(value), size);
    const int failed = ddprun::agree(name, text, std::chrono::milliseconds(timeout_ms));
    if (failed != 0) return failed;
    const std::size_t room = std::exchange(*agreed_size, text.size());
    if (text.size() > room) return ENOBUFS;
    std::memcpy(agreed, text.data(), text.size());
    return 0;
  } catch (const std::exception&) {
    return ENOBUFS;
  }
}

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
