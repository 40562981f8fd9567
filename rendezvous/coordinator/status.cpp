#include "rendezvous/coordinator/status.hpp"

#include <time.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/format.hpp"
#include "base/program_name.hpp"
#include "rendezvous/protocol/names.hpp"
#include "rendezvous/round/reasons.hpp"

namespace ddprun::coordinator {

namespace {

namespace json = boost::json;
using protocol::NodeState;
using round::NodeStatus;
using round::Phase;
using round::Status;

// Rendering one of the two pages may use at most 1/kPageShare of the time, whatever the request
// rate: 5 % together.
constexpr int kPageShare = 40;

std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object json_of(const NodeStatus& node) {
  json::object object;
  object["host"] = node.host;
  object["address"] = node.address;
  const bool placed = node.group_rank >= 0;
  object["group_rank"] = placed ? json::value(node.group_rank) : json::value(nullptr);
  object["rank_base"] = placed ? json::value(node.rank_base.value()) : json::value(nullptr);
  object["workers"] = node.workers;
  object["state"] = protocol::name_of(node.state);
  object["silent_ms"] = milliseconds(node.silent);
  object["version"] = text_or_null(node.version);
  return object;
}

json::object json_of(const round::GoneNode& node) {
  return {{"host", node.host},
          {"address", node.address},
          {"ranks", text_or_null(node.ranks)},
          {"version", text_or_null(node.version)},
          {"why", node.why},
          {"ago_ms", milliseconds(node.ago)}};
}

/// No line of its output: a page may be read by other users of the machine.
json::value json_of(const std::optional<protocol::Done>& verdict) {
  if (!verdict) return nullptr;
  return json::object{{"exit_code", verdict->exit_code}, {"text", verdict->text}};
}

json::object json_of(const round::Counters& counters) {
  return {{"rounds", counters.rounds},       {"joins", counters.joins},
          {"losses", counters.losses},       {"refusals", counters.refusals},
          {"held_back", counters.held_back}, {"stale", counters.stale}};
}

json::object json_of(const RunView& run) {
  const Status& status = run.status;
  json::object object;
  object["run_id"] = status.run_id.value();
  object["phase"] = round::name_of(status.phase);
  object["round"] = status.round.number.value();
  object["reason"] = status.why;
  object["restarts"] = status.restarts.value();
  object["max_restarts"] = status.terms.max_restarts;
  object["nodes_min"] = status.terms.nodes_min;
  object["nodes_max"] = status.terms.nodes_max;
  json::array nodes;
  for (const NodeStatus& node : status.nodes) nodes.push_back(json_of(node));
  object["nodes_here"] = nodes.size();
  object["nodes"] = std::move(nodes);
  json::array gone;
  for (const round::GoneNode& node : status.gone) gone.push_back(json_of(node));
  object["gone"] = std::move(gone);
  object["verdict"] = json_of(status.verdict);
  object["missing_node_ranks"] = round::waits_for_nodes(status)
                                     ? json::array(status.missing.begin(), status.missing.end())
                                     : json::array();
  object["counters"] = json_of(status.counters);
  json::array log;
  for (const RunView::Line& line : run.log) {
    log.push_back({{"ago_ms", milliseconds(line.ago)}, {"text", line.text}});
  }
  object["log"] = std::move(log);
  return object;
}

// Seconds between two loads of the page. On a narrow screen a row becomes a block of lines, each
// with the heading of its column.
constexpr const char* kHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ddprun</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"refresh\" content=\"5\">\n"
    "<style>body{font-family:sans-serif;margin:1em;overflow-wrap:anywhere}"
    "table{border-collapse:collapse}"
    "td,th{border:1px solid #bbb;padding:.2em .6em;text-align:left}"
    ".trouble{border-left:.4em solid #c00;padding-left:.6em}"
    "@media(max-width:600px){th{display:none}table,tbody,tr,td{display:block}"
    "tr{margin-bottom:.6em}td::before{content:attr(title) \": \"}}"
    "</style></head>\n<body>\n";

constexpr std::array<const char*, 7> kColumns = {"node",  "host",       "address", "ranks",
                                                 "state", "silent for", "version"};
constexpr std::array<const char*, 6> kGoneColumns = {"host", "address", "ranks",
                                                     "gone", "why",     "version"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char one : text) {
    switch (one) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += one;
    }
  }
  return result;
}

std::string time_of_day(WallTime when) {
  const time_t seconds = std::chrono::system_clock::to_time_t(when);
  tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%02d:%02d:%02dZ", utc.tm_hour, utc.tm_min, utc.tm_sec);
  return text.data();
}

std::string or_unknown(const std::string& version) {
  return version.empty() ? "not told" : version;
}

