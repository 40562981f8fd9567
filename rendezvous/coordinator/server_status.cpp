#include <algorithm>
#include <utility>

#include "base/address.hpp"
#include "net/listen.hpp"
#include "rendezvous/coordinator/server_impl.hpp"
#include "rendezvous/coordinator/status.hpp"

namespace ddprun::coordinator {

using protocol::Moved;

namespace {

// Rendering one of the two status pages may use at most 1/kPageShare of the time, whatever the
// request rate: 5 % together.
constexpr int kPageShare = 40;

}  // namespace

void Server::Impl::ask(Link& link, std::string_view input) {
  link.held.append(input);
  auto asked = read_request(link.held, net::own_host_name());
  if (!asked) return count_partial(link, link.held.size());
  const round::Peer peer = peer_of(link);
  if (!may_ask(options_.status, peer.address, peer.local_address)) asked->code = 403;
  forget_partial(link);
  std::string().swap(link.held);
  const std::string moved = asked->code == 200 ? moved_for(peer) : "";
  SharedFrame answer =
      asked->code != 200 ? std::make_shared<Frame>(response_to_refused(asked->code), unsent_)
      : moved.empty()    ? page(asked->page)
                         : std::make_shared<Frame>(response_moved(asked->page, moved), unsent_);
  if (asked->part == Part::kHead) {
    answer = std::make_shared<Frame>(std::string(head_of(answer->bytes)), unsent_);
  }
  send(link, std::move(answer));
  close_link(link);
}

/// Where the only run of this server is coordinated, as `peer` reaches it; empty: here.
std::string Server::Impl::moved_for(const round::Peer& peer) const {
  if (!elsewhere_ || !runs_.empty()) return "";
  const Moved& place = elsewhere_->place;
  const bool is_here = is_loopback_literal(place.address) && !is_loopback_literal(peer.address);
  return host_and_port(is_here ? peer.local_address : place.address, place.port);
}

SharedFrame Server::Impl::page(Page kind) {
  CachedPage& cached = kind == Page::kJson ? json_page_ : html_page_;
  const TimePoint begun = Clock::now();
  if (cached.frame != nullptr && begun < cached.fresh_until) return cached.frame;
  const ServerView now = view(begun);
  const std::string body = kind == Page::kJson ? to_json(now) : to_html(now);
  cached.frame = std::make_shared<Frame>(response_with(kind, body), unsent_);
  const TimePoint done = Clock::now();
  cached.fresh_until = done + kPageShare * (done - begun);
  return cached.frame;
}

std::string Server::Impl::status_json() {
  if (closed_) return "";
  const SharedFrame answer = page(Page::kJson);
  return answer->bytes.substr(head_of(answer->bytes).size());
}

ServerView Server::Impl::view(TimePoint now) const {
  ServerView view;
  view.address = net::to_text(endpoint());
  view.uptime = now - started_;
  view.now = std::chrono::floor<WallTime::duration>(std::chrono::system_clock::now());
  view.store = store_->counters();
  view.connections = connections();
  view.agents = agents_;
  view.rejected = rejected_;
  for (const auto& [name, entry] : runs_) {
    if (entry->finished_at && now - *entry->finished_at >= kOverKept) continue;
    RunView run;
    run.status = entry->run.status(now);
    for (const RunEntry::Line& line : entry->notes) run.log.push_back({now - line.at, line.text});
    view.runs.push_back(std::move(run));
  }
  if (elsewhere_) {
    const Moved& place = elsewhere_->place;
    view.moved.push_back({options_.only_run->value(), host_and_port(place.address, place.port)});
  }
  std::sort(view.runs.begin(), view.runs.end(), [](const RunView& left, const RunView& right) {
    return left.status.run_id < right.status.run_id;
  });
  return view;
}

}  // namespace ddprun::coordinator
