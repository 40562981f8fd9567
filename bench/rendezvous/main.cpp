// bench_agents: runs N agents through one run against a coordinator, and prints the cost of each
// phase as one line of JSON. bench/rendezvous/agents.py starts the coordinator, runs this for
// several N and compares.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <thread>

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

/// Waits until the process stops using CPU time, that is, has closed its connections.
void await_idle(const std::string& pid) {
  double before = -1;
  for (int times = 0; times < 500 && before != cpu_seconds(pid); ++times) {
    before = cpu_seconds(pid);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

enum class After { kNothing, kSettle, kIdle };

/// After every agent has its result, the coordinator still reads their reports; that part of a
/// phase counts as CPU time, not as wall time.
template <class Work>
Phase measure(Crowd& crowd, const std::string& server, After after, Work work) {
  Phase phase;
  const double server_before = cpu_seconds(server);
  const double own_before = own_cpu_seconds();
  const TimePoint begin = Clock::now();
  work();
  phase.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  phase.own_cpu_s = own_cpu_seconds() - own_before;
  if (after == After::kSettle) crowd.settle();
  if (after == After::kIdle) await_idle(server);
  phase.server_cpu_s = cpu_seconds(server) - server_before;
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
  Phase join = measure(crowd, server, After::kSettle, [&] { crowd.join(); });
  const Phase beat = measure(crowd, server, After::kNothing, [&] { crowd.settle(); });
  const std::size_t kib = private_kib(server) - kib_before;
  Phase loss = measure(crowd, server, After::kSettle, [&] { crowd.lose_one(); });
  Phase failure = measure(crowd, server, After::kSettle, [&] { crowd.fail_one(); });
  const Phase end = measure(crowd, server, After::kIdle, [&] { crowd.succeed(); });
  for (Phase* phase : {&join, &loss, &failure}) {  // minus the cost of settle()
    phase->server_cpu_s -= beat.server_cpu_s;
    phase->bytes_up -= beat.bytes_up;
    phase->bytes_down -= beat.bytes_down;
  }
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
  const std::string mode = argc == 6 ? argv[5] : "";
  if (mode != "time" && mode != "bytes") {
    std::fprintf(stderr,
                 "usage: bench_agents PORT PID RUN_ID AGENTS time|bytes\n"
                 "PID: of the coordinator on 127.0.0.1:PORT, to measure its CPU time and memory.\n"
                 "bytes: records and counts the messages, which increases the times.\n"
                 "DDPRUN_SECRET: the secret of the run; unset: links in clear text.\n");
    return 2;
  }
  raise_descriptor_limit();
  try {
    CrowdOptions options;
    options.port = static_cast<std::uint16_t>(std::stoi(argv[1]));
    options.run_id = argv[3];
    options.agents = std::stoull(argv[4]);
    if (auto secret = take_secret_variable(environ)) {
      options.tls = net::TlsContext::make(std::move(secret)).value();
    }
    options.keep_traffic = mode == "bytes" ? KeepTraffic::kYes : KeepTraffic::kNo;
    return run(argv[2], std::move(options));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_agents: %s\n", error.what());
    return 1;
  }
}
