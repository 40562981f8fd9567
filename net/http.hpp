// The subset of HTTP that ddprun's servers speak: one request per connection, no body, no
// keep-alive. Pure functions; the input may be hostile and is at most kHttpHeadBytesMax long.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ddprun::net {

/// Size of the headers of a request; longer ones are answered with 431.
inline constexpr std::size_t kHttpHeadBytesMax = 8 * 1024;

/// The part of a response to send: HEAD has no body.
enum class Part { kWhole, kHead };

struct HttpRequest {
  int code = 200;    // otherwise the error of the request
  std::string path;  // without the query: "/status"
  Part part = Part::kWhole;
  std::string_view head = {};  // the lines of the request, in what was received
};

/// nullopt while the request's headers are incomplete and not too long.
[[nodiscard]] std::optional<HttpRequest> read_http_request(std::string_view received);

/// A complete response, after which the connection is closed. `status`: "200 OK"; `type`: a media
/// type.
[[nodiscard]] std::string http_response(std::string_view status, std::string_view type,
                                        std::string_view body);
/// The response to a refused request: a plain-text sentence. `pages`: what there is instead of what
/// was not found.
[[nodiscard]] std::string http_refusal(int code, std::string_view pages);
/// The headers of a complete response.
[[nodiscard]] std::string_view head_of(std::string_view response);

}  // namespace ddprun::net
