#include "launcher/commands/runs.hpp"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <chrono>
#include <utility>

#include "agent/control/directory.hpp"
#include "agent/control/request.hpp"
#include "agent/proc/process_table.hpp"
#include "base/printable.hpp"
#include "base/signals.hpp"
#include "launcher/commands/commands.hpp"

namespace ddprun::commands {

namespace {

namespace json = boost::json;

Error silent(int error) {
  const bool late = error == EAGAIN || error == EWOULDBLOCK;
  const std::string seconds = std::to_string(control::kAnswerMax.count());
  return {ErrorKind::kSystem,
          late ? "no answer within " + seconds + " s" : std::string(::strerror(error))};
}

Asked send_to(const std::string& path, const control::Request& request) {
  Descriptor socket(control::connect(path, static_cast<int>(control::kAnswerMax.count())));
  if (socket.number() < 0) return {path, silent(errno)};
  const std::string line = control::encode(request);
  const ssize_t sent = ::send(socket.number(), line.data(), line.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(line.size())) return {path, silent(sent < 0 ? errno : EPIPE)};
  return {path, std::move(socket)};
}

/// Also at its end.
bool readable_before(int socket, const AnswerDeadline& deadline) {
  for (;;) {
    using std::chrono::milliseconds;
    const auto now = std::chrono::steady_clock::now();
    const milliseconds left =
        deadline ? std::chrono::ceil<milliseconds>(*deadline - now) : milliseconds(-1);
    pollfd one{socket, POLLIN, 0};
    const int limit = deadline ? static_cast<int>(std::max<std::int64_t>(0, left.count())) : -1;
    const int ready = ::poll(&one, 1, limit);
    if (ready >= 0 || errno != EINTR) return ready == 1;
  }
}

/// Without the end of the line.
Result<std::string> line_from(const Asked& asked, const AnswerDeadline& deadline) {
  if (!asked.socket) return asked.socket.error();
  std::string line;
  std::array<char, 65536> piece{};
  while (line.size() <= control::kAnswerBytesMax) {
    if (!readable_before(asked.socket->number(), deadline)) return silent(EAGAIN);
    const int socket = asked.socket->number();
    const ssize_t seen = ::recv(socket, piece.data(), piece.size(), MSG_PEEK);
    if (seen < 0 && errno == EINTR) continue;
    if (seen <= 0) return silent(seen < 0 ? errno : ECONNRESET);
    // Another answer, which may have come as well, stays there.
    const auto* end = std::find(piece.data(), piece.data() + seen, '\n');
    const auto taken = static_cast<std::size_t>(std::min(end - piece.data() + 1, seen));
    if (::recv(socket, piece.data(), taken, 0) < 0) return silent(errno);
    line.append(piece.data(), taken);
    if (line.back() != '\n') continue;
    line.pop_back();
    return line;
  }
  return silent(EMSGSIZE);
}

Result<json::object> answer_from(const Asked& asked, const AnswerDeadline& deadline) {
  const auto line = line_from(asked, deadline);
  if (!line) return line.error();
  boost::system::error_code failed;
  json::value value = json::parse(*line, failed);
  if (failed || !value.is_object()) return Error(ErrorKind::kSystem, "its answer is malformed");
  return std::move(value.get_object());
}

/// What it wrote when it began to listen; empty: nothing.
json::object told_before(const std::string& path) {
  boost::system::error_code failed;
  json::value value = json::parse(control::read_about(path), failed);
  return failed || !value.is_object() ? json::object() : std::move(value.get_object());
}

std::string run_names(const std::vector<FoundRun>& runs) {
  std::string text;
  for (const FoundRun& run : runs) {
    text += (text.empty() ? "" : ", ") + text_in(run.status, "run_id") + " (pid " +
            std::to_string(number_in(run.status, "pid")) + ")";
  }
  return text;
}

template <class Rule>
std::vector<FoundRun> only(const std::vector<FoundRun>& runs, Rule rule) {
  std::vector<FoundRun> chosen;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(chosen), rule);
  return chosen;
}

bool is_own(pid_t pid) {
  struct stat facts = {};
  const std::string path = "/proc/" + std::to_string(pid);
  return ::stat(path.c_str(), &facts) == 0 && facts.st_uid == ::geteuid();
}

/// The processes that users started as ddprun, of this user, as /proc shows them: each has a guard
/// below it.
std::vector<pid_t> running_fronts() {
  std::vector<pid_t> fronts;
  const bool read = for_each_process([&fronts](const ProcessEntry& process) {
    if (process.name == kGuardName && is_own(process.pid)) fronts.push_back(process.parent);
  });
  if (!read) return {};
  std::sort(fronts.begin(), fronts.end());
  return fronts;
}

/// Those of this run id or pid; if there are none, those whose id begins so.
std::vector<FoundRun> named(const std::vector<FoundRun>& runs, const std::string& name) {
  const std::string shown = printable(name);
  auto found = only(runs, [&](const FoundRun& run) {
    return text_in(run.status, "run_id") == shown || std::to_string(run.agent()) == name ||
           std::to_string(number_in(run.status, "pid")) == name;
  });
  if (!found.empty() || name.empty()) return found;
  return only(
      runs, [&](const FoundRun& run) { return text_in(run.status, "run_id").starts_with(shown); });
}

// All are asked before one is waited for: those that do not answer cost the time of one.
std::vector<FoundRun> ask(const std::vector<std::string>& paths) {
  std::vector<Asked> asked;
  for (const std::string& path : paths) {
    asked.push_back(send_to(path, {control::Command::kStatus}));
  }
  const AnswerDeadline deadline = soon();
  std::vector<FoundRun> runs;
  for (const Asked& one : asked) {
    auto answer = answer_from(one, deadline);
    FoundRun run{one.path, {}, answer.has_value()};
    if (!run.answered && run.has_ended()) continue;
    run.status = answer ? std::move(*answer) : told_before(one.path);
    runs.push_back(std::move(run));
  }
  return runs;
}

/// A ddprun of this user whose socket is not where this command looks, if there is one: a process
/// that runs proves nothing about a run's name, so it is told and not chosen.
std::string hidden_text(const std::vector<FoundRun>& runs) {
  std::string pids;
  for (const pid_t front : running_fronts()) {
    const bool known = std::any_of(runs.begin(), runs.end(), [front](const FoundRun& run) {
      return number_in(run.status, "pid") == front;
    });
    if (!known) pids += (pids.empty() ? "" : ", ") + std::to_string(front);
  }
  if (pids.empty()) return "";
  return "; ddprun also runs as pid " + pids +
         ", with its socket elsewhere (XDG_RUNTIME_DIR) or without one";
}

std::string unseen_text(const std::string& name, const std::vector<FoundRun>& runs) {
  return "no run " + printable(name) + " of this user is active on this machine" +
         hidden_text(runs) + "; \"ddprun ps\" lists all";
}

}  // namespace

