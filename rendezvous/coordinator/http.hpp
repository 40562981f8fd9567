// Requests for the pages of GET /status, on the subset of HTTP that net/http has, and who may read
// them. Pure functions; the input may be hostile.
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

/// Who may read them. The words of --status, which `ddprun` and `ddprun-rdzvd` share:
enum class StatusAccess { kOff, kLocal, kAll };

inline constexpr std::string_view kStatusChoices = "off,local,all";
inline constexpr std::string_view kStatusMetavar = "off|local|all";
inline constexpr std::string_view kStatusPreset = "local";
inline constexpr std::string_view kStatusHelp =
    "Who may read GET /status of the coordinator: programs on its machine (local), on all "
    "machines (all), or none (off).";

/// nullopt for a word that is not one of kStatusChoices.
[[nodiscard]] std::optional<StatusAccess> parse_status_access(std::string_view word);

/// Whether a peer at `address` may read it that has reached this machine at `local_address`.
[[nodiscard]] bool may_ask(StatusAccess access, const std::string& address,
                           const std::string& local_address);

}  // namespace ddprun::coordinator
