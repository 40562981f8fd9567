// store_load: runs one scenario against a c10d server and prints one line of JSON.
// bench/store/compare.py runs it against both servers.
#include <sys/resource.h>

#include <cstdio>
#include <exception>
#include <string>

#include "bench/store/scenarios.hpp"
#include "bench/support/process.hpp"

namespace {

using namespace ddprun::store::bench;

using ddprun::bench::cpu_seconds;
using ddprun::bench::resident_kib;

int usage() {
  std::fprintf(
      stderr,
      "usage: store_load PORT PID TAG SCENARIO [ARGUMENTS]\n"
      "  sequence VERB REQUESTS | loop VERB CONNECTIONS SECONDS | accept N | barrier N\n"
      "  nccl RANKS | gloo RANKS | set BYTES TIMES | get BYTES TIMES | fan BYTES WAITERS\n"
      "  memory CONNECTIONS\n"
      "PID: of the server, to measure its CPU time and memory. TAG: makes the keys unique.\n");
  return 2;
}

int run(int argc, char** argv) {
  if (argc < 6) return usage();
  const std::string pid = argv[2];
  const Target target{"127.0.0.1", static_cast<std::uint16_t>(std::stoi(argv[1])),
                      [pid] { return cpu_seconds(pid); }, argv[3]};
  const std::string scenario = argv[4];
  const std::string first = argv[5];
  const auto number = [&](int at) {
    return at < argc ? static_cast<std::size_t>(std::stoull(argv[at])) : std::size_t{0};
  };
  Measurement result;
  if (scenario == "memory") {
    std::size_t kib = 0;
    hold_idle(target, number(5), [&] { kib = resident_kib(pid); });
    std::printf("{\"resident_kib\": %zu}\n", kib);
    return 0;
  }
  if (scenario == "sequence") {
    result = in_sequence(target, first, number(6));
  } else if (scenario == "loop" && argc == 8) {
    result = closed_loop(target, first, number(6), std::stod(argv[7]));
  } else if (scenario == "accept") {
    result = accept(target, number(5));
  } else if (scenario == "barrier") {
    result = barrier(target, number(5));
  } else if (scenario == "nccl") {
    result = nccl_start(target, number(5));
  } else if (scenario == "gloo") {
    result = gloo_start(target, number(5));
  } else if (scenario == "set") {
    result = set_value(target, number(5), number(6));
  } else if (scenario == "get") {
    result = get_value(target, number(5), number(6));
  } else if (scenario == "fan") {
    result = fan_out(target, number(5), number(6));
  } else {
    return usage();
  }
  std::printf(
      "{\"wall_s\": %.9f, \"cpu_s\": %.9f, \"requests\": %zu, \"p50_us\": %.3f, "
      "\"p99_us\": %.3f}\n",
      result.wall_s, result.cpu_s, result.requests, result.p50_us, result.p99_us);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "store_load: %s\n", error.what());
    return 1;
  }
}
