#include "rendezvous/coordinator/outbox.hpp"

namespace ddprun::coordinator {

void Outbox::push(SharedFrame frame) {
  if (!frames_) frames_.emplace();
  bytes_ += frame->bytes.size();
  frames_->push_back(std::move(frame));
  budget_->take(kPlaceBytes);
}

std::size_t Outbox::behind() const {
  return empty() ? 0 : bytes_ - frames_->front()->bytes.size();
}

void Outbox::clear() {
  if (frames_) budget_->give_back(frames_->size() * kPlaceBytes);
  frames_.reset();
  offset_ = bytes_ = 0;
}

std::size_t Outbox::gather(std::span<iovec> parts) const {
  std::size_t count = 0;
  std::size_t skip = offset_;
  for (auto at = frames_->begin(); at != frames_->end() && count < parts.size(); ++at) {
    const std::string& bytes = (*at)->bytes;
    // sendmsg does not write to it, but its parameter is not const.
    parts[count++] = {const_cast<char*>(bytes.data()) + skip, bytes.size() - skip};
    skip = 0;
  }
  return count;
}

void Outbox::sent(std::size_t bytes) {
  offset_ += bytes;
  while (!frames_->empty() && offset_ >= frames_->front()->bytes.size()) {
    offset_ -= frames_->front()->bytes.size();
    bytes_ -= frames_->front()->bytes.size();
    frames_->pop_front();
    budget_->give_back(kPlaceBytes);
  }
  if (frames_->empty()) clear();
}

}  // namespace ddprun::coordinator
