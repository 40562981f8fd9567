#include "rendezvous/protocol/codec.hpp"

#include <array>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "rendezvous/protocol/reader.hpp"
#include "rendezvous/protocol/writer.hpp"

namespace ddprun::protocol {
namespace {

namespace json = boost::json;

/// A Message of the type with this name.
template <std::size_t... I>
std::optional<Message> message_named(std::string_view name, std::index_sequence<I...>) {
  std::optional<Message> message;
  (void)((std::variant_alternative_t<I, Message>::kType == name &&
          (message.emplace(std::in_place_index<I>), true)) ||
         ...);
  return message;
}

/// What is wrong with the size of a text that is JSON; empty: nothing. An object is a hash table
/// whose keys the peer chooses, and no message needs a large one.
std::string excess_in(std::string_view body) {
  std::array<std::size_t, kDepthMax + 1> fields{};  // of the objects that are open; of arrays 0
  std::string open;                                 // the brackets of what is open
  std::size_t values = 1;
  bool quoted = false;
  for (std::size_t at = 0; at < body.size(); ++at) {
    const char one = body[at];
    if (quoted && one == '\\') {
      ++at;
    } else if (one == '"') {
      quoted = !quoted;
    } else if (quoted) {
      continue;
    } else if (one == '{' || one == '[') {
      if (open.size() == kDepthMax) return {};  // the parser refuses it
      open.push_back(one);
      fields[open.size()] = 1;
      ++values;
    } else if (one == '}' || one == ']') {
      if (!open.empty()) open.pop_back();
    } else if (one == ',') {
      ++values;
      const bool is_field = !open.empty() && open.back() == '{';
      if (is_field && ++fields[open.size()] > kFieldsMax) {
        return "an object has more than " + std::to_string(kFieldsMax) + " fields";
      }
    }
    if (values > kValuesMax) {
      return "it has more than " + std::to_string(kValuesMax) + " fields";
    }
  }
  return {};
}

Error malformed(const std::string& what) {
  return {ErrorKind::kUsage, "the peer's message is malformed: " + what};
}

}  // namespace

std::string_view type_of(const Message& message) {
  return std::visit([](const auto& known) { return known.kType; }, message);
}

std::string encode(const Message& message) {
  json::object object;
  object["type"] = type_of(message);
  Writer writer(object);
  std::visit([&writer](const auto& known) { fields(writer, known); }, message);
  std::string body = json::serialize(object);
  DDPRUN_ASSERT(body.size() <= kFrameBytesMax);
  return body;
}

Result<Message> decode(std::string_view body) {
  if (body.size() > kFrameBytesMax) return malformed("it is too long");
  if (body.size() > kFieldsMax) {  // a shorter one cannot have so many
    if (std::string excess = excess_in(body); !excess.empty()) return malformed(excess);
  }
  json::parse_options options;
  options.max_depth = kDepthMax;
  boost::system::error_code failed;
  json::monotonic_resource memory;
  const json::value value = json::parse(body, failed, &memory, options);
  if (failed) return malformed("it is not JSON (" + failed.message() + ")");
  const json::object* object = value.if_object();
  if (object == nullptr) return malformed("it is not a JSON object");
  const json::value* type = object->if_contains("type");
  if (type == nullptr || !type->is_string()) return malformed("field \"type\" is missing");
  const std::string_view name(type->get_string().data(), type->get_string().size());
  auto message = message_named(name, std::make_index_sequence<std::variant_size_v<Message>>());
  if (!message) {
    return Error(ErrorKind::kUnsupported, "this version knows no message \"" +
                                              clean_utf8(printable(name), kNameBytesMax) + "\"");
  }
  std::string error;
  Reader reader(*object, error);
  std::visit([&reader](auto& known) { fields(reader, known); }, *message);
  const auto* report = std::get_if<Report>(&*message);
  const bool lacks_failure =
      report != nullptr && report->state == NodeState::kFailed && !report->failure;
  if (lacks_failure && error.empty()) error = "field \"failure\" is missing";
  if (!error.empty()) return malformed(error + " in \"" + std::string(name) + "\"");
  return *std::move(message);
}

}  // namespace ddprun::protocol
