#include "rendezvous/store/waits.hpp"

#include "base/assert.hpp"

namespace ddprun::store {

Waits::Waits() = default;
Waits::~Waits() = default;

void Waits::add(ConnectionId who, const std::vector<Line*>& lines) {
  DDPRUN_ASSERT(!lines.empty());
  std::unique_ptr<Wait>& place = waiting_[who];
  DDPRUN_ASSERT(place == nullptr);
  place = std::make_unique<Wait>();
  Wait& wait = *place;
  wait.who = who;
  wait.links.reserve(lines.size());
  for (Line* line : lines) {
    // Links of this wait are the newest everywhere, so a repeated name shows at the end of its
    // line.
    if (line->last != nullptr && line->last->wait == &wait) continue;
    Link& link = wait.links.emplace_back(Link{line, &wait, line->last, nullptr});
    (line->last == nullptr ? line->first : line->last->behind) = &link;
    line->last = &link;
  }
  wait.missing = wait.links.size();
  links_ += wait.links.size();
}

void Waits::wake_one(Line& line, std::vector<ConnectionId>& woken) {
  if (line.empty()) return;
  Link& link = *line.first;
  Wait& wait = *link.wait;
  unlink(link);
  if (--wait.missing > 0) return;
  woken.push_back(wait.who);
  waiting_.erase(wait.who);
}

void Waits::wake_all(Line& line, std::vector<ConnectionId>& woken) {
  while (!line.empty()) wake_one(line, woken);
}

bool Waits::drop(ConnectionId who, std::vector<Line*>& left) {
  const auto found = waiting_.find(who);
  if (found == waiting_.end()) return false;
  for (Link& link : found->second->links) {
    if (link.line == nullptr) continue;
    left.push_back(link.line);
    unlink(link);
  }
  waiting_.erase(found);
  return true;
}

void Waits::unlink(Link& link) {
  (link.before == nullptr ? link.line->first : link.before->behind) = link.behind;
  (link.behind == nullptr ? link.line->last : link.behind->before) = link.before;
  link.line = nullptr;
  --links_;
}

}  // namespace ddprun::store
