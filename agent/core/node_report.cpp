#include "agent/core/node_report.hpp"

#include "agent/core/text.hpp"
#include "base/count_text.hpp"
#include "base/duration_text.hpp"
#include "base/exit_status.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

std::string nodes_text(int least, int most) {
  const std::string nodes = count_text(most, "node");
  return least == most ? nodes : std::to_string(least) + " to " + nodes;
}

}  // namespace

std::string node_start_line(const NodeStartFacts& facts) {
  std::string text = "ddprun " + facts.version + " run " + printable(facts.run.value()) + ": " +
                     nodes_text(facts.nodes_min, facts.nodes_max) + ", coordinator " +
                     printable(facts.coordinator);
  if (facts.host == NodeStartFacts::Host::kHere) text += " (this node)";
  text += ", " + ranks_text(facts.workers) + " here";
  if (!facts.log_dir.empty()) text += ", logs " + printable(facts.log_dir);
  return text + "; shutdown timeout " + duration_text(facts.shutdown_timeout) + ", max restarts " +
         std::to_string(facts.max_restarts);
}

std::string run_note(const std::string& text) {
  return "ddprun: note [RUN] " + printable(text);
}

std::string run_done_line(const std::string& text, Duration took, NodePart part) {
  std::string line = "ddprun: done: " + printable(text) + "; after " + duration_text(took);
  if (part == NodePart::kTrained) return line;
  return line + "; this node was a spare: its workers never started";
}

std::string leaving_line(int signal) {
  return "ddprun: note [STOP] " + signal_name(signal) + " received, leaving the run";
}

std::string left_line(int signal) {
  return "ddprun: note [STOP] left the run, no worker was running; exit " +
         std::to_string(128 + signal);
}

}  // namespace ddprun
