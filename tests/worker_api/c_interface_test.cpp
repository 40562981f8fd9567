#include <errno.h>
#include <stdlib.h>

#include <cstring>
#include <string>

#include "tests/support/catch.hpp"
#include "worker_api/worker.h"

namespace {

class ScopedVariables {
 public:
  ScopedVariables(std::initializer_list<std::pair<const char*, const char*>> values)
      : values_(values) {
    for (const auto& [name, value] : values_) ::setenv(name, value, 1);
  }
  ScopedVariables(const ScopedVariables&) = delete;
  ScopedVariables& operator=(const ScopedVariables&) = delete;
  ~ScopedVariables() {
    for (const auto& [name, value] : values_) ::unsetenv(name);
  }

 private:
  std::vector<std::pair<const char*, const char*>> values_;
};

}  // namespace

TEST_CASE("the C interface reads the same environment") {
  const ScopedVariables variables({{"RANK", "3"},
                                   {"WORLD_SIZE", "4"},
                                   {"MASTER_ADDR", "node-1"},
                                   {"MASTER_PORT", "29500"},
                                   {"TORCHELASTIC_RUN_ID", "x"}});
  ddprun_worker worker = {};
  worker.struct_size = sizeof worker;
  char problem[64] = "untouched";
  REQUIRE(ddprun_worker_read(&worker, problem, sizeof problem) == 0);
  CHECK(worker.launched == 1);
  CHECK(worker.rank == 3);
  CHECK(worker.master_port == 29500);
  CHECK(std::string(worker.master_addr) == "node-1");
  CHECK(std::string(worker.run_id) == "x");
}

TEST_CASE("a sentence that does not fit is truncated") {
  const ScopedVariables variables({{"RANK", "nine"}, {"WORLD_SIZE", "4"}});
  ddprun_worker worker = {};
  worker.struct_size = sizeof worker;
  char problem[12] = "";
  CHECK(ddprun_worker_read(&worker, problem, sizeof problem) == -1);
  CHECK(std::strlen(problem) == sizeof problem - 1);
  CHECK(ddprun_worker_read(&worker, nullptr, 0) == -1);
}

TEST_CASE("a caller built against a shorter structure gets only its fields") {
  struct {
    ddprun_worker worker;
  } block;
  std::memset(&block, 0x5A, sizeof block);
  block.worker.struct_size = offsetof(ddprun_worker, world_size);
  REQUIRE(ddprun_worker_read(&block.worker, nullptr, 0) == 0);
  CHECK(block.worker.rank == 0);
  CHECK(block.worker.world_size == 0x5A5A5A5A);
}

TEST_CASE("an uninitialized structure and an overlong value are refused") {
  ddprun_worker worker = {};
  CHECK(ddprun_worker_read(&worker, nullptr, 0) == -1);
  CHECK(ddprun_worker_read(nullptr, nullptr, 0) == -1);
  const std::string run_id(DDPRUN_WORKER_TEXT_MAX, 'r');
  const ScopedVariables variables(
      {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"TORCHELASTIC_RUN_ID", run_id.c_str()}});
  worker.struct_size = sizeof worker;
  char problem[128] = "";
  CHECK(ddprun_worker_read(&worker, problem, sizeof problem) == -1);
  CHECK_THAT(std::string(problem), ContainsSubstring("TORCHELASTIC_RUN_ID"));
}

TEST_CASE("recording through C needs a message and tolerates a missing call stack") {
  CHECK(ddprun_worker_record_error(nullptr, nullptr) == EINVAL);
  ::unsetenv("TORCHELASTIC_ERROR_FILE");
  CHECK(ddprun_worker_record_error("x", nullptr) == ENOENT);
  CHECK(ddprun_worker_ignore_sigpipe() == 0);
}
