#include "rendezvous/coordinator/status.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <string_view>
#include <utility>

#include "base/duration_text.hpp"
#include "base/version.hpp"
#include "rendezvous/protocol/names.hpp"
#include "rendezvous/round/reasons.hpp"

namespace ddprun::coordinator {

namespace {

namespace json = boost::json;
using round::NodeStatus;
using round::Status;

std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

/// A node that leaves at the end of a run is not missing.
bool waits_for_nodes(const Status& status) {
  return status.phase != round::Phase::kStopping && status.phase != round::Phase::kOver;
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
  return object;
}

json::object json_of(const round::Counters& counters) {
  return {{"rounds", counters.rounds},
          {"joins", counters.joins},
          {"losses", counters.losses},
          {"refusals", counters.refusals},
          {"stale", counters.stale}};
}

json::object json_of(const RunView& run) {
  const Status& status = run.status;
  json::object object;
  object["run_id"] = status.run_id.value();
  object["phase"] = round::name_of(status.phase);
  object["round"] = status.round.number.value();
  object["author"] = status.round.author;
  object["reason"] = status.why;
  object["restarts"] = status.restarts.value();
  object["max_restarts"] = status.terms.max_restarts;
  object["nodes_min"] = status.terms.nodes_min;
  object["nodes_max"] = status.terms.nodes_max;
  json::array nodes;
  for (const NodeStatus& node : status.nodes) nodes.push_back(json_of(node));
  object["nodes_here"] = nodes.size();
  object["nodes"] = std::move(nodes);
  object["missing_node_ranks"] = waits_for_nodes(status)
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

void cell(std::string& page, std::string_view text) {
  page.append("<td>").append(escaped(text)).append("</td>");
}

void put(std::string& page, const NodeStatus& node) {
  const bool placed = node.group_rank >= 0;
  page += "<tr>";
  cell(page, placed ? std::to_string(node.group_rank) : "-");
  cell(page, node.host);
  cell(page, node.address);
  cell(page, placed ? round::reasons::ranks_text(node.rank_base, node.workers)
                    : std::to_string(node.workers) + " workers");
  cell(page, protocol::name_of(node.state));
  cell(page, duration_text(node.silent));
  page += "</tr>\n";
}

std::string missing_text(const Status& status) {
  const int here = static_cast<int>(status.nodes.size());
  std::string text;
  if (!waits_for_nodes(status)) return text;
  if (here < status.terms.nodes_min) {
    text = std::to_string(status.terms.nodes_min - here) + " missing";
  }
  for (const int rank : status.missing) {
    text += (text.empty() ? "node rank " : ", node rank ") + std::to_string(rank);
  }
  return text;
}

void put(std::string& page, const RunView& run) {
  const Status& status = run.status;
  page += "<h2>run " + escaped(status.run_id.value()) + ": " + round::name_of(status.phase) +
          "</h2>\n<p>" + escaped(status.why) + "</p>\n<p>round " +
          std::to_string(status.round.number.value()) + ", " +
          std::to_string(status.restarts.value()) + " of " +
          std::to_string(status.terms.max_restarts) + " restarts used, " +
          round::reasons::nodes_text(static_cast<int>(status.nodes.size())) +
          " connected (minimum " + std::to_string(status.terms.nodes_min) + ", maximum " +
          std::to_string(status.terms.nodes_max) + ")";
  const std::string missing = missing_text(status);
  if (!missing.empty()) page += "; " + missing;
  page +=
      "</p>\n<table><tr><th>node</th><th>host</th><th>address</th><th>ranks</th>"
      "<th>state</th><th>silent for</th></tr>\n";
  for (const NodeStatus& node : status.nodes) put(page, node);
  page += "</table>\n<ul>\n";
  for (const RunView::Line& line : run.log) {
    page += "<li>" + duration_text(line.ago) + " ago: " + escaped(line.text) + "</li>\n";
  }
  page += "</ul>\n";
}

}  // namespace

std::string to_json(const ServerView& view) {
  json::object object;
  object["version"] = kVersion;
  object["address"] = view.address;
  object["uptime_ms"] = milliseconds(view.uptime);
  object["connections"] = view.connections;
  object["agents"] = view.agents;
  object["store"] = {{"connections", view.store.connections},
                     {"keys", view.store.keys},
                     {"waits", view.store.waits},
                     {"bytes", view.store.bytes}};
  json::array runs;
  for (const RunView& run : view.runs) runs.push_back(json_of(run));
  object["runs"] = std::move(runs);
  return json::serialize(object) + "\n";
}

std::string to_html(const ServerView& view) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ddprun</title>\n"
      "<style>body{font-family:sans-serif;margin:2em}table{border-collapse:collapse}"
      "td,th{border:1px solid #bbb;padding:.2em .6em;text-align:left}</style></head>\n<body>\n";
  page += "<h1>ddprun at " + escaped(view.address) + "</h1>\n<p>version " + kVersion + ", up for " +
          duration_text(view.uptime) + ", " + std::to_string(view.connections) + " connections, " +
          std::to_string(view.agents) + " agents. Store: " + std::to_string(view.store.keys) +
          " keys, " + std::to_string(view.store.bytes) + " bytes, " +
          std::to_string(view.store.waits) + " waits, " + std::to_string(view.store.connections) +
          " clients.</p>\n";
  if (view.runs.empty()) page += "<p>No run.</p>\n";
  for (const RunView& run : view.runs) put(page, run);
  return page + "</body></html>\n";
}

}  // namespace ddprun::coordinator
