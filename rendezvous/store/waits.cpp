#include "rendezvous/store/waits.hpp"

#include "base/assert.hpp"

namespace ddprun::store {

Waits::Waits() = default;
Waits::~Waits() = default;

void Waits::begin(ConnectionId connection, std::size_t most) {
  std::unique_ptr<Wait>& wait = waiting_[connection];
  DDPRUN_ASSERT(wait == nullptr);
  wait = std::make_unique<Wait>();
  wait->connection = connection;
  wait->links.reserve(most);
  wait->missing = 1;  // the end
}

void Waits::add_to(ConnectionId connection, WaitList& list) {
  link(*waiting_.at(connection), list);
}

bool Waits::end(ConnectionId connection) {
  if (--waiting_.at(connection)->missing > 0) return true;
  waiting_.erase(connection);
  return false;
}

void Waits::add(ConnectionId connection, const std::vector<WaitList*>& lists) {
  DDPRUN_ASSERT(!lists.empty());
  begin(connection, lists.size());
  for (WaitList* list : lists) add_to(connection, *list);
  (void)end(connection);
}

// Links of this wait are the newest in every list, unless others came between its parts, so a
// repeated name is found at the tail.
void Waits::link(Wait& wait, WaitList& list) {
  if (list.tail != nullptr && list.tail->wait == &wait) return;
  Link& link = wait.links.emplace_back(Link{&list, &wait, list.tail, nullptr});
  (list.tail == nullptr ? list.head : list.tail->next) = &link;
  list.tail = &link;
  ++wait.missing;
  ++links_;
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
  bool is_dropped = true;
  while (is_dropped && !list.empty()) {
    Link& link = *list.head;
    Wait& wait = *link.wait;
    unlink(link);
    is_dropped = wait.is_dropped;
    if (--wait.missing > 0 || is_dropped) continue;
    woken.push_back(wait.connection);
    waiting_.erase(wait.connection);
  }
}

void Waits::wake_all(WaitList& list, std::vector<ConnectionId>& woken) {
  while (!list.empty()) wake_one(list, woken);
}

bool Waits::drop(ConnectionId connection) {
  const auto found = waiting_.find(connection);
  if (found == waiting_.end()) return false;
  found->second->is_dropped = true;
  dropped_.push_back(std::move(found->second));
  waiting_.erase(found);
  return true;
}

bool Waits::drop_some(std::size_t links, std::vector<WaitList*>& affected) {
  while (links > 0 && !dropped_.empty()) {
    Wait& wait = *dropped_.front();
    for (; links > 0 && !wait.links.empty(); --links) {
      Link& last = wait.links.back();
      WaitList* list = last.list;
      if (list != nullptr) unlink(last);
      if (list != nullptr && list->empty()) affected.push_back(list);
      wait.links.pop_back();
    }
    if (wait.links.empty()) dropped_.pop_front();
  }
  return has_dropped();
}

void Waits::unlink(Link& link) {
  (link.previous == nullptr ? link.list->head : link.previous->next) = link.next;
  (link.next == nullptr ? link.list->tail : link.next->previous) = link.previous;
  link.list = nullptr;
  --links_;
}

}  // namespace ddprun::store
