#include "rendezvous/coordinator/http.hpp"

#include "base/address.hpp"

namespace ddprun::coordinator {

namespace {

/// Whether text/html is among what is accepted. Browsers say so, programs do not.
bool accepts_html(std::string_view head) {
  return net::header_value(head, "accept").find("text/html") != std::string::npos;
}

}  // namespace

std::optional<HttpAsk> read_request(std::string_view received, const std::string& own_name) {
  const auto request = net::read_http_request(received);
  if (!request) return std::nullopt;
  if (request->code != 200) return HttpAsk{request->code};
  if (!net::is_asked_by_own_name(request->head, own_name))
    return HttpAsk{421, Page::kJson, request->part};
  if (request->path == "/") return HttpAsk{200, Page::kHtml, request->part};
  if (request->path == "/status.json") return HttpAsk{200, Page::kJson, request->part};
  if (request->path != "/status") return HttpAsk{404, Page::kJson, request->part};
  const bool is_browser = accepts_html(request->head);
  return HttpAsk{200, is_browser ? Page::kHtml : Page::kJson, request->part};
}

std::string response_with(Page page, std::string_view body) {
  const char* type = page == Page::kJson ? "application/json" : "text/html; charset=utf-8";
  return net::http_response("200 OK", type, body);
}

std::string response_moved(Page page, const std::string& coordinator) {
  const std::string url = "http://" + coordinator + (page == Page::kJson ? "/status.json" : "/");
  const std::string type = "text/plain; charset=utf-8\r\nLocation: " + url;
  return net::http_response("307 Temporary Redirect", type,
                            "The run is coordinated at " + coordinator + ": " + url + "\n");
}

std::string response_to_refused(int code) {
  if (code == 403) {
    return net::http_response("403 Forbidden", "text/plain; charset=utf-8",
                              "This server does not show its status here (--status).\n");
  }
  return net::http_refusal(code, "/status, /status.json and /");
}

std::optional<StatusAccess> parse_status_access(std::string_view word) {
  if (word == "off") return StatusAccess::kOff;
  if (word == "local") return StatusAccess::kLocal;
  if (word == "all") return StatusAccess::kAll;
  return std::nullopt;
}

bool may_ask(StatusAccess access, const std::string& address, const std::string& local_address) {
  if (access != StatusAccess::kLocal) return access == StatusAccess::kAll;
  return address == local_address || is_loopback_literal(address);
}

}  // namespace ddprun::coordinator
