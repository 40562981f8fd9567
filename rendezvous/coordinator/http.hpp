// The pages of GET /status, on the subset of HTTP that net/http has. Pure functions; the input may
// be hostile.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http.hpp"

namespace ddprun::coordinator {

enum class Page { kJson, kHtml };

using net::head_of;
using net::Part;

struct HttpAsk {
  int code = 200;  // otherwise the error of the request
  Page page = Page::kJson;
  Part part = Part::kWhole;
};

/// nullopt while the request's headers are incomplete and not too long. `own_name`: of this
/// machine.
[[nodiscard]] std::optional<HttpAsk> read_request(std::string_view received,
                                                  const std::string& own_name);

/// A complete response, after which the connection is closed.
[[nodiscard]] std::string response_with(Page page, std::string_view body);
/// The response where all is at another coordinator, "10.0.0.2:41234".
[[nodiscard]] std::string response_moved(Page page, const std::string& coordinator);
/// The response to a refused request: a plain-text sentence.
[[nodiscard]] std::string response_to_refused(int code);

}  // namespace ddprun::coordinator
