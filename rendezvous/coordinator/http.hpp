// The subset of HTTP for GET /status: one request per connection, no body, no keep-alive. Pure
// functions; the input may be hostile and is at most kHttpHeadBytesMax long.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddprun::coordinator {

enum class Page { kJson, kHtml };

/// The part of a response to send: HEAD has no body.
enum class Part { kWhole, kHead };

struct HttpAsk {
  int code = 200;  // otherwise the error of the request
  Page page = Page::kJson;
  Part part = Part::kWhole;
};

/// nullopt while the request's headers are incomplete and not too long.
[[nodiscard]] std::optional<HttpAsk> read_request(std::string_view received);

/// A complete response, after which the connection is closed.
[[nodiscard]] std::string response_with(Page page, std::string_view body);
/// The response to a refused request: a plain-text sentence.
[[nodiscard]] std::string response_to_refused(int code);
/// The headers of a complete response.
[[nodiscard]] std::string_view head_of(std::string_view response);

}  // namespace ddprun::coordinator
