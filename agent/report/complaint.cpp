#include "agent/report/complaint.hpp"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "agent/report/quotation.hpp"
#include "base/ending.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::size_t kComplaintLineMax = 200;
constexpr std::size_t kComplaintWordMax = 48;
// Lines after a complaint, stack frames not counted, that a library prints on its way out.
constexpr int kLinesAfterMax = 40;

/// What follows `text`; empty if the line does not have it.
std::string_view after(std::string_view line, std::string_view text) {
  const auto at = line.find(text);
  return at == npos ? std::string_view() : line.substr(at + text.size());
}

std::optional<int> number_at(std::string_view text) {
  int value = 0;
  const auto [end, why] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = why == std::errc() && value >= 0 && value <= kSequenceMax;
  return good ? std::optional<int>(value) : std::nullopt;
}

std::string word(std::string_view text) {
  return clean_utf8(printable(text.substr(0, std::min(text.size(), kComplaintWordMax))),
                    kComplaintWordMax);
}

/// torch puts "[rank0]: " or "[rank0]:" before what a rank prints.
std::string_view without_prefix(std::string_view line) {
  if (!line.starts_with("[rank")) return line;
  const auto end = line.find("]:");
  if (end > 12) return line;
  line.remove_prefix(end + 2);
  return line;
}

/// The frames of a Python stack: where the program was, and in which collective.
struct Place {
  std::string program{};
  std::string operation{};

  void take(std::string_view frame) {  // File "/home/me/train.py", line 21, in step
    const auto quote = frame.find('"', 6);
    const std::string_view line = after(frame, "\", line ");
    if (quote == npos || line.empty()) return;
    const std::string_view path = frame.substr(6, quote - 6);
    const std::string_view function = after(line, ", in ");
    if (path.ends_with("/torch/distributed/distributed_c10d.py")) {
      if (!function.empty() && function.front() != '_') operation = word(function);
      return;
    }
    if (contains(path, "/site-packages/") || contains(path, "/dist-packages/") ||
        path.starts_with("<")) {
      return;
    }
    program = word(std::string(path.substr(path.rfind('/') + 1)) + ":" +
                   std::string(line.substr(0, line.find(','))));
  }
};

/// "Rank 1 failed to ...", "Ranks 1, 2 failed to ...".
void accuse_ranks_before(std::string_view text, std::vector<int>& accused) {
  const auto begin = text.rfind("Rank");
  if (begin == npos) return;
  for (std::size_t i = begin; i < text.size() && accused.size() < kAccusedMax; ++i) {
    const bool first_digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0 &&
                             std::isdigit(static_cast<unsigned char>(text[i - 1])) == 0;
    if (!first_digit) continue;
    if (const auto rank = number_at(text.substr(i))) accused.push_back(*rank);
  }
}

/// The rank in the last part of a key of the default group: "/default_pg/0//cpu//0/1".
void accuse_rank_of_key(std::string_view key, std::vector<int>& accused) {
  if (!contains(key, "default_pg/")) return;
  const std::string_view device = after(key, "//");
  const std::string_view part = after(device, "//");
  const auto slash = part.find('/');
  if (slash == npos) return;
  if (const auto rank = number_at(part.substr(slash + 1))) accused.push_back(*rank);
}

/// Of keys that no library waits for, without the prefix of the process group: "best_ckpt" of
/// "/default_pg/0//best_ckpt"; several with ", ". Keys of process groups name a device, or are
/// numbers.
std::string keys_of_program(std::string_view keys) {
  for (const char* library : {"//cpu//", "//cuda//", "//xpu//", "worker_count", "ncclUniqueId",
                              "store_based_barrier", "/init/", "torchelastic", "last_member"}) {
    if (contains(keys, library)) return {};
  }
  std::string names;
  bool is_name = false;
  while (!keys.empty()) {
    const auto end = keys.find(", ");
    std::string_view key = keys.substr(0, end);
    keys.remove_prefix(end == npos ? keys.size() : end + 2);
    const auto prefix = key.rfind("//");
    key.remove_prefix(prefix == npos ? std::min<std::size_t>(key.find_first_not_of('/'), key.size())
                                     : prefix + 2);
    names += (names.empty() ? "" : ", ") + std::string(key);
    is_name = is_name || std::any_of(key.begin(), key.end(), [](char one) {
                return std::isalpha(static_cast<unsigned char>(one)) != 0;
              });
  }
  return is_name ? word(names) : "";
}

/// How programs come to the end of something, or try another way: no failure.
bool is_of_control_flow(std::string_view exception) {
  for (const char* name : {"StopIteration", "StopAsyncIteration", "queue.Empty", "_queue.Empty",
                           "ImportError", "ModuleNotFoundError"}) {
    if (exception.starts_with(name)) return true;
  }
  return false;
}

