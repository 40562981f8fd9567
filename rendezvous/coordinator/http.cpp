#include "rendezvous/coordinator/http.hpp"

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>

#include "rendezvous/coordinator/limits.hpp"

namespace ddprun::coordinator {

namespace {

/// Whether a header line `accept:` names text/html. Browsers do, programs do not.
bool accepts_html(std::string_view headers) {
  const std::string text = boost::algorithm::to_lower_copy(std::string(headers));
  for (auto at = text.find("\naccept:"); at != std::string::npos;
       at = text.find("\naccept:", at + 1)) {
    const std::string_view line =
        std::string_view(text).substr(at + 1, text.find('\n', at + 1) - at);
    if (line.find("text/html") != std::string_view::npos) return true;
  }
  return false;
}

/// "/status" from "http://host:port/status?x=1", as sent to a proxy, and from "/status?x=1".
std::string_view path_of(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (target.starts_with(kScheme)) {
    const auto path = target.find('/', kScheme.size());
    target = path == std::string_view::npos ? "/" : target.substr(path);
  }
  return target.substr(0, target.find('?'));
}

HttpAsk judge(std::string_view head) {
  const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  const bool is_http = first != last && line.substr(last + 1).starts_with("HTTP/1.");
  if (!is_http) return {400};
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD") return {405};
  const Part part = method == "HEAD" ? Part::kHead : Part::kWhole;
  const std::string_view path = path_of(line.substr(first + 1, last - first - 1));
  if (path == "/") return {200, Page::kHtml, part};
  if (path == "/status.json") return {200, Page::kJson, part};
  if (path != "/status") return {404, Page::kJson, part};
  return {200, accepts_html(head) ? Page::kHtml : Page::kJson, part};
}

std::string response(std::string_view status, std::string_view fields, std::string_view body) {
  std::string text = "HTTP/1.1 ";
  text.append(status).append("\r\nServer: ddprun\r\nConnection: close\r\n");
  text.append("Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
  text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  return text.append(fields).append("\r\n").append(body);
}

}  // namespace

std::optional<HttpAsk> read_request(std::string_view received) {
  const auto end = std::min(received.find("\r\n\r\n"), received.find("\n\n"));
  if (end > kHttpHeadBytesMax && received.size() > kHttpHeadBytesMax) {
    return HttpAsk{431};
  }
  if (end == std::string_view::npos) return std::nullopt;
  return judge(received.substr(0, end + 1));
}

std::string response_with(Page page, std::string_view body) {
  return response("200 OK",
                  page == Page::kJson ? "Content-Type: application/json\r\n"
                                      : "Content-Type: text/html; charset=utf-8\r\n",
                  body);
}

std::string response_to_refused(int code) {
  constexpr std::string_view kText = "Content-Type: text/plain; charset=utf-8\r\n";
  switch (code) {
    case 404:
      return response("404 Not Found", kText, "This server has /status, /status.json and /.\n");
    case 405:
      return response("405 Method Not Allowed", "Allow: GET, HEAD\r\nContent-Type: text/plain\r\n",
                      "This server supports only GET and HEAD.\n");
    case 431:
      return response("431 Request Header Fields Too Large", kText,
                      "The request headers are too long.\n");
    default:
      return response("400 Bad Request", kText, "This is not an HTTP request.\n");
  }
}

std::string_view head_of(std::string_view response) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  return response.substr(0, response.find(kEnd) + kEnd.size());
}

}  // namespace ddprun::coordinator
