// The C interface of rounds, with worker.hpp. Throws no exceptions.
#include <errno.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "worker_api/c_structs.hpp"
#include "worker_api/rounds.hpp"
#include "worker_api/worker.h"

namespace {

using ddprun::World;

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
  problem = ddprun::copy_worker(worker, world);
  return problem.empty() ? fill_change(change, world) : EINVAL;
}

}  // namespace

int ddprun_worker_survive(void) {
  return ddprun::survive();
}

int ddprun_worker_next_round(ddprun_worker* worker, ddprun_worker_change* change, int timeout_ms,
                             char* problem, size_t problem_size) {
  try {
    std::string sentence;
    const int failed = next_into(worker, change, timeout_ms, sentence);
    ddprun::copy_sentence(sentence, problem, problem_size);
    return failed;
  } catch (const std::exception& error) {
    ddprun::copy_sentence(error.what(), problem, problem_size);
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