std::int64_t number_in(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

std::string text_in(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return {};
  return printable({value->get_string().data(), value->get_string().size()});
}

int FoundRun::agent() const {
  return control::owner_of(socket);
}

AnswerDeadline soon() {
  return std::chrono::steady_clock::now() + control::kAnswerMax;
}

std::vector<FoundRun> find_runs(const Environment& environment) {
  auto runs = ask(control::list_sockets(environment));
  std::stable_sort(runs.begin(), runs.end(), [](const FoundRun& a, const FoundRun& b) {
    return number_in(a.status, "started_ms") < number_in(b.status, "started_ms");
  });
  return runs;
}

// Only those that may be meant are asked: another one that does not answer costs no time.
Result<FoundRun> find_run(const std::string& name, const Environment& environment) {
  std::vector<FoundRun> known;
  for (const std::string& path : control::list_sockets(environment)) {
    known.push_back({path, told_before(path)});
  }
  std::vector<std::string> paths;
  for (const FoundRun& run : named(known, name)) {
    if (!run.status.empty()) paths.push_back(run.socket);
  }
  for (const FoundRun& run : known) {  // an older version writes nothing, and may be meant
    if (run.status.empty()) paths.push_back(run.socket);
  }
  const auto runs = ask(paths);
  auto found = named(runs, name);
  // One that says nothing of itself may be meant.
  if (found.empty()) found = only(runs, [](const FoundRun& run) { return run.status.empty(); });
  if (found.empty()) return Error(ErrorKind::kNotFound, unseen_text(name, known));
  const bool one = found.size() == 1 || found.front().status.empty();
  if (one) return std::move(found.front());
  return Error(ErrorKind::kNotFound, "run " + printable(name) + " is not unique here: " +
                                         run_names(found) + "; give the full run id or the pid");
}

bool FoundRun::has_ended() const {
  return ::access(socket.c_str(), F_OK) != 0;
}

Asked send_to(const FoundRun& run, const control::Request& request) {
  return send_to(run.socket, request);
}

Answer answer_of(const Asked& asked, const AnswerDeadline& deadline) {
  auto answer = answer_from(asked, deadline);
  if (!answer) return {Answer::Kind::kSilent, answer.error().sentence};
  const json::value* done = answer->if_contains("ok");
  const bool is_done = done != nullptr && done->is_bool() && done->get_bool();
  const std::string text = text_in(*answer, "text");
  return {is_done ? Answer::Kind::kDone : Answer::Kind::kRefused, text, std::move(*answer)};
}

namespace {

/// Why it may be silent, as far as /proc tells.
std::string agent_text(int agent) {
  const auto process = agent > 0 ? find_process(agent) : std::nullopt;
  if (!process) return "";
  const std::string pid = std::to_string(agent);
  if (process->state == 'T' || process->state == 't') {
    return "its agent (pid " + pid + ") is stopped, and \"kill -CONT " + pid + "\" continues it; ";
  }
  return "its agent (pid " + pid + ") is in state " + std::string(1, process->state) +
         " and may be busy: try again; ";
}

}  // namespace

std::string silence_text(const FoundRun& run, const std::string& name, const std::string& why) {
  const std::string id = text_in(run.status, "run_id");
  const std::string seconds = std::to_string(control::kAnswerMax.count());
  std::string text = id.empty() ? "a ddprun that may be run " + printable(name) : "run " + id;
  text += " does not answer: " + (why.empty() ? "no answer within " + seconds + " s" : why);
  const std::int64_t front = number_in(run.status, "pid");
  const std::string whom = front > 0 ? std::to_string(front) : "PID";
  return text + "; its ranks may still run and hold their devices; " + agent_text(run.agent()) +
         "\"kill -KILL " + whom + "\"" + (front > 0 ? "" : " to the ddprun that was started") +
         " ends it here with its ranks";
}

int fail_silent(const FoundRun& run, const std::string& name, const std::string& why) {
  static_cast<void>(fail(silence_text(run, name, why)));
  return kCommandSilent;
}

}  // namespace ddprun::commands
