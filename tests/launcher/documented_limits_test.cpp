// The times, sizes and exit codes that the documents state are those of the code.
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/control/server.hpp"
#include "agent/node/kill_order.hpp"
#include "agent/node/local_round.hpp"
#include "agent/node/spare_pool.hpp"
#include "agent/node/worker_group.hpp"
#include "agent/output/console_queue.hpp"
#include "agent/output/lines.hpp"
#include "agent/output/output.hpp"
#include "agent/output/prefixed_lines.hpp"
#include "agent/proc/stacks.hpp"
#include "agent/warm/core/stock.hpp"
#include "agent/watch/device_release.hpp"
#include "agent/watch/rank_watches.hpp"
#include "agent/worker_link/server.hpp"
#include "agent/workers/output_end.hpp"
#include "agent/workers/round.hpp"
#include "base/exit_status.hpp"
#include "base/format.hpp"
#include "base/limits.hpp"
#include "base/restart_pace.hpp"
#include "base/secret.hpp"
#include "base/signals.hpp"
#include "launcher/front/supervisor.hpp"
#include "launcher/options/option_table.hpp"
#include "net/connect.hpp"
#include "net/disk_thread.hpp"
#include "net/http.hpp"
#include "rendezvous/client/connection.hpp"
#include "rendezvous/client/link.hpp"
#include "rendezvous/client/membership.hpp"
#include "rendezvous/coordinator/daemon.hpp"
#include "rendezvous/coordinator/links.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/protocol/messages.hpp"
#include "rendezvous/round/run.hpp"
#include "tests/support/catch.hpp"