using Found = std::optional<Complaint>;

Complaint of(ComplaintKind kind) {
  Complaint complaint;
  complaint.kind = kind;
  return complaint;
}

void limit_in_ms(std::string_view text, Complaint& complaint) {
  complaint.limit = std::chrono::milliseconds(number_at(text).value_or(0));
}

Found watchdog(std::string_view line) {
  if (contains(line, "ProcessGroupNCCL's watchdog got stuck"))
    return of(ComplaintKind::kCollective);
  const std::string_view work = after(line, "collective operation timeout: WorkNCCL(");
  if (work.empty()) return std::nullopt;
  Complaint complaint = of(ComplaintKind::kCollective);
  complaint.sequence = number_at(after(work, "SeqNum="));
  const std::string_view operation = after(work, "OpType=");
  complaint.operation = word(operation.substr(0, operation.find_first_of(",)")));
  limit_in_ms(after(work, "Timeout(ms)="), complaint);
  return complaint;
}

Found barrier(std::string_view line) {
  Complaint complaint = of(ComplaintKind::kCollective);
  complaint.operation = "monitoredBarrier";
  const auto failed = line.find(" failed to pass monitoredBarrier");
  if (failed != npos) {
    limit_in_ms(after(line, " monitoredBarrier in "), complaint);
    accuse_ranks_before(line.substr(0, failed), complaint.accused);
    return complaint;
  }
  const std::string_view peer =
      after(line, "monitoredBarrier, but received errors while waiting for send/recv from rank ");
  if (peer.empty()) return std::nullopt;
  if (const auto rank = number_at(peer)) complaint.accused.push_back(*rank);
  return complaint;
}

/// Without the long descriptions of two collectives, of which the end says how they differ.
std::string without_fingerprints(std::string text) {
  for (auto begin = text.find("collective: CollectiveFingerPrint("); begin != npos;
       begin = text.find("collective: CollectiveFingerPrint(")) {
    const auto end = text.find(")))", begin);
    if (end == npos) break;
    text.replace(begin, end + 3 - begin, "...");
  }
  return text;
}

/// Each rank that finds out names the first rank that differs from it.
Found disagreement(std::string_view line) {
  std::string_view other =
      after(after(line, "Detected mismatch between collectives on ranks"), ", but Rank ");
  if (other.empty()) {
    other = after(after(line, "DDP expects same model across all ranks"), ", while rank ");
  }
  const auto rank = other.empty() ? std::nullopt : number_at(other);
  if (!rank) return std::nullopt;
  Complaint complaint = of(ComplaintKind::kCollective);
  complaint.accused.push_back(*rank);
  complaint.line = without_fingerprints(std::string(line));
  return complaint;
}

Found gloo(std::string_view line) {
  const std::string_view waited = after(line, "Timed out waiting ");
  if (contains(waited, "ms for recv operation") || contains(waited, "ms for send operation")) {
    Complaint complaint = of(ComplaintKind::kCollective);
    limit_in_ms(waited, complaint);
    return complaint;
  }
  // What a rank that waited does to its other operations with that peer.
  if (contains(line, "Application timeout caused pair closure"))
    return of(ComplaintKind::kCollective);
  if (!contains(line, "gloo/transport/")) return std::nullopt;
  for (const char* end : {"Connection closed by peer", "Connection reset by peer", "Broken pipe",
                          "Connection refused", "onnection timed out"}) {
    if (contains(line, end)) return of(ComplaintKind::kLostPeer);
  }
  return std::nullopt;
}

Found store(std::string_view line) {
  Complaint complaint = of(ComplaintKind::kRendezvous);
  if (const std::string_view rank = after(line, "retrieving ncclUniqueId from ["); !rank.empty()) {
    if (const auto zero = number_at(rank)) complaint.accused.push_back(*zero);
    return complaint;
  }
  if (const std::string_view waited = after(line, "wait timeout after ");
      contains(waited, ", keys: ")) {
    limit_in_ms(waited, complaint);
    accuse_rank_of_key(after(waited, ", keys: "), complaint.accused);
    if (complaint.accused.empty()) complaint.key = keys_of_program(after(waited, ", keys: "));
    return complaint;
  }
  if (const std::string_view waited = after(line, "Timed out after ");
      contains(waited, " clients joined")) {
    complaint.limit = std::chrono::seconds(std::min(number_at(waited).value_or(0), 1 << 20));
    return complaint;
  }
  if (contains(line, "Timed out initializing process group in store based barrier"))
    return complaint;
  return std::nullopt;
}