template <std::size_t kCount>
void put_head(std::string& page, const std::array<const char*, kCount>& columns) {
  page += "<table><tr>";
  for (const char* column : columns) page.append("<th>").append(column).append("</th>");
  page += "</tr>\n";
}

template <std::size_t kCount>
void put_row(std::string& page, const std::array<const char*, kCount>& columns,
             const std::array<std::string, kCount>& cells) {
  page += "<tr>";
  for (std::size_t i = 0; i < kCount; ++i) {
    page.append("<td title=\"").append(columns[i]).append("\">");
    page.append(escaped(cells[i])).append("</td>");
  }
  page += "</tr>\n";
}

void put(std::string& page, const NodeStatus& node) {
  const bool placed = node.group_rank >= 0;
  const std::array<std::string, kColumns.size()> cells = {
      placed ? std::to_string(node.group_rank) : "-",
      node.host,
      node.address,
      placed ? round::reasons::ranks_text(node.rank_base, node.workers)
             : count_text(node.workers, "worker"),
      std::string(protocol::name_of(node.state)),
      duration_text(node.silent),
      or_unknown(node.version)};
  put_row(page, kColumns, cells);
}

void put(std::string& page, const round::GoneNode& node) {
  const std::array<std::string, kGoneColumns.size()> cells = {node.host,
                                                              node.address,
                                                              node.ranks.empty() ? "-" : node.ranks,
                                                              duration_text(node.ago) + " ago",
                                                              node.why,
                                                              or_unknown(node.version)};
  put_row(page, kGoneColumns, cells);
}

std::string missing_text(const Status& status) {
  const int here = static_cast<int>(status.nodes.size());
  std::string text;
  if (!round::waits_for_nodes(status)) return text;
  if (here < status.terms.nodes_min) {
    text = std::to_string(status.terms.nodes_min - here) + " missing";
  }
  for (const int rank : status.missing) {
    text += (text.empty() ? "node rank " : ", node rank ") + std::to_string(rank);
  }
  return text;
}

/// Half of the time after which it is lost.
bool is_silent(const NodeStatus& node, const Status& status) {
  const bool matters = node.group_rank >= 0 && node.state != NodeState::kSucceeded;
  return matters && node.silent * 2 > status.terms.silence_max();
}

bool has_failed(const Status& status) {
  return status.verdict && status.verdict->exit_code != 0;
}

/// Its phase, or how it has ended.
std::string state_text(const Status& status) {
  if (!status.verdict) return round::name_of(status.phase);
  const std::string code = "exit code " + std::to_string(status.verdict->exit_code);
  if (status.phase == Phase::kOver) {
    return status.verdict->exit_code == 0 ? "succeeded" : "ended with " + code;
  }
  return std::string(round::name_of(status.phase)) + ", " + code;
}

/// Why the run needs attention; empty: it does not.
std::string trouble_of(const Status& status) {
  if (has_failed(status)) return status.verdict->text;
  if (status.phase == Phase::kOver) return {};
  for (const NodeStatus& node : status.nodes) {
    if (node.state == NodeState::kFailed) return "a worker failed on " + node.host;
    if (is_silent(node, status)) return node.host + " does not answer";
  }
  if (status.phase == Phase::kRebuilding) return "the coordinator restarted";
  if (status.phase == Phase::kStopping) return "the run is stopping";
  const bool formed = status.round.number.value() > 0;
  const std::string missing = formed ? missing_text(status) : "";
  return missing.empty() ? "" : "nodes were lost: " + missing;
}

void put_summary(std::string& page, const Status& status) {
  page += "<p>round " + std::to_string(status.round.number.value()) + ", " +
          std::to_string(status.restarts.value()) + " of " +
          count_text(status.terms.max_restarts, "restart") + " used, " +
          round::reasons::nodes_text(static_cast<int>(status.nodes.size())) +
          " connected (minimum " + std::to_string(status.terms.nodes_min) + ", maximum " +
          std::to_string(status.terms.nodes_max) + ")";
  const std::string missing = missing_text(status);
  if (!missing.empty()) page += "; " + missing;
  page += "</p>\n";
}

void put_nodes(std::string& page, const Status& status) {
  if (!status.nodes.empty()) {
    put_head(page, kColumns);
    for (const NodeStatus& node : status.nodes) put(page, node);
    page += "</table>\n";
  }
  if (status.gone.empty()) return;
  page += "<h3>nodes that have gone</h3>\n";
  put_head(page, kGoneColumns);
  for (const round::GoneNode& node : status.gone) put(page, node);
  page += "</table>\n";
}

