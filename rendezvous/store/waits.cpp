#include "rendezvous/store/waits.hpp"

#include "base/assert.hpp"

namespace ddprun::store {

Waits::Waits() = default;
Waits::~Waits() = default;

void Waits::add(ConnectionId connection, const std::vector<WaitList*>& lists) {
  DDPRUN_ASSERT(!lists.empty());
  std::unique_ptr<Wait>& wait_slot = waiting_[connection];
  DDPRUN_ASSERT(wait_slot == nullptr);
  wait_slot = std::make_unique<Wait>();
  Wait& wait = *wait_slot;
  wait.connection = connection;
  wait.links.reserve(lists.size());
  for (WaitList* list : lists) {
    // Links of this wait are the newest in every list, so a repeated name is found at the tail.
    if (list->tail != nullptr && list->tail->wait == &wait) continue;
    Link& link = wait.links.emplace_back(Link{list, &wait, list->tail, nullptr});
    (list->tail == nullptr ? list->head : list->tail->next) = &link;
    list->tail = &link;
  }
  wait.missing = wait.links.size();
  links_ += wait.links.size();
}

Waits::Pending Waits::pending(ConnectionId connection) const {
  const auto found = waiting_.find(connection);
  if (found == waiting_.end()) return {};
  for (const Link& link : found->second->links) {
    if (link.list != nullptr) return {link.list, found->second->missing};
  }
  return {};
}

void Waits::wake_one(WaitList& list, std::vector<ConnectionId>& woken) {
  if (list.empty()) return;
  Link& link = *list.head;
  Wait& wait = *link.wait;
  unlink(link);
  if (--wait.missing > 0) return;
  woken.push_back(wait.connection);
  waiting_.erase(wait.connection);
}

void Waits::wake_all(WaitList& list, std::vector<ConnectionId>& woken) {
  while (!list.empty()) wake_one(list, woken);
}

bool Waits::drop(ConnectionId connection, std::vector<WaitList*>& affected) {
  const auto found = waiting_.find(connection);
  if (found == waiting_.end()) return false;
  for (Link& link : found->second->links) {
    if (link.list == nullptr) continue;
    affected.push_back(link.list);
    unlink(link);
  }
  waiting_.erase(found);
  return true;
}

void Waits::unlink(Link& link) {
  (link.previous == nullptr ? link.list->head : link.previous->next) = link.next;
  (link.next == nullptr ? link.list->tail : link.next->previous) = link.previous;
  link.list = nullptr;
  --links_;
}

}  // namespace ddprun::store
