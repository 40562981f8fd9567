// LiveRuns: which runs of a daemon have a round, kept in a file while there are any, so that a
// daemon that is started again tells the members of their rounds from strangers. For each run the
// file has its lineage, a random name that the authors of the run's rounds have in common
// (round/rounds.hpp): a member shows it with its claim, and no other process was told it.
//
// Thread rule: the io_context's thread; the file is written on the DiskThread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/quota.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "net/disk_thread.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::coordinator {

/// How long a run without agents is kept for its members, which try to connect once a second: from
/// the loss of the last one, or, by a daemon that was started again, from the first hello that it
/// handles.
inline constexpr std::chrono::seconds kMembersAwaited{5};

/// The file is written so many times at once, then once per interval: runs of strangers that begin
/// and end without pause do not wear out a disk.
inline constexpr int kSavesAtOnce = 64;
inline constexpr std::chrono::seconds kSaveInterval{1};

/// More runs than a daemon has by default: of those in the file that have not come back, the others
/// are dropped.
inline constexpr std::size_t kLiveRunsMax = 4096;

class LiveRuns : public std::enable_shared_from_this<LiveRuns> {
 public:
  using Warn = std::function<void(const std::string& sentence)>;

  /// Reads the file, if there is one. One that cannot be read, or that other users may write, is
  /// warned about, and no run is taken from it. `warn` is called at once or later.
  LiveRuns(std::string path, DiskThread thread, Warn warn);

  /// Whether the run had a round when the daemon before this one ended.
  [[nodiscard]] bool had_round(const RunId& run) const;
  /// Whether a hello shows that its node was in that round.
  [[nodiscard]] bool is_member(const protocol::Hello& hello) const;
  /// Whether a hello has to wait for the members of that run: it does not show that it is one.
  [[nodiscard]] bool is_held_back(const protocol::Hello& hello, TimePoint now);
  /// For the authors of a run that begins with this hello: the one in the file if it shows that,
  /// else a new one.
  [[nodiscard]] std::string lineage_for(const protocol::Hello& hello) const;

  /// The run has a round, whose author has this lineage.
  void keep(const RunId& run, const std::string& lineage);
  /// Begins what waits for its time: this process is about to end.
  void hurry();
  /// It has ended, unless a later one has its name.
  void forget(const RunId& run, const std::string& lineage);

 private:
  struct Live {
    std::string lineage;
    bool is_from_file = false;
  };
  void save();
  void write();
  void written(int error);

  const std::string path_;
  DiskThread thread_;
  Warn warn_;
  TimePoint awaited_until_;  // none before the first hello of such a run
  std::map<std::string, Live> runs_;
  bool is_saving_ = false;
  bool is_stale_ = false;  // it has changed since the text that is being written
  LogQuota quota_{kSavesAtOnce, kSaveInterval};
  boost::asio::steady_timer next_save_;  // runs only while the quota is used up
  bool has_warned_ = false;
  bool hurries_ = false;
};

/// Where a daemon at this address keeps them: in $STATE_DIRECTORY, $XDG_STATE_HOME/ddprun or
/// ~/.local/state/ddprun; empty without any of these, and with port 0, which is another one next
/// time.
[[nodiscard]] std::string live_runs_path(const std::string& bind, std::uint16_t port);

}  // namespace ddprun::coordinator
