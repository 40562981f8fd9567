// LogTree: the directories of a run's log files, in torchrun's layout:
//   <base>/<run id>_<8>/attempt_<restart count>/<local rank>/{stdout.log,stderr.log,error.json}
// Thread rule: whatever takes long on a file system that stalls (open, attempt, keep_report,
// finish) runs on one DiskThread, the rest on the io_context's thread while none of these does.
// Ownership: owns a temporary base, nothing else; files are never deleted but by finish(). Errors:
// kUsage for a --log-dir that cannot be one, kSystem for what the file system refuses.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "agent/output/log_file.hpp"
#include "agent/proc/files.hpp"
#include "base/result.hpp"
#include "base/types.hpp"

namespace ddprun {

/// A process that has no place yet.
inline constexpr LocalRank kNoRank{-1};

/// The directory of one start of all workers. All paths are absolute; all are empty without files.
class AttemptLogs {
 public:
  AttemptLogs() = default;
  explicit AttemptLogs(Directory directory);
  /// Creates one of the files below; `bytes_max`: see LogRing, 0 for no limit. Fails with kSystem,
  /// the path and the reason.
  [[nodiscard]] Result<std::shared_ptr<LogFile>> create(const std::string& path,
                                                        const DiskThread& disk,
                                                        std::uint64_t bytes_max = 0) const;

  [[nodiscard]] bool files() const { return !directory_.empty(); }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] std::string stdout_log(LocalRank rank) const { return of(rank, "stdout.log"); }
  [[nodiscard]] std::string stderr_log(LocalRank rank) const { return of(rank, "stderr.log"); }
  [[nodiscard]] std::string error_file(LocalRank rank) const { return of(rank, "error.json"); }
  [[nodiscard]] std::string filtered_stdout_log() const { return here("filtered_stdout.log"); }
  /// Of a dump of stacks, `after` the start of ddprun: "stacks-600.118s.txt".
  [[nodiscard]] std::string stacks_file(std::chrono::milliseconds after) const;
  [[nodiscard]] std::string filtered_stderr_log() const { return here("filtered_stderr.log"); }

 private:
  [[nodiscard]] std::string of(LocalRank rank, const char* name) const;
  [[nodiscard]] std::string here(const char* name) const;

  std::string directory_;
  std::shared_ptr<const Directory> opened_;
};

struct LogTreeOptions {
  std::string dir;     // --log-dir; empty: a temporary one; "/dev/null": no files at all
  std::string tmpdir;  // $TMPDIR; empty: /tmp
  RunId run_id;

  /// The directory that is made, or in which one is made.
  [[nodiscard]] std::string place() const;
};

class LogTree {
 public:
  /// Makes the base directory: `dir` with its parents, or <tmpdir>/torchelastic_<8> with mode 0700.
  /// For root a tmpdir that another user owns is passed over; such a `dir` was named.
  [[nodiscard]] static Result<LogTree> open(const LogTreeOptions& options);
  /// Makes nothing: the directory that open() would make, or in which it would make one; empty
  /// without files. As far as permissions tell, it has the errors of open() and the first
  /// attempt().
  [[nodiscard]] static Result<std::string> look(const LogTreeOptions& options);
  /// The same in the first attempt(), with its errors.
  [[nodiscard]] static LogTree open_later(const LogTreeOptions& options);

  /// Makes the directories of one start of `workers` workers, the run directory (mode 0700) at the
  /// first call. A restart count that was used before in a lower round gets
  /// attempt_<count>_round_<round>: nothing is ever wiped. Directories that were removed since the
  /// last start, by a worker or by what cleans temporary files, are made again.
  [[nodiscard]] Result<AttemptLogs> attempt(RestartCount restart_count, Round round, int workers);

  /// Makes the directory of a process that waits for a place, <run>/spare_<number>; its files are
  /// those of AttemptLogs for kNoRank.
  [[nodiscard]] Result<AttemptLogs> spare(int number);

  /// Whether attempt() has made one.
  [[nodiscard]] bool has_attempt() const { return has_attempt_; }

  /// What finish() is to do with a temporary base; --log-dir is left alone in any case.
  void discard() { ending_ = Ending::kDiscard; }                  // after success
  void discard_if_empty() { ending_ = Ending::kDiscardIfEmpty; }  // after a failure
  /// Writes what the console did not take into a file of the tree, which stays then. Returns its
  /// path; fails with kSystem, or when there are no files at all.
  [[nodiscard]] Result<std::string> keep_report(const std::string& text);
  /// Creates a file beside the attempts, in the run's directory, which is made if need be.
  [[nodiscard]] Result<std::shared_ptr<LogFile>> create(const std::string& name,
                                                        const DiskThread& disk);
  /// The same with this text in it, at once complete or not there.
  [[nodiscard]] Result<void> keep_file(const std::string& name, const std::string& text);
  /// Whether anything is left when finish() is done.
  [[nodiscard]] bool stays() const;
  /// Removes a temporary base as was asked for. Call it when everything is said.
  void finish();

  /// As in the options; may be asked for at any time.
  [[nodiscard]] std::string place() const { return options_.place(); }
  [[nodiscard]] bool files() const { return base_.is_open(); }
  [[nodiscard]] const std::string& base() const { return base_.path(); }  // absolute
  /// For root: the sentence about a `dir` that another user owns; empty otherwise.
  [[nodiscard]] std::string foreign_sentence() const;
  /// Empty before the first attempt.
  [[nodiscard]] const std::string& run_directory() const { return run_.path(); }

 private:
  enum class Base { kGiven, kTemporary };
  enum class Ending { kKeep, kDiscardIfEmpty, kDiscard };
  explicit LogTree(const LogTreeOptions& options) : options_(options) {}
  [[nodiscard]] Result<void> open_base();
  [[nodiscard]] Result<void> make_run_directory();
  [[nodiscard]] Result<void> make_run_directory_again();
  [[nodiscard]] int make_attempt_directory(Directory& attempt, RestartCount restart_count,
                                           Round round) const;

  LogTreeOptions options_;  // never changed
  bool later_ = false;      // open_base() is still to be called
  Directory base_;
  Base kind_ = Base::kGiven;
  Ending ending_ = Ending::kKeep;
  Directory run_;
  bool has_attempt_ = false;
};

}  // namespace ddprun
