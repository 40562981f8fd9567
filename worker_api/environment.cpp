// Reads the variables that the launcher exports. Every error names the variable and its value.
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "worker_api/worker.hpp"

namespace ddprun {
namespace {

class Reader {
 public:
  Reader(const VariableLookup& lookup, std::string& problem) : lookup_(lookup), problem_(problem) {}

  [[nodiscard]] bool has(const char* name) const { return lookup_(name) != nullptr; }
  [[nodiscard]] std::string text(const char* name) const {
    const char* value = lookup_(name);
    return value == nullptr ? "" : value;
  }

  /// The number in `name`, or `fallback` if it is not set. Keeps the first problem.
  [[nodiscard]] int number(const char* name, int fallback) {
    const char* value = lookup_(name);
    if (value == nullptr) return fallback;
    int parsed = 0;
    const char* end = value + std::strlen(value);
    const auto [stop, error] = std::from_chars(value, end, parsed);
    if (error != std::errc() || stop != end || stop == value) {
      refuse(std::string(name) + "='" + value + "' is not a whole number");
    } else if (parsed < 0) {
      refuse(std::string(name) + "=" + value + " is negative");
    }
    return parsed;
  }

  [[nodiscard]] int required(const char* name) {
    if (!has(name))
      refuse(std::string(name) + " is not set, although other variables of a launcher are");
    return number(name, 0);
  }

  void refuse(const std::string& why) {
    if (problem_.empty()) problem_ = "worker environment: " + why;
  }
  [[nodiscard]] bool failed() const { return !problem_.empty(); }

 private:
  const VariableLookup& lookup_;
  std::string& problem_;
};

void check_below(Reader& reader, const char* name, int value, const char* limit_name, int limit) {
  if (value < limit) return;
  reader.refuse(std::string(name) + "=" + std::to_string(value) + " must be below " + limit_name +
                "=" + std::to_string(limit));
}

void read_store(Reader& reader, WorkerEnvironment& worker) {
  worker.use_agent_store = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (reader.has("MASTER_ADDR")) worker.master_addr = reader.text("MASTER_ADDR");
  const int port = reader.number("MASTER_PORT", 0);
  if (port > UINT16_MAX) reader.refuse("MASTER_PORT=" + std::to_string(port) + " is above 65535");
  worker.master_port = static_cast<std::uint16_t>(port);
  if (worker.world_size == 1) return;
  if (worker.master_addr.empty() || !reader.has("MASTER_ADDR")) {
    reader.refuse("MASTER_ADDR is not set, but WORLD_SIZE is above 1");
  }
  if (port == 0) reader.refuse("MASTER_PORT is not set, but WORLD_SIZE is above 1");
}

}  // namespace

std::optional<WorkerEnvironment> read_worker_environment(const VariableLookup& lookup,
                                                         std::string& problem) {
  problem.clear();
  Reader reader(lookup, problem);
  WorkerEnvironment worker;
  worker.error_file = reader.text("TORCHELASTIC_ERROR_FILE");
  if (!reader.has("RANK") && !reader.has("WORLD_SIZE")) return worker;

  worker.launched = true;
  worker.rank = reader.required("RANK");
  worker.world_size = reader.required("WORLD_SIZE");
  worker.local_rank = reader.number("LOCAL_RANK", 0);
  worker.local_world_size = reader.number("LOCAL_WORLD_SIZE", 1);
  worker.group_rank = reader.number("GROUP_RANK", 0);
  worker.group_world_size = reader.number("GROUP_WORLD_SIZE", 1);
  worker.restart_count = reader.number("TORCHELASTIC_RESTART_COUNT", 0);
  worker.max_restarts = reader.number("TORCHELASTIC_MAX_RESTARTS", 0);
  worker.round = reader.number("DDPRUN_ROUND", worker.restart_count + 1);
  worker.run_id = reader.text("TORCHELASTIC_RUN_ID");
  check_below(reader, "RANK", worker.rank, "WORLD_SIZE", worker.world_size);
  // Launchers other than torchrun and ddprun may set LOCAL_RANK without LOCAL_WORLD_SIZE.
  if (reader.has("LOCAL_WORLD_SIZE")) {
    check_below(reader, "LOCAL_RANK", worker.local_rank, "LOCAL_WORLD_SIZE",
                worker.local_world_size);
  }
  read_store(reader, worker);
  if (reader.failed()) return std::nullopt;
  return worker;
}

std::optional<WorkerEnvironment> read_worker_environment(std::string& problem) {
  return read_worker_environment([](const char* name) { return std::getenv(name); }, problem);
}

}  // namespace ddprun
