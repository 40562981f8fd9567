#include "rendezvous/protocol/codec.hpp"

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "rendezvous/protocol/reader.hpp"
#include "rendezvous/protocol/writer.hpp"

namespace ddprun::protocol {
namespace {

namespace json = boost::json;

// In the order of Message's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Message>> kTypeNames{
    "hello",        "refused", "waiting", "round",   "report", "stop",  "stopped", "leave",
    "reconnecting", "done",    "beat",    "unknown", "signal", "quiet", "hang"};

/// A Message that holds its `index`-th alternative.
template <std::size_t... I>
Message make_alternative(std::size_t index, std::index_sequence<I...>) {
  Message message;
  (void)((I == index && (message.emplace<I>(), true)) || ...);
  return message;
}

Error malformed(const std::string& what) {
  return {ErrorKind::kUsage, "the peer's message is malformed: " + what};
}

}  // namespace

std::string_view type_of(const Message& message) {
  return kTypeNames[message.index()];
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
  json::parse_options options;
  options.max_depth = kDepthMax;
  boost::system::error_code failed;
  const json::value value = json::parse(body, failed, {}, options);
  if (failed) return malformed("it is not JSON (" + failed.message() + ")");
  const json::object* object = value.if_object();
  if (object == nullptr) return malformed("it is not a JSON object");
  const json::value* type = object->if_contains("type");
  if (type == nullptr || !type->is_string()) return malformed("field \"type\" is missing");
  const std::string_view name(type->get_string().data(), type->get_string().size());
  for (std::size_t index = 0; index < kTypeNames.size(); ++index) {
    if (kTypeNames[index] != name) continue;
    Message message = make_alternative(index, std::make_index_sequence<kTypeNames.size()>());
    std::string error;
    Reader reader(*object, error);
    std::visit([&reader](auto& known) { fields(reader, known); }, message);
    const auto* report = std::get_if<Report>(&message);
    const bool lacks_failure =
        report != nullptr && report->state == NodeState::kFailed && !report->failure;
    if (lacks_failure && error.empty()) error = "field \"failure\" is missing";
    if (!error.empty()) return malformed(error + " in \"" + std::string(name) + "\"");
    return message;
  }
  return Error(ErrorKind::kUnsupported, "this version knows no message \"" +
                                            clean_utf8(printable(name), kNameBytesMax) + "\"");
}

}  // namespace ddprun::protocol
