// bench_agents: lets N agents live through one run against a coordinator, and prints what each
// phase cost as one line of JSON. bench/rendezvous/agents.py starts the coordinator, runs it for
// several N and compares.
#include <sys/resource.h>

#include <cstdio>
#include <exception>
#include <string>

#include "bench/rendezvous/crowd.hpp"
#include "bench/support/process.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::bench;

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::size_t bytes_of(const std::vector<protocol::Message>& messages) {
  std::size_t bytes = 0;
  for (const auto& message : messages) {
    bytes += protocol::kFrameHeaderBytes + protocol::encode(message).size();
  }
  return bytes;
}

struct Phase {
  double wall_s = 0;
  double server_cpu_s = 0;
  double own_cpu_s = 0;
  std::size_t bytes_up = 0;
  std::size_t bytes_down = 0;
};

/// The part of a phase that follows when every agent has what it waited for (the coordinator still
/// reads their reports) counts as CPU time, not as wall time.
template <class Work>
Phase measure(Crowd& crowd, const std::string& server, double settle_cpu_s, Work work) {
  Phase phase;
  const double server_before = cpu_seconds(server);
  const double own_before = own_cpu_seconds();
  const TimePoint begin = Clock::now();
  work();
  phase.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  phase.own_cpu_s = own_cpu_seconds() - own_before;
  if (settle_cpu_s >= 0) crowd.settle();
  phase.server_cpu_s = cpu_seconds(server) - server_before - std::max(settle_cpu_s, 0.0);
  const Traffic traffic = crowd.take_traffic();
  phase.bytes_up = bytes_of(traffic.up) + traffic.links * sizeof(protocol::kMagic);
  phase.bytes_down = bytes_of(traffic.down);
  return phase;
}

void print(const char* name, const Phase& phase) {
  std::printf(
      "\"%s\": {\"wall_s\": %.6f, \"server_cpu_s\": %.6f, \"own_cpu_s\": %.6f, "
      "\"bytes_up\": %zu, \"bytes_down\": %zu}, ",
      name, phase.wall_s, phase.server_cpu_s, phase.own_cpu_s, phase.bytes_up, phase.bytes_down);
}

int run(const std::string& server, CrowdOptions options) {
  const std::size_t agents = options.agents;
  const std::size_t kib_before = private_kib(server);
  Crowd crowd(std::move(options));
  Phase join = measure(crowd, server, 0, [&] { crowd.join(); });
  const Phase beat = measure(crowd, server, -1, [&] { crowd.settle(); });
  join.server_cpu_s -= beat.server_cpu_s;  // what settle() costs was not known before
  const std::size_t kib = private_kib(server) - kib_before;
  const double settle = beat.server_cpu_s;
  const Phase loss = measure(crowd, server, settle, [&] { crowd.lose_one(); });
  const Phase failure = measure(crowd, server, settle, [&] { crowd.fail_one(); });
  const Phase end = measure(crowd, server, -1, [&] { crowd.succeed(); });
  std::printf("{\"agents\": %zu, ", agents);
  print("join", join);
  print("beat", beat);
  print("loss", loss);
  print("failure", failure);
  print("end", end);
  std::printf("\"private_kib\": %zu}\n", kib);
  return 0;
}

void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr,
                 "usage: bench_agents PORT PID RUN_ID AGENTS\n"
                 "PID: of the coordinator on 127.0.0.1:PORT, for its CPU time and memory.\n");
    return 2;
  }
  raise_descriptor_limit();
  try {
    CrowdOptions options;
    options.port = static_cast<std::uint16_t>(std::stoi(argv[1]));
    options.run_id = argv[3];
    options.agents = std::stoull(argv[4]);
    return run(argv[2], std::move(options));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_agents: %s\n", error.what());
    return 1;
  }
}
