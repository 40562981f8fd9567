#include "rendezvous/client/membership/stores.hpp"

#include <utility>

namespace ddprun::client {

void Stores::open(Actions& actions) {
  port_ = 0;
  actions.emplace_back(OpenStore{});
}

void Stores::serve(const protocol::StartRound& round, Actions& actions) {
  serving_ = round.stamp.number;
  actions.emplace_back(ServeStore{round.stamp.number, round.store_peers});
  open(actions);
}

void Stores::release(TimePoint now, Actions& actions) {
  if (!serving_) return;
  released_.push_back({*serving_, now + released_max_});
  actions.emplace_back(ReleaseStore{*std::exchange(serving_, std::nullopt)});
}

void Stores::close(Round round, Actions& actions) {
  close_if([round](const Released& store) { return store.round == round; }, actions);
}

void Stores::close_overdue(TimePoint now, Actions& actions) {
  close_if([now](const Released& store) { return now >= store.close_at; }, actions);
}

void Stores::close_released(Actions& actions) {
  close_if([](const Released&) { return true; }, actions);
}

void Stores::close_if(const std::function<bool(const Released&)>& which, Actions& actions) {
  for (const Released& store : released_) {
    if (which(store)) actions.emplace_back(CloseStore{store.round});
  }
  std::erase_if(released_, which);
}

}  // namespace ddprun::client