namespace ddprun {
namespace {

std::string in_seconds(Duration duration) {
  return seconds_text(duration) + " s";
}

std::string bytes(std::size_t count) {
  return bytes_text(static_cast<std::int64_t>(count));
}

std::string document(const std::string& name) {
  std::ifstream file(DDPRUN_DOCUMENTS "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

void check_stated(const std::string& name, const std::vector<std::string>& sentences) {
  const std::string text = document(name);
  REQUIRE_FALSE(text.empty());
  for (const std::string& sentence : sentences) {
    CAPTURE(name, sentence);
    CHECK(text.find(sentence) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("what ddprun config shows of an option that is unset is what holds then") {
  CHECK(spec_of(OptionId::kShutdownTimeout).unset == seconds_text(kShutdownTimeoutDefault));
  CHECK(spec_of(OptionId::kRejoinTimeout).unset == seconds_text(kRejoinTimeoutDefault));
}

TEST_CASE("the failure table states the limits of workers and consoles as they are") {
  const std::string per_second = std::to_string(std::chrono::seconds(1) / round::kSignalInterval);
  check_stated(
      "internals/FAILURES.md",
      {
          "do not answer within " + duration_text(warm::kAnswerMax) + " are killed",
          "it is waited for up to " + duration_text(warm::kAllAnswersMax) + ", since a cold",
          "one that does not end is killed after " + duration_text(warm::kHelloMax) + " |",
          "told from " + duration_text(kStragglersQuietMax) +
              " on; then SIGTERM, and SIGKILL "
              "after " +
              duration_text(kStragglerGrace) + "; the run has succeeded",
          "told after " + duration_text(kFirstPartialNote) + ", and after " +
              duration_text(kSecondPartialNote) + " with what the others do",
          "are saved and grouped, within " + in_seconds(kStacksMax) + "; other failures",
          "on its stderr within " + in_seconds(kStacksBeforeKill) + ", without a core",
          "have their stacks, all within " + in_seconds(kStacksMax) + " |",
          "named after " + duration_text(kWaitAfterKill) + " with its state",
          "the next round here waits, up to " + duration_text(kDeviceReleaseMax) + ";",
          "the next round starts after " + duration_text(kDeviceReleaseMax) + " with a warning",
          "that it used in the last " + seconds_text(kCpuSampleInterval) + " to " +
              duration_text(2 * kCpuSampleInterval) + ";",
          "it is heard for " + in_seconds(kHearing) + " before the others are stopped",
          "every " + duration_text(kCountdownInterval) + " the time left and the ranks",
          "passes over /proc for " + duration_text(front::kSweepMax) + " at most",
          "the end of the run wait for it until it has taken nothing for " +
              duration_text(kConsoleFlushMax),
          "the console accepts nothing for " + duration_text(kConsoleStallMax) + " |",
          "a report waits " + duration_text(kEvidenceMax) + " for what lies in files",
          "at most " + bytes(kLineBytesMax) + " are kept",
          "after " + in_seconds(kDrainMax) + " the pipe is closed",
          "then the delay doubles from " + in_seconds(kRestartDelayMin) + " to " +
              duration_text(kRestartDelayMax) +
              ", reported once, until a round lives longer "
              "than " +
              duration_text(kQuickFailureMax) + ", or all",
          std::to_string(round::kSignalBurst) + " at once, then " + per_second + " per second",
          "(`--shutdown-timeout` + " + duration_text(kWaitAfterKill) + "), at most " +
              duration_text(kStopMargin - kWaitAfterKill) + " longer",
          std::to_string(net::kHttpConnectionsMax) + " at a time, each for at most " +
              duration_text(net::kHttpTimeMax) + " and " + bytes(net::kHttpHeadBytesMax) + ";",
      });
}

TEST_CASE("the failure table states the limits of nodes and coordinators as they are") {
  const coordinator::Limits limits;
  const std::string after_stop = "`--shutdown-timeout` + ";
  check_stated(
      "internals/FAILURES.md",
      {
          "waited for " + duration_text(round::kGiveUpMax) + "; the failure is told without",
          "it ends within " + duration_text(client::kHurryMax) + " with the failure's first line",
          "--shutdown-timeout + " + duration_text(kStopMargin) +
              ", or a second signal; a node "
              "that leaves waits for that and says so after " +
              duration_text(client::kQuietMax),
          "after " + duration_text(client::kQuietMax) + " the wait is reported with the connected",
          "retried; after " + duration_text(client::kQuietMax) + " the cause is reported",
          "beyond " + bytes(coordinator::kLogBytesMax) + " lines are lost",
          std::to_string(coordinator::kRunLinesMax) + " log lines of a run at once, then one per " +
              duration_text(coordinator::kRunLineInterval),
          "at " + bytes(limits.unsent_bytes) + " slow readers are lost",
          "at " + bytes(limits.partial_bytes) + " the oldest are closed",
          "lost when " + bytes(limits.link_unsent_bytes) + " is unsent",
          "| closed after " + duration_text(limits.idle_timeout) + " |",
          bytes(coordinator::kReceiveBytes) + " per turn: heartbeats",
          "reconnects with back-off up to " + duration_text(client::kRetryMax) + ",",
          "beyond the silence limit, " + duration_text(client::kHurryMax) + " after a second",
          "an attempt ends after " + in_seconds(client::kAttemptMax) + " |",
          "or after " + duration_text(net::kConnectStagger) + " of silence",
          "the wait is reported after " + duration_text(client::kQuietMax) + ", the cause after " +
              duration_text(protocol::Terms().silence_max()) + ";",
          "left " + after_stop + duration_text(kStopMargin + client::kLeaveMargin) +
              " after the last worker, " + duration_text(client::kHurryMax),
          "at most " + duration_text(protocol::kStopWaitMax) + " and " +
              duration_text(kStopMargin) + " |",
          "at " + bytes(client::kUnsentBytesMax) +
              " unsent the link is closed; at the end of the "
              "run it waits " +
              duration_text(client::kStallMax) + ", and " + duration_text(client::kFlushMax) +
              " for one that reads slowly",
          "a frame is empty or above " + bytes(protocol::kFrameBytesMax) + ",",
          "refused after " + duration_text(round::kAnswerMax) + ", the others continue",
          "do not answer within " + duration_text(round::kAnswerMax) + ", it leaves",
          "lists it as silent after " + duration_text(control::kAnswerMax) + ";",
          "cut off at " + bytes(control::kRequestBytesMax) + ", closed after " +
              duration_text(control::kRequestMax) + ",",
      });
}

TEST_CASE("other documents state the limits as they are") {
  const std::string signals = std::to_string(round::kSignalBurst) + " at once, then " +
                              std::to_string(std::chrono::seconds(1) / round::kSignalInterval) +
                              " per second";
  check_stated("COMMANDS.md",
               {
                   "did not answer within " + duration_text(control::kAnswerMax) + ": ",
                   "of the round, within " + in_seconds(kStacksMax) + ".",
                   "comes to several nodes within " + duration_text(kSignalMergeWindow) + " is",
                   "(at most " + bytes(control::kRequestBytesMax) + ", within " +
                       duration_text(control::kRequestMax) + ")",
                   "serves " + std::to_string(control::kConnectionsMax) + " connections",
               });
  check_stated("internals/LINK.md",
               {
                   "plus " + duration_text(kStopMargin) + "; one above " +
                       duration_text(protocol::kStopWaitMax) + " counts",
                   "late agents for another " + duration_text(coordinator::kOverKept),
                   "the agent has " + duration_text(round::kLingerMax) + " to disconnect",
                   "| one frame | " + bytes(protocol::kFrameBytesMax) + " |",
                   "all nodes of a run | " + signals + " |",
               });
  check_stated("internals/WORKER_LINK.md",
               {
                   "| until hello | " + duration_text(worker_link::kHelloMax) + " |",
                   "| " + std::to_string(worker_link::kPacketBurst) + " at once, then " +
                       std::to_string(std::chrono::seconds(1) / worker_link::kPacketInterval) +
                       " per second |",
                   "| connections that wait | " + std::to_string(worker_link::kBacklog) + " |",
               });
  check_stated("RECOVERY.md",
               {
                   "| " + duration_text(kWarmAfterDefault) + " after all workers of a round run",
                   "forked " + duration_text(warm::kRefillAfter) + " after all ranks",
                   "no answer within " + duration_text(warm::kAnswerMax) + " of the question",
                   "no processor does not count, up to " + duration_text(warm::kAllAnswersMax),
               });
  check_stated("RECOVERY.md",
               {
                   "`--rejoin-timeout` (" + seconds_text(kRejoinTimeoutDefault) + " s)",
                   "not end it within " + duration_text(kWaitAfterKill) + ", the round ends",
                   "is replaced after " + duration_text(kSpareAgainMin) +
                       ", then after 2 s, 4 s, "
                       "... up to " +
                       duration_text(kSpareAgainMax) + ",",
               });
  const protocol::Terms terms;
  check_stated(
      "TORCHRUN.md",
      {
          "within " + in_seconds(kSecretLineWait) + "; workers get the rest",

          "| `--failure-grace=TIME` | ddprun's own, " + seconds_text(kFailureGraceDefault) + ", ",
          "| `--straggler-timeout` | ddprun's own, " + seconds_text(kStragglerTimeoutDefault) +
              " |",
          "the silence limit (" + duration_text(terms.silence_max()) + ")",
          "repeatedly fail within " + duration_text(kQuickFailureMax) +
              ", the delay "
              "doubles from " +
              in_seconds(kRestartDelayMin) + " to " + duration_text(kRestartDelayMax),
          "at the latest after " + duration_text(kDeviceReleaseMax + kHiddenHolderMax),
          "a console that takes nothing for " + duration_text(kConsoleStallMax) + " |",
          "every " + duration_text(kProgressInterval) + " |",
      });
}

TEST_CASE("the documents state the exit codes as they are") {
  const auto row = [](int code, const std::string& text) {
    return "| " + std::to_string(code) + " | " + text;
  };
  check_stated("EXIT_CODES.md", {
                                    row(kExitUsage, "the command line, a variable"),
                                    row(kExitNotExecutable, "the program cannot be executed"),
                                    row(kExitNotFound, "the program, or its interpreter"),
                                    row(kExitJoinTimeout, "fewer than MIN nodes joined"),
                                    row(kExitRefused, "the coordinator refused this node"),
                                    row(kExitNodeLost, "nodes were lost"),
                                    row(kExitCoordinatorLost, "the coordinator was lost"),
                                    row(kExitHang, "`--hang-timeout` ended the run"),
                                    row(kExitFinishTimeout, "`--finish-timeout` ended the run"),
                                    row(kExitUnkillable, "a worker survived SIGKILL"),
                                    row(kExitSleep, "a worker was in uninterruptible sleep"),
                                });
  const auto code = [](int number) { return "exit code " + std::to_string(number); };
  check_stated("internals/FAILURES.md",
               {
                   "named, then the round fails like after an exit: a restart is used; " +
                       code(kExitHang) + " |",
                   "then the round fails; " + code(kExitFinishTimeout) + " |",
                   "the run ends without a restart: " + code(kExitSleep) + ",",
                   "what ends it; " + code(kExitJoinTimeout) + " at the timeout",
                   "the cause is reported; " + code(kExitJoinTimeout) + " at the timeout",
                   "both values and what to do, " + code(kExitRefused) + ";",
                   "coordinator says so itself; " + code(kExitRefused) + " |",
                   "within a second, " + code(kExitRefused) + ", unless one was there before",
                   "it waits for nodes, " + code(kExitNodeLost) + " after `join_timeout`",
                   "up to join_timeout, then " + code(kExitNodeLost) + " |",
                   "are stopped, the coordinator is named, " + code(kExitCoordinatorLost) + " |",
                   "names rank and section; " + code(kExitHang) + " |",
                   "path and reason, " + code(kExitNotFound) + "; " +
                       std::to_string(kExitNotExecutable) + "; no restart",
               });
}

}  // namespace ddprun
