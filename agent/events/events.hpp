// EventLog: what happens to the run on this node, as events.jsonl in its log directory, and
// result.json at the end (docs/EVENTS.md). Never waits: lines go to the thread of the log files,
// and a disk that is full or stalls costs lines, not training. Thread rule: the io_context's
// thread. Ownership: shares the file with the thread. Errors: one warning, never behind the report.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/events/event.hpp"
#include "agent/output/log_file.hpp"
#include "agent/output/log_tree.hpp"

namespace ddprun {

inline constexpr const char* kEventsFile = "events.jsonl";
inline constexpr const char* kResultFile = "result.json";

class EventLog {
 public:
  struct Options {
    enum class Place { kNowhere, kTemporary, kGiven };  // of the log directory
    Place place = Place::kTemporary;
    RunId run{};
    std::string host{};
    TimePoint started{};
  };
  EventLog(Options options, Warn warn);

  void record(RunEvent event);
  /// The report is the last word about a run: what fails behind it is not said.
  void report_is_told() { *told_ = true; }
  /// Sees every event, also where there is no file, until stop_observing() of the same owner.
  using Observer = std::function<void(const RunEvent& event, Duration since_start)>;
  void observe(const void* owner, Observer observer) {
    observers_.insert_or_assign(owner, std::move(observer));
  }
  void stop_observing(const void* owner) { observers_.erase(owner); }
  [[nodiscard]] Duration since_start() const { return Clock::now() - options_.started; }
  /// From now on lines go to this file.
  void write_to(std::shared_ptr<LogFile> file);
  [[nodiscard]] bool wants_file() const { return options_.place == Options::Place::kGiven; }
  /// The text of result.json.
  void set_result(std::string text) { result_ = std::move(text); }
  /// What is left to write when the run is over, for the thread of the log files: lines that have
  /// no file yet (a temporary directory gets one only if it stays), and the result.
  [[nodiscard]] std::function<void(LogTree&)> take_rest();

 private:
  void keep(const std::string& line);

  Options options_;
  std::shared_ptr<bool> told_ = std::make_shared<bool>(false);  // outlives this in the file
  Warn warn_;
  std::map<const void*, Observer> observers_;
  std::shared_ptr<LogFile> file_;
  std::string waiting_;  // whole lines that have no file
  std::string result_;
  std::uint64_t recorded_ = 0;
};

}  // namespace ddprun