Found lost(std::string_view line) {
  for (const char* text : {"ncclRemoteError", "remote process exited or there was a network error",
                           "Connection was likely closed. Did the remote server shutdown or crash",
                           "lost the connection to another rank at "}) {
    if (contains(line, text)) return of(ComplaintKind::kLostPeer);
  }
  return std::nullopt;
}

Found complaint_in(std::string_view line) {
  for (const auto parse : {watchdog, barrier, disagreement, store, gloo, lost}) {
    if (Found found = parse(line)) return found;
  }
  return std::nullopt;
}

/// Goes through the lines by which a process accounts for its end.
class Listener {
 public:
  explicit Listener(LineViews lines) : lines_(std::move(lines)) {}

  [[nodiscard]] Found hear() {
    for (at_ = 0; at_ < lines_.size(); ++at_) {
      // The end of a thread or a child takes nothing back.
      const std::size_t aside = complaint_ ? end_of_aside(lines_, at_) : at_;
      if (aside == at_) take(without_prefix(lines_[at_]));
      at_ = std::max(aside, at_ + 1) - 1;
    }
    if (lines_after_ > kLinesAfterMax || !complaint_) return std::nullopt;
    // A rank that gives up says so, saves what it has, and ends: only work shows that it did not.
    const bool survived = sequel_of(lines_, begin_, said_at_ + 1, std::nullopt).worked;
    return survived ? std::nullopt : std::move(complaint_);
  }

 private:
  void take(std::string_view line) {
    const auto begin = line.find_first_not_of(' ');
    if (begin == npos || line.substr(begin).starts_with("frame #")) return;
    const std::string_view text = line.substr(begin);
    if (text.starts_with("File \"")) {
      frame_ = begin;
      return place_.take(text);
    }
    if (begin > frame_) return;  // source of that frame
    const bool ends_traceback = std::exchange(frame_, npos) != npos;
    if (text.starts_with("During handling of ") || text.starts_with("The above exception was ")) {
      chained_ = true;
      return;
    }
    if (text.starts_with("Traceback (most recent call last)")) return begin_exception();
    const bool is_exception = ends_traceback && std::exchange(in_traceback_, false);
    if (Found found = complaint_in(text)) return add(std::move(*found), text, is_exception);
    if (is_exception && !complaint_ && !is_of_control_flow(text)) raised_ = text;
    ++lines_after_;
  }
  // A new one, unless it follows from the one before.
  void begin_exception() {
    in_traceback_ = true;
    if (!std::exchange(chained_, false)) {
      complaint_.reset();
      raised_ = {};
    }
    if (!complaint_) begin_ = at_;
    place_ = Place();
  }
  // The first line of an exception says most; later ones complete it.
  void add(Complaint found, std::string_view line, bool is_exception) {
    lines_after_ = 0;
    said_at_ = at_;
    if (!complaint_ && !is_traceback_heading(lines_[begin_])) begin_ = said_at_;
    if (found.operation.empty()) found.operation = place_.operation;
    if (complaint_) {
      if (!complaint_->sequence) complaint_->sequence = found.sequence;
      if (complaint_->limit.count() == 0) complaint_->limit = found.limit;
      if (complaint_->operation.empty()) complaint_->operation = found.operation;
      return;
    }
    found.place = place_.program;
    // What is printed later, without a traceback, need not have anything to do with it.
    if (is_exception) found.before = clean_utf8(printable(raised_), kComplaintLineMax);
    const std::string said = found.line.empty() ? std::string(line) : found.line;
    found.line = clean_utf8(printable(said.substr(0, kComplaintLineMax)), kComplaintLineMax);
    complaint_ = std::move(found);
  }

  std::size_t frame_ = npos;  // where the File line of a traceback begins; npos: none before
  Place place_;
  Found complaint_;
  bool in_traceback_ = false;
  std::string_view raised_;  // the last exception of a chain before the complaint
  bool chained_ = false;
  int lines_after_ = 0;
  LineViews lines_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;    // of the traceback with the complaint, or that line
  std::size_t said_at_ = 0;  // the last line that belongs to the complaint
};

}  // namespace

std::optional<Complaint> find_complaint(std::string_view tail) {
  return Listener(own_account(split_lines(tail))).hear();
}

std::string account_of(std::string err, const std::string& out) {
  const bool is_of_out = says_nothing(split_lines(err)) && !says_nothing(split_lines(out));
  return is_of_out ? out : std::move(err);
}

bool follows_from_complaint(const ExitStatus& status) {
  return status.by_signal() ? status.signal() == SIGABRT : status.code() != 0;
}

}  // namespace ddprun
