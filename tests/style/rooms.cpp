// The include directions, in one table. A file belongs to the row with the longest matching path.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/style/rules.hpp"

namespace ddprun::style {
namespace {

enum class Core { kPure, kShell };

struct Room {
  std::string_view path;                      // prefix of a file's path
  std::vector<std::string_view> may_include;  // rooms besides itself; "*": every room
  std::vector<std::string_view> never;        // third-party headers, as prefixes
  Core core = Core::kShell;
};

constexpr std::string_view kAsio = "boost/asio";
constexpr std::string_view kProcess = "boost/process";
constexpr std::string_view kJson = "boost/json";
constexpr std::string_view kLog = "spdlog/";
constexpr std::string_view kOptions = "CLI/";
constexpr std::string_view kTorch = "torch/";
constexpr std::string_view kTensor = "ATen/";

// Third-party headers that a room must not know: all of them; a pure room may read and write JSON.
const std::vector<std::string_view> kAll{kAsio, kProcess, kJson, kLog, kOptions, kTorch, kTensor};
const std::vector<std::string_view> kAllButJson{kAsio, kProcess, kLog, kOptions, kTorch, kTensor};

const std::vector<Room> kRooms{
    {"base/", {}, kAll, Core::kPure},
    {"net/", {"base/"}, {kProcess, kOptions, kTorch, kTensor}},
    // The store: wire and store are pure, the server around them is the shell.
    {"rendezvous/store/",
     {"base/"},
     {kAsio, kProcess, kLog, kOptions, kTorch, kTensor},
     Core::kPure},
    {"rendezvous/store/serve", {"base/", "net/", "rendezvous/store/"}, {kProcess, kTorch, kTensor}},
    // A round speaks in the protocol's plain structs: a message means one thing everywhere.
    {"rendezvous/round/", {"base/", "rendezvous/protocol/"}, kAll, Core::kPure},
    {"rendezvous/protocol/", {"base/"}, {kAsio, kProcess, kLog, kTorch, kTensor}, Core::kPure},
    {"rendezvous/coordinator/",
     {"base/", "net/", "rendezvous/round/", "rendezvous/protocol/", "rendezvous/store/"},
     {kProcess, kTorch, kTensor}},
    {"rendezvous/client/",
     {"base/", "net/", "rendezvous/client/", "rendezvous/protocol/"},
     {kProcess, kOptions, kTorch, kTensor}},
    // The agent's side of the protocol decides without a socket, the shell around it has one.
    {"rendezvous/client/membership", {"base/", "rendezvous/protocol/"}, kAll, Core::kPure},
    {"rendezvous/etcd/",
     {"base/", "net/", "rendezvous/protocol/", "rendezvous/etcd/"},
     {kProcess, kLog, kOptions, kTorch, kTensor}},
    // Who coordinates is decided without a socket.
    {"rendezvous/etcd/election",
     {"base/", "rendezvous/protocol/", "rendezvous/etcd/"},
     kAll,
     Core::kPure},
    {"launcher/",
     {"base/", "agent/", "rendezvous/coordinator/", "launcher/"},
     {kProcess, kTorch, kTensor}},
    // The processes above the agent: little memory, so nothing of Asio or the log.
    {"launcher/front/", {"base/", "agent/proc/"}, kAll},
    // It is linked into training programs, so it has no dependencies.
    {"worker_api/", {}, kAll},
    {"trainer/", {"worker_api/"}, {kAsio, kProcess}},
    {"tests/", {"*"}, {}},
    {"bench/", {"*"}, {}},
    {"examples/", {"*"}, {}},
};

// The command line: options < request < machine < {schedulers, rendezvous, workers} < configure <
// commands < the program.
const std::vector<Room> kLauncherRooms{
    {"launcher/options/", {"base/", "agent/proc/files"}, kAll},
    {"launcher/request/",
     {"base/", "agent/config/", "agent/proc/numa", "rendezvous/coordinator/http",
      "launcher/options/"},
     kAll,
     Core::kPure},
    {"launcher/machine/",
     {"base/", "agent/devices/", "agent/proc/", "launcher/options/", "launcher/request/"},
     kAll},
    {"launcher/schedulers/",
     {"base/", "launcher/options/", "launcher/request/", "launcher/machine/machine"},
     kAll,
     Core::kPure},
    {"launcher/rendezvous/",
     {"base/", "agent/config/", "launcher/options/", "launcher/request/", "launcher/machine/"},
     kAll},
    {"launcher/workers/",
     {"base/", "agent/config/", "agent/devices/", "agent/proc/numa", "launcher/options/",
      "launcher/request/", "launcher/machine/machine"},
     kAll,
     Core::kPure},
    {"launcher/configure",
     {"base/", "agent/config/", "agent/coordinate/preview", "launcher/options/",
      "launcher/request/", "launcher/machine/machine", "launcher/schedulers/",
      "launcher/rendezvous/", "launcher/workers/"},
     kAll},
    {"launcher/commands/",
     {"base/", "agent/control/", "agent/explain/", "agent/proc/", "launcher/options/",
      "launcher/machine/", "launcher/configure"},
     {kAsio, kProcess, kLog, kOptions, kTorch, kTensor}},
};

// The agent decides here, without a process or a socket.
const std::vector<Room> kPureAgentRooms{
    {"agent/config/", {"base/"}, kAll, Core::kPure},
    {"agent/report/", {"base/", "agent/config/"}, kAllButJson, Core::kPure},
    {"agent/explain/", {"base/"}, kAllButJson, Core::kPure},
    {"agent/watch/", {"base/", "agent/config/", "agent/report/"}, kAllButJson, Core::kPure},
    // The order of events on one node, for the agent and for the simulator.
    {"agent/node/",
     {"base/", "rendezvous/client/membership", "agent/config/", "agent/report/", "agent/watch/"},
     kAll,
     Core::kPure},
};

// The agent acts here.
const std::vector<Room> kAgentRooms{
    {"agent/proc/", {"base/", "net/"}, {kProcess, kLog, kOptions, kTorch, kTensor}},
    {"agent/output/",
     {"base/", "net/", "rendezvous/client/membership", "agent/config/", "agent/report/",
      "agent/proc/"},
     {kProcess, kOptions, kTorch, kTensor}},
    {"agent/devices/", {"base/", "agent/proc/"}, {kProcess, kLog, kOptions, kTorch, kTensor}},
    {"agent/events/",
     {"base/", "net/", "rendezvous/client/membership", "rendezvous/protocol/", "agent/config/",
      "agent/report/", "agent/watch/", "agent/node/", "agent/output/", "agent/events/"},
     {kProcess, kOptions, kTorch, kTensor}},
    {"agent/events/event.", {"base/", "agent/config/", "agent/report/"}, kAllButJson, Core::kPure},
    {"agent/events/metrics.", {"base/", "agent/events/event."}, kAllButJson, Core::kPure},
    {"agent/events/torch_events.",
     {"base/", "agent/config/", "agent/events/event."},
     kAllButJson,
     Core::kPure},
    // It knows what a user may ask of a run, and nothing of how a run works.
    {"agent/control/",
     {"base/", "net/", "agent/config/received_signal", "agent/proc/"},
     {kProcess, kOptions, kTorch, kTensor}},
    {"agent/worker_link/",
     {"base/", "net/", "worker_api/", "agent/config/", "agent/report/", "agent/watch/",
      "agent/proc/", "agent/control/directory"},
     {kProcess, kJson, kTorch}},
    // Which workers start from a template is decided without a process or a socket.
    {"agent/warm/core/", {"base/"}, {kAsio, kProcess, kJson, kLog, kOptions}, Core::kPure},
    {"agent/warm/",
     {"base/", "net/", "agent/config/", "agent/proc/", "agent/warm/core/"},
     {kProcess, kJson, kLog, kOptions}},
    {"agent/workers/",
     {"base/", "net/", "rendezvous/client/membership", "agent/config/", "agent/report/",
      "agent/watch/", "agent/node/", "agent/proc/", "agent/output/", "agent/devices/",
      "agent/events/", "agent/warm/", "agent/worker_link/", "agent/control/status"},
     {kProcess, kOptions, kTorch, kTensor}},
    // Where the coordinator is: elsewhere, here, or about to be.
    {"agent/coordinate/",
     {"base/", "net/", "rendezvous/client/", "rendezvous/coordinator/server", "rendezvous/etcd/",
      "rendezvous/protocol/", "rendezvous/store/", "agent/config/", "agent/proc/", "agent/output/"},
     {kProcess, kOptions, kTorch, kTensor}},
    // A single node is a run with one member: its coordinator is the pure core itself.
    {"agent/coordinate/in_process_link",
     {"base/", "rendezvous/client/", "rendezvous/round/"},
     {kProcess, kOptions, kTorch, kTensor}},
    {"agent/coordinate/preview",
     {"base/", "rendezvous/round/", "agent/"},
     {kAsio, kJson, kLog, kOptions}},
    // One rule says who fits into a run, also before this node coordinates it.
    {"agent/coordinate/elected_seat",
     {"base/", "rendezvous/client/", "rendezvous/etcd/", "rendezvous/protocol/",
      "rendezvous/round/admission", "agent/"},
     {kProcess, kOptions, kTorch, kTensor}},
    {"agent/",
     {"base/", "net/", "rendezvous/client/", "agent/"},
     {kProcess, kOptions, kTorch, kTensor}},
};

const Room* room_of(std::string_view path) {
  const Room* best = nullptr;
  for (const auto* rooms : {&kRooms, &kLauncherRooms, &kPureAgentRooms, &kAgentRooms}) {
    for (const Room& room : *rooms) {
      if (path.starts_with(room.path) && (!best || room.path.size() > best->path.size())) {
        best = &room;
      }
    }
  }
  return best;
}

/// The path between the quotes or angle brackets of an include line.
std::string_view included(std::string_view line) {
  const std::size_t open = line.find_first_of("\"<");
  if (open == std::string_view::npos) {
    return {};
  }
  const std::size_t close = line.find_first_of("\">", open + 1);
  return line.substr(open + 1, close - open - 1);
}

bool starts_with_any(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [text](std::string_view prefix) {
    return prefix == "*" || text.starts_with(prefix);
  });
}

void check_line(const SourceFile& file, const Room& room, std::string_view line, int number,
                Violations& violations) {
  const std::string_view header = included(line);
  const bool ours = line.find('"') != std::string_view::npos;
  const auto report = [&](const std::string& sentence) {
    violations.push_back({file.path, number, "include", sentence});
  };
  if (starts_with_any(header, room.never)) {
    report(std::string(room.path) + " must not know <" + std::string(header) + ">");
  }
  if (!ours) {
    return;
  }
  const Room* target = room_of(header);
  if (!target) {
    report("\"" + std::string(header) + "\" is in no room: write it from the repository root");
  } else if (target->path != room.path && !starts_with_any(header, room.may_include)) {
    report(std::string(room.path) + " must not include " + std::string(target->path));
  }
}

}  // namespace

void check_includes(const SourceFile& file, Violations& violations) {
  const Room* room = file.language == Language::kCpp ? room_of(file.path) : nullptr;
  if (!room) {
    return;
  }
  const auto text = lines_of(file.text);
  const auto code = lines_of(file.code);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (code[i].starts_with("#include")) {
      check_line(file, *room, text[i], static_cast<int>(i) + 1, violations);
    }
  }
}

bool is_pure_core(std::string_view path) {
  const Room* room = room_of(path);
  return room && room->core == Core::kPure;
}

}  // namespace ddprun::style
