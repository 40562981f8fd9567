// Implements worker.h with worker.hpp. Throws no exceptions and writes no field beyond the caller's
// struct_size.
#include <errno.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "worker_api/c_structs.hpp"

namespace ddprun {

void copy_sentence(const std::string& sentence, char* problem, std::size_t size) {
  if (problem == nullptr || size == 0) return;
  const std::size_t length = std::min(sentence.size(), size - 1);
  std::memcpy(problem, sentence.data(), length);
  problem[length] = '\0';
}

namespace {

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

}  // namespace

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

namespace {

int read_into(ddprun_worker* worker, std::string& problem) {
  const auto environment = read_worker_environment(problem);
  if (!environment) return -1;
  problem = copy_worker(worker, *environment);
  return problem.empty() ? 0 : -1;
}

}  // namespace

}  // namespace ddprun

int ddprun_worker_read(struct ddprun_worker* worker, char* problem, size_t problem_size) {
  try {
    std::string sentence;
    const int result = ddprun::read_into(worker, sentence);
    ddprun::copy_sentence(sentence, problem, problem_size);
    return result;
  } catch (const std::exception& error) {
    ddprun::copy_sentence(error.what(), problem, problem_size);
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
