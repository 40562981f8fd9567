// The little HTTP that GET /status needs: one request per connection, no body, no keep-alive. Pure
// functions; the input may be hostile and is at most kHttpHeadBytesMax long.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddprun::coordinator {

enum class Page { kJson, kHtml };

/// What is sent of a response: HEAD asks for no body.
enum class Part { kWhole, kHead };

struct HttpAsk {
  int code = 200;  // otherwise what is wrong with the request
  Page page = Page::kJson;
  Part part = Part::kWhole;
};

/// Nothing while the head of the request is incomplete and not yet too long.
[[nodiscard]] std::optional<HttpAsk> read_request(std::string_view received);

/// A complete response, after which the connection is closed.
[[nodiscard]] std::string response_with(Page page, std::string_view body);
/// The response to a request that is refused: a plain sentence.
[[nodiscard]] std::string response_to_refused(int code);
/// Of a complete response, everything before the body.
[[nodiscard]] std::string_view head_of(std::string_view response);

}  // namespace ddprun::coordinator
