#include "agent/control/request.hpp"

#include <signal.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/printable.hpp"

namespace ddprun::control {

namespace {

namespace json = boost::json;

constexpr std::array<std::pair<std::string_view, Command>, 4> kCommands{
    {{"status", Command::kStatus},
     {"signal", Command::kSignal},
     {"stop", Command::kStop},
     {"stacks", Command::kStacks}}};

constexpr std::size_t kQuotedBytesMax = 64;
// Nesting of a request's JSON.
constexpr std::size_t kRequestDepthMax = 4;

Error malformed(const std::string& what) {
  return {ErrorKind::kUsage, "the request is malformed: " + what};
}

bool flag_in(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::string answer(bool done, std::string_view text, json::object object = {}) {
  object["ok"] = done;
  object["text"] = clean_utf8(printable(text), kRequestBytesMax);
  return json::serialize(object) + "\n";
}

}  // namespace

Result<Request> parse_request(std::string_view line) {
  if (line.size() > kRequestBytesMax) return malformed("it is too long");
  json::parse_options options;
  options.max_depth = kRequestDepthMax;
  boost::system::error_code failed;
  const json::value value = json::parse({line.data(), line.size()}, failed, {}, options);
  const json::object* object = failed ? nullptr : value.if_object();
  if (object == nullptr) return malformed("it is not a JSON object");
  const json::value* name = object->if_contains("command");
  if (name == nullptr || !name->is_string()) return malformed("\"command\" is missing");
  const std::string_view command(name->get_string().data(), name->get_string().size());
  const auto known = std::find_if(kCommands.begin(), kCommands.end(),
                                  [&](const auto& entry) { return entry.first == command; });
  if (known == kCommands.end()) {
    const std::string quoted = clean_utf8(printable(command), kQuotedBytesMax);
    return malformed("this version does not know the command \"" + quoted + "\"");
  }
  Request request{known->second};
  if (request.command == Command::kStop) {
    request.all_nodes = flag_in(*object, "all_nodes");
    request.waits = flag_in(*object, "waits");
  }
  if (request.command != Command::kSignal) return request;
  const json::value* signal = object->if_contains("signal");
  const bool valid = signal != nullptr && signal->is_int64() && signal->get_int64() >= 1 &&
                     signal->get_int64() < NSIG;
  if (!valid) return malformed("\"signal\" is not the number of a signal");
  request.signal = static_cast<int>(signal->get_int64());
  request.force = flag_in(*object, "force");
  return request;
}

std::string encode(const Request& request) {
  json::object object;
  for (const auto& [name, command] : kCommands) {
    if (command == request.command) object["command"] = name;
  }
  if (request.command == Command::kSignal) object["signal"] = request.signal;
  if (request.all_nodes) object["all_nodes"] = true;
  if (request.waits) object["waits"] = true;
  if (request.force) object["force"] = true;
  return json::serialize(object) + "\n";
}

std::string encode(const Outcome& outcome) {
  return answer(true, outcome.text, {{"run_ended", outcome.run_ended}});
}

std::string encode_done(std::string_view text) {
  return answer(true, text);
}

std::string encode_refused(std::string_view sentence) {
  return answer(false, sentence);
}

}  // namespace ddprun::control
