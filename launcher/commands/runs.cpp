#include "launcher/commands/runs.hpp"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <chrono>
#include <utility>

#include "agent/control/directory.hpp"
#include "agent/control/limits.hpp"
#include "base/printable.hpp"
#include "launcher/commands/descriptor.hpp"

namespace ddprun::commands {

namespace {

namespace json = boost::json;

Error silent(int error) {
  const bool late = error == EAGAIN || error == EWOULDBLOCK;
  return {ErrorKind::kSystem, late ? "it does not answer; it may be stopped or very busy"
                                   : std::string("it does not answer: ") + ::strerror(error)};
}

using TimePoint = std::chrono::steady_clock::time_point;

/// A request that was sent, and the connection that brings its answer.
struct Asked {
  std::string path;
  Result<Descriptor> socket;
};

Asked send_to(const std::string& path, const control::Request& request) {
  Descriptor socket(control::connect(path, static_cast<int>(control::kAnswerMax.count())));
  if (socket.get() < 0) return {path, silent(errno)};
  const std::string line = control::encode(request);
  const ssize_t sent = ::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(line.size())) return {path, silent(sent < 0 ? errno : EPIPE)};
  return {path, std::move(socket)};
}

bool readable_before(int socket, TimePoint deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd one{socket, POLLIN, 0};
  return ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(0, left.count()))) == 1;
}

/// Without the end of the line.
Result<std::string> line_from(const Asked& asked, TimePoint deadline) {
  if (!asked.socket) return asked.socket.error();
  std::string line;
  std::array<char, 65536> piece{};
  while (line.size() <= control::kAnswerBytesMax) {
    if (!readable_before(asked.socket->get(), deadline)) return silent(EAGAIN);
    const ssize_t count = ::recv(asked.socket->get(), piece.data(), piece.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return silent(count < 0 ? errno : ECONNRESET);
    line.append(piece.data(), static_cast<std::size_t>(count));
    if (line.back() != '\n') continue;
    line.pop_back();
    return line;
  }
  return silent(EMSGSIZE);
}

Result<json::object> answer_from(const Asked& asked, TimePoint deadline) {
  const auto line = line_from(asked, deadline);
  if (!line) return line.error();
  boost::system::error_code failed;
  json::value value = json::parse(*line, failed);
  if (failed || !value.is_object()) return Error(ErrorKind::kSystem, "its answer is malformed");
  return std::move(value.get_object());
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

// All are asked before one is waited for: those that do not answer cost the time of one.
std::vector<FoundRun> find_runs(const Environment& environment) {
  std::vector<Asked> asked;
  for (const std::string& path : control::list_sockets(environment)) {
    asked.push_back(send_to(path, {control::Command::kStatus}));
  }
  const TimePoint deadline = std::chrono::steady_clock::now() + control::kAnswerMax;
  std::vector<FoundRun> runs;
  for (const Asked& one : asked) {
    auto answer = answer_from(one, deadline);
    const bool ended = !answer && ::access(one.path.c_str(), F_OK) != 0;
    if (!ended) runs.push_back({one.path, answer ? std::move(*answer) : json::object()});
  }
  std::stable_sort(runs.begin(), runs.end(), [](const FoundRun& a, const FoundRun& b) {
    return number_in(a.status, "started_ms") < number_in(b.status, "started_ms");
  });
  return runs;
}

Result<FoundRun> find_run(const std::string& name, const Environment& environment) {
  const auto runs =
      only(find_runs(environment), [](const FoundRun& run) { return run.answered(); });
  const std::string shown = printable(name);
  auto found = only(runs, [&](const FoundRun& run) {
    return text_in(run.status, "run_id") == shown ||
           std::to_string(number_in(run.status, "pid")) == name;
  });
  if (found.empty() && !name.empty()) {
    found = only(runs, [&](const FoundRun& run) {
      return text_in(run.status, "run_id").starts_with(shown);
    });
  }
  if (found.size() == 1) return std::move(found.front());
  const std::string subject = "run " + shown;
  if (found.empty()) {
    return Error(ErrorKind::kNotFound, "no " + subject +
                                           " of this user is active on this machine; \"ddprun ps\" "
                                           "lists all");
  }
  return Error(ErrorKind::kNotFound, subject + " is not unique here: " + run_names(found) +
                                         "; give the full run id or the pid");
}

Result<std::string> ask(const FoundRun& run, const control::Request& request) {
  const TimePoint deadline = std::chrono::steady_clock::now() + control::kAnswerMax;
  const auto answer = answer_from(send_to(run.socket, request), deadline);
  const std::string who = "run " + text_in(run.status, "run_id") + ": ";
  if (!answer) return Error(ErrorKind::kSystem, who + answer.error().sentence);
  const json::value* done = answer->if_contains("ok");
  const std::string text = text_in(*answer, "text");
  if (done == nullptr || !done->is_bool() || !done->get_bool()) {
    return Error(ErrorKind::kSystem, who + text);
  }
  return text;
}

}  // namespace ddprun::commands
