#include "tests/sim/words.hpp"

#include "base/format.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/names.hpp"
#include "rendezvous/round/reasons.hpp"

namespace ddprun::sim {

using namespace protocol;
using round::reasons::ranks_text;

namespace {

[[nodiscard]] std::string number(int value) {
  return std::to_string(value);
}

[[nodiscard]] std::string tell(const Hello& hello) {
  std::string text = "hello, " + number(hello.local_world_size) +
                     (hello.local_world_size == 1 ? " worker" : " workers");
  if (hello.node_rank) text += ", node rank " + number(*hello.node_rank);
  if (hello.claim) {
    text += ", in round " + number(hello.claim->stamp.number.value()) + " (" +
            std::string(name_of(hello.claim->state)) + ")";
  }
  return text;
}
[[nodiscard]] std::string tell(const Refused& refused) {
  return "refused: " + refused.sentence;
}
[[nodiscard]] std::string tell(const Waiting& waiting) {
  return "waiting: " + waiting.text;
}
[[nodiscard]] std::string tell(const StartRound& start) {
  const int local = start.world_size.value();
  return "round " + number(start.stamp.number.value()) + ": node " + number(start.group_rank) +
         " of " + number(start.group_size) + ", first rank " + number(start.rank_base.value()) +
         " of " + number(local) + ", restarts " + number(start.restarts.value()) + ", store " +
         start.master_address + ":" + number(start.master_port);
}
[[nodiscard]] std::string tell(const Report& report) {
  std::string text =
      "report: round " + number(report.round.value()) + " " + std::string(name_of(report.state));
  if (report.failure) text += ", " + report.failure->status.text();
  return text;
}
[[nodiscard]] std::string tell(const Stop& stop) {
  return "stop round " + number(stop.round.value()) + ": " + stop.reason +
         (stop.requested ? " (requested)" : "");
}
[[nodiscard]] std::string tell(const Stopped& stopped) {
  return "stopped: round " + number(stopped.round.value());
}
[[nodiscard]] std::string tell(const Leave& leave) {
  return "leave: " + leave.reason;
}
[[nodiscard]] std::string tell(const Reconnecting& reconnecting) {
  return "reconnecting: " + reconnecting.reason;
}
[[nodiscard]] std::string tell(const Done& done) {
  return "done, exit " + number(done.exit_code) + ": " + done.text;
}
[[nodiscard]] std::string tell(const Beat& beat) {
  return beat.echo ? "beat to send back, " + number(*beat.echo) : "beat";
}
[[nodiscard]] std::string tell(const PassSignal& passed) {
  const std::string where = passed.host.empty() ? "" : ", which " + passed.host + " got";
  return "signal " + number(passed.signal) + " in round " + number(passed.round.value()) + where;
}
[[nodiscard]] std::string tell(const Quiet& quiet) {
  const std::string answer = quiet.echo ? ", answer " + number(*quiet.echo) : "";
  return "quiet for " + duration_text(quiet.lasts) + " in round " + number(quiet.round.value()) +
         answer;
}
[[nodiscard]] std::string tell(const Hang& hang) {
  const std::string text = hang.echo ? "look again, " + number(*hang.echo) : "give up";
  return text + ": all nodes are quiet in round " + number(hang.round.value());
}
[[nodiscard]] std::string tell(const Unknown& unknown) {
  return "unknown: " + unknown.sentence;
}
/// Messages without words of their own are told as they are sent.
template <class Other>
[[nodiscard]] std::string tell(const Other& other) {
  return encode(other);
}

}  // namespace

std::string words(const Message& message) {
  return std::visit([](const auto& one) { return tell(one); }, message);
}

bool is_heartbeat(const Message& message) {
  const auto* beat = std::get_if<Beat>(&message);
  return beat != nullptr && !beat->echo;
}

}  // namespace ddprun::sim