void put(std::string& page, const RunView& run, WallTime now) {
  const Status& status = run.status;
  const std::string trouble = trouble_of(status);
  page += trouble.empty() ? "<section>\n" : "<section class=\"trouble\">\n";
  page +=
      "<h2>run " + escaped(status.run_id.value()) + ": " + escaped(state_text(status)) + "</h2>\n";
  const char* label = has_failed(status) ? "First cause: " : "Attention: ";
  if (!trouble.empty())
    page += "<p><strong>" + std::string(label) + escaped(trouble) + "</strong></p>\n";
  if (trouble != status.why) page += "<p>" + escaped(status.why) + "</p>\n";
  put_summary(page, status);
  put_nodes(page, status);
  page += "<ul>\n";
  for (const RunView::Line& line : run.log) {
    const auto ago = std::chrono::duration_cast<WallTime::duration>(line.ago);
    page += "<li>" + time_of_day(now - ago) + ", " + duration_text(line.ago) +
            " ago: " + escaped(line.text) + "</li>\n";
  }
  page += "</ul>\n</section>\n";
}

std::string count_of(std::size_t count, std::string_view noun) {
  return count_text(static_cast<long long>(count), noun);
}

}  // namespace

std::string to_json(const ServerView& view) {
  json::object object;
  object["version"] = kVersion;
  object["address"] = view.address;
  object["uptime_ms"] = milliseconds(view.uptime);
  object["time_ms"] = view.now.time_since_epoch().count();
  object["connections"] = view.connections;
  object["agents"] = view.agents;
  object["rejected"] = view.rejected;
  object["store"] = {{"connections", view.store.connections},
                     {"keys", view.store.keys},
                     {"waits", view.store.waits},
                     {"bytes", view.store.bytes},
                     {"refused", view.store.refused}};
  json::array runs;
  for (const RunView& run : view.runs) runs.push_back(json_of(run));
  object["runs"] = std::move(runs);
  json::array moved;
  for (const MovedRun& run : view.moved) {
    moved.push_back({{"run_id", run.run_id}, {"coordinator", run.coordinator}});
  }
  object["moved"] = std::move(moved);
  return json::serialize(object) + "\n";
}

std::string to_html(const ServerView& view) {
  std::string page = kHead;
  page += "<h1>ddprun at " + escaped(view.address) + "</h1>\n<p>" + time_of_day(view.now) +
          ", version " + kVersion + ", up for " + duration_text(view.uptime) + ", " +
          count_of(view.connections, "connection") + ", " + count_of(view.agents, "agent") +
          ". Store: " + count_of(view.store.keys, "key") + ", " +
          bytes_text(static_cast<std::int64_t>(view.store.bytes)) + ", " +
          count_of(view.store.waits, "wait") + ", " + count_of(view.store.connections, "client") +
          ".</p>\n";
  for (const MovedRun& run : view.moved) {
    page += "<p>Run " + escaped(run.run_id) + " is coordinated at <a href=\"http://" +
            escaped(run.coordinator) + "/\">" + escaped(run.coordinator) + "</a>.</p>\n";
  }
  if (view.runs.empty() && view.moved.empty()) page += "<p>No run.</p>\n";
  for (const RunView& run : view.runs) put(page, run, view.now);
  return page + "</body></html>\n";
}

std::optional<HttpAsk> Pages::asked(std::string_view received, const round::Peer& peer) const {
  auto asked = read_request(received, net::own_host_name());
  if (asked && !may_ask(access_, peer.address, peer.local_address)) asked->code = 403;
  return asked;
}

bool Pages::is_fresh(Page page, TimePoint now) const {
  return of(page).frame != nullptr && now < of(page).fresh_until;
}

void Pages::render(Page page, const ServerView& view, TimePoint begun) {
  const std::string body = page == Page::kJson ? to_json(view) : to_html(view);
  Cached& cached = page == Page::kJson ? json_ : html_;
  cached.frame = frame(response_with(page, body));
  const TimePoint done = Clock::now();
  cached.fresh_until = done + kPageShare * (done - begun);
}

SharedFrame Pages::answer(const HttpAsk& asked, const std::string& moved) const {
  SharedFrame whole = asked.code != 200 ? frame(response_to_refused(asked.code))
                      : moved.empty()   ? of(asked.page).frame
                                        : frame(response_moved(asked.page, moved));
  if (asked.part == Part::kWhole) return whole;
  return frame(std::string(head_of(whole->bytes)));
}

std::string Pages::json() const {
  const std::string& bytes = json_.frame->bytes;
  return bytes.substr(head_of(bytes).size());
}

SharedFrame Pages::frame(std::string bytes) const {
  return std::make_shared<Frame>(std::move(bytes), unsent_);
}

}  // namespace ddprun::coordinator
