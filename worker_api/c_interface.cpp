// Implements worker.h with worker.hpp. Throws no exceptions and writes no field beyond the caller's
// struct_size.
#include <errno.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "worker_api/worker.h"
#include "worker_api/worker.hpp"

namespace {

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

std::string fill(ddprun_worker& out, const ddprun::WorkerEnvironment& in) {
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

int read_into(ddprun_worker* worker, std::string& problem) {
  if (worker == nullptr || worker->struct_size < sizeof(std::size_t)) {
    problem = "ddprun_worker_read: set struct_size to sizeof(struct ddprun_worker) first";
    return -1;
  }
  const auto environment = ddprun::read_worker_environment(problem);
  if (!environment) return -1;
  ddprun_worker filled = {};
  problem = fill(filled, *environment);
  if (!problem.empty()) return -1;
  filled.struct_size = std::min(worker->struct_size, sizeof(filled));
  std::memcpy(worker, &filled, filled.struct_size);
  return 0;
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
