#include "launcher/commands/runs.hpp"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <memory>

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

/// What it answers, without the end of the line.
Result<std::string> first_line_from(const std::string& path, const std::string& request) {
  const Descriptor socket(control::connect(path, static_cast<int>(control::kAnswerMax.count())));
  if (socket.get() < 0) return silent(errno);
  const ssize_t sent = ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(request.size())) return silent(sent < 0 ? errno : EPIPE);
  std::string line;
  std::array<char, 65536> piece{};
  while (line.size() <= control::kAnswerBytesMax) {
    const ssize_t count = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return silent(count < 0 ? errno : ECONNRESET);
    line.append(piece.data(), static_cast<std::size_t>(count));
    if (line.back() != '\n') continue;
    line.pop_back();
    return line;
  }
  return silent(EMSGSIZE);
}

Result<json::object> answer_of(const std::string& path, const control::Request& request) {
  const auto line = first_line_from(path, control::encode(request));
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

std::vector<FoundRun> find_runs(const Environment& environment) {
  std::vector<FoundRun> runs;
  for (const std::string& path : control::list_sockets(environment)) {
    auto answer = answer_of(path, {control::Command::kStatus});
    const bool ended = !answer && ::access(path.c_str(), F_OK) != 0;
    if (!ended) runs.push_back({path, answer ? std::move(*answer) : json::object()});
  }
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
  const auto answer = answer_of(run.socket, request);
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
