// What an agent says, made by the functions that make it: a test of processes looks for the
// sentence of these workers and ranks, and the tests of the cores show how it reads.
#pragma once

#include <unistd.h>

#include <fstream>
#include <string>

#include "agent/report/lines.hpp"
#include "base/message_line.hpp"
#include "rendezvous/round/reasons.hpp"

namespace ddprun::test {

/// `text` up to the end of `part`: what follows is not known before, a pid or a duration.
inline std::string up_to(const std::string& part, const std::string& text) {
  return text.substr(0, text.find(part) + part.size());
}

/// A signal that this test sent.
inline ReceivedSignal from_test(int number) {
  std::ifstream comm("/proc/self/comm");
  std::string name;
  std::getline(comm, name);
  return {number, name + " (pid " + std::to_string(::getpid()) + ")"};
}

/// How the report of this worker's exit code begins, up to its pid.
inline std::string report_of(int rank, int local_rank) {
  return up_to("pid ", error_line("W-EXIT", who({Rank(rank), LocalRank(local_rank)})));
}

inline protocol::Terms restarts_of(int max) {
  protocol::Terms terms;
  terms.max_restarts = max;
  return terms;
}
/// The restart of a single node.
inline std::string restarted(int restart, int max) {
  return restart_line(round::reasons::round_of_one(Round(restart + 1), RestartCount(restart),
                                                   restarts_of(max), Duration(0)));
}
inline std::string none_left(int max) {
  return "not restarted: " + round::reasons::no_restart_left(restarts_of(max));
}

}  // namespace ddprun::test
