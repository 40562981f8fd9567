#include "agent/output/console_queue.hpp"

namespace ddprun {

void ConsoleQueue::push(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  append(bytes, origin);
  (origin == Origin::kOwn ? own_bytes_ : worker_bytes_) += bytes.size();
}

void ConsoleQueue::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  if (blocks_.empty() || blocks_.back().origin != origin) blocks_.push_back({{}, origin});
  blocks_.back().bytes += bytes;
}

bool ConsoleQueue::begins_own_line() const {
  return !blocks_.empty() && front_is_own() && torn_ != Origin::kOwn;
}

std::string_view ConsoleQueue::front() {
  if (torn_ == Origin::kWorker && begins_own_line() && !blocks_[0].bytes.starts_with('\n')) {
    blocks_[0].bytes.insert(0, "\n");
    ++own_bytes_;
  }
  return blocks_.empty() ? std::string_view() : std::string_view(blocks_[0].bytes).substr(head_);
}

void ConsoleQueue::pop(std::size_t bytes) {
  if (bytes == 0) return;
  Block& first = blocks_.front();
  head_ += bytes;
  torn_ = first.bytes[head_ - 1] == '\n' ? std::nullopt : std::optional(first.origin);
  (first.origin == Origin::kOwn ? own_bytes_ : worker_bytes_) -= bytes;
  if (head_ == first.bytes.size()) {
    blocks_.pop_front();
    head_ = 0;
  } else if (first.origin == Origin::kWorker && head_ > kConsoleQueueBytesMax / 2) {
    first.bytes.erase(0, head_);
    head_ = 0;
  }
}

void ConsoleQueue::put_own_first() {
  if (own_bytes_ == 0 || worker_bytes_ == 0) return;
  const std::string worker = rest(Origin::kWorker);
  const std::string own = rest(Origin::kOwn);
  std::size_t line_rest = 0;  // none: it is not here, perhaps never will be
  if (torn_ == Origin::kWorker) {
    const auto newline = worker.find('\n');
    if (newline != std::string::npos) line_rest = newline + 1;
  }
  blocks_.clear();
  head_ = 0;
  append(std::string_view(worker).substr(0, line_rest), Origin::kWorker);
  append(own, Origin::kOwn);
  append(std::string_view(worker).substr(line_rest), Origin::kWorker);
}

std::string ConsoleQueue::rest(Origin origin) const {
  std::string all;
  std::size_t from = head_;
  for (const Block& block : blocks_) {
    if (block.origin == origin) all += std::string_view(block.bytes).substr(from);
    from = 0;
  }
  return all;
}

std::string ConsoleQueue::own_lines() const {
  std::string lines = rest(Origin::kOwn);
  if (blocks_.empty() || blocks_.front().origin != Origin::kOwn || head_ == 0) return lines;
  const std::string_view written = std::string_view(blocks_.front().bytes).substr(0, head_);
  const auto newline = written.rfind('\n');
  return std::string(written.substr(newline == std::string_view::npos ? 0 : newline + 1)) + lines;
}

void ConsoleQueue::clear() {
  blocks_.clear();
  head_ = own_bytes_ = worker_bytes_ = 0;
  torn_.reset();
}

}  // namespace ddprun
