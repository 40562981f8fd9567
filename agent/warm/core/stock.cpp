#include "agent/warm/core/stock.hpp"

#include <algorithm>
#include <array>

namespace ddprun::warm {

namespace {

constexpr std::string_view kRefused = "refused ";
constexpr std::string_view kChanged = "changed ";
constexpr std::string_view kGone = "gone ";
constexpr std::string_view kReady = "ready";     // and the number of modules
constexpr std::string_view kSpoilt = "spoilt ";  // and a module, and what it does

bool is_module(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    const bool word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return word || c == '_' || c == '.' || (static_cast<unsigned char>(c) >= 128);
  });
}

// As in agent/warm/sitecustomize.py.
constexpr std::array<std::string_view, 13> kLateNames{
    "RANK",        "LOCAL_RANK",       "GROUP_RANK",           "ROLE_RANK",
    "ROLE_NAME",   "WORLD_SIZE",       "LOCAL_WORLD_SIZE",     "ROLE_WORLD_SIZE",
    "MASTER_ADDR", "GROUP_WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "MASTER_PORT"};

template <class Map>
std::string first_difference(const Map& one, const Map& other) {
  const auto pair = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  const bool first = pair.first != one.end();
  const bool second = pair.second != other.end();
  if (!first && !second) return {};
  if (!first || !second) return first ? pair.first->first : pair.second->first;
  return std::min(pair.first->first, pair.second->first);
}

}  // namespace

bool Stock::wants_template() const {
  return state_ == TemplateState::kNone && templates_ < kTemplatesMax;
}

StockActions Stock::probe_started(int pid, TimePoint now) {
  state_ = TemplateState::kStarting;
  pid_ = pid;
  template_due_ = now + kHelloMax;
  return {};
}

StockActions Stock::template_started(int pid, TimePoint now) {
  ++templates_;
  return probe_started(pid, now);
}

StockActions Stock::put_off() {
  state_ = TemplateState::kNone;
  template_due_.reset();
  return {};
}

StockActions Stock::refuse(const std::string& why) {
  return give_up(TemplateState::kOver, why);
}

StockActions Stock::message(std::string_view text, TimePoint now) {
  if (state_ == TemplateState::kNone || state_ == TemplateState::kOver) return {};
  if (text.starts_with(kRefused)) return refuse(std::string(text.substr(kRefused.size())));
  if (state_ == TemplateState::kImporting && text.starts_with(kSpoilt)) {
    return spoilt(text.substr(kSpoilt.size()));
  }
  if (state_ == TemplateState::kImporting && text.starts_with(kGone)) {
    return give_up(TemplateState::kNone, std::string(text.substr(kGone.size())));
  }
  if (state_ == TemplateState::kStarting && text == "able " + std::to_string(pid_)) {
    return {Begin{}};
  }
  if (state_ == TemplateState::kStarting && text == "hello " + std::to_string(pid_)) {
    state_ = TemplateState::kImporting;
    template_due_ = now + kImportMax;
    return {};
  }
  if (state_ == TemplateState::kImporting && text.starts_with(kReady)) {
    state_ = TemplateState::kReady;
    template_due_.reset();
    return refill(now);
  }
  if (checking_ && text == "same") {
    checking_ = false;
    answer_came(now);
    return {};
  }
  if (checking_ && text.starts_with(kChanged)) {
    changed_ = text.substr(kChanged.size());
    checking_ = false;
    if (!answers_due_) return {};
    return give_up(TemplateState::kNone, std::string(changed_));
  }
  return refuse("the template sent an unexpected message");
}

StockActions Stock::spoilt(std::string_view text) {
  const std::string name(text.substr(0, text.find(' ')));
  if (!is_module(name)) return refuse("the template sent an unexpected message");
  const std::string what(text.substr(std::min(name.size() + 1, text.size())));
  cuts_.push_back(name);
  const bool again = templates_ < kTemplatesMax;
  auto actions =
      give_up(again ? TemplateState::kNone : TemplateState::kOver, "from " + name + " on: " + what);
  if (again) actions.emplace_back(Again{});
  return actions;
}

StockActions Stock::template_ended() {
  if (state_ == TemplateState::kNone || state_ == TemplateState::kOver) return {};
  if (state_ == TemplateState::kStarting) {
    return refuse("the interpreter ended without importing what ddprun put into PYTHONPATH");
  }
  if (state_ == TemplateState::kImporting) return refuse("the template ended while it imported");
  return give_up(TemplateState::kNone, "the template ended");
}

StockActions Stock::parked(int seat, TimePoint now) {
  Seat& filled = at(seat);
  if (filled.state != SeatState::kForking) return lost(seat);
  filled.state = SeatState::kParked;
  if (!filled.wanted) return {};
  filled.wanted = false;
  filled.state = SeatState::kAsked;
  answer_came(now);
  return {Ask{seat}};
}

StockActions Stock::agreed(int seat, TimePoint now) {
  if (at(seat).state != SeatState::kAsked) return lost(seat);
  at(seat).state = SeatState::kAgreed;
  answer_came(now);
  return {};
}

StockActions Stock::lost(int seat) {
  const SeatState was = at(seat).state;
  if (was == SeatState::kEmpty) return {};
  const bool wanted = at(seat).wanted || was == SeatState::kAsked || was == SeatState::kAgreed;
  at(seat) = {};
  if (!wanted) return {Drop{seat}};  // its round gets another one
  return {Drop{seat}, Note{"a worker that waited has ended"}};
}

void Stock::answer_came(TimePoint now) {
  answered_at_ = now;
  if (answers_due_) answers_due_ = std::min(now + kAnswerMax, asked_at_ + kAllAnswersMax);
}

StockActions Stock::look(TimePoint now) {
  if (state_ != TemplateState::kReady || checking_ || !changed_.empty()) return {};
  checking_ = true;
  looked_at_ = now;
  return {Check{}};
}

StockActions Stock::ask(const std::vector<int>& seats, TimePoint now) {
  StockActions actions;
  if (state_ != TemplateState::kReady) return actions;
  if (!changed_.empty()) return give_up(TemplateState::kNone, std::string(changed_));
  Park missing{{}, false};
  for (const int seat : seats) {
    Seat& asked = at(seat);
    if (asked.state == SeatState::kEmpty) {
      asked.state = SeatState::kForking;
      missing.seats.push_back(seat);
    }
    if (asked.state == SeatState::kForking) asked.wanted = true;
    if (asked.state != SeatState::kParked) continue;
    asked.state = SeatState::kAsked;
    actions.emplace_back(Ask{seat});
  }
  if (answered()) return actions;
  if (!looked_at_ || *looked_at_ + kLookMax <= now) {
    const StockActions check = look(now);  // before the forks, which take longer
    actions.insert(actions.end(), check.begin(), check.end());
  }
  looked_at_.reset();  // for one round
  asked_at_ = now;
  answers_due_ = now;
  answer_came(now);
  if (missing.seats.empty()) return actions;
  template_due_ = now + kForkMax;
  actions.emplace_back(std::move(missing));
  return actions;
}

bool Stock::answered() const {
  const bool wanted =
      std::any_of(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.wanted; });
  return !wanted && !any(SeatState::kAsked) && !(checking_ && any(SeatState::kAgreed));
}

bool Stock::take(int seat) {
  if (at(seat).state != SeatState::kAgreed) return false;
  at(seat) = {};
  return true;
}

StockActions Stock::release() {
  StockActions actions;
  answers_due_.reset();
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    seats_[i].wanted = false;
    const SeatState state = seats_[i].state;
    if (state != SeatState::kAsked && state != SeatState::kAgreed) continue;
    seats_[i] = {};
    actions.emplace_back(Drop{static_cast<int>(i)});
  }
  return actions;
}

StockActions Stock::refill(TimePoint now) {
  Park park;
  if (state_ != TemplateState::kReady || !ahead_) return {};
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].state != SeatState::kEmpty) continue;
    seats_[i].state = SeatState::kForking;
    park.seats.push_back(static_cast<int>(i));
  }
  if (park.seats.empty()) return {};
  template_due_ = now + kForkMax;
  return {std::move(park)};
}

StockActions Stock::tick(TimePoint now, Duration starved) {
  if (answers_due_ && *answers_due_ <= now) {
    answers_due_ = std::min(answered_at_ + kAnswerMax + starved, asked_at_ + kAllAnswersMax);
    if (*answers_due_ > now) return {};
    if (checking_) return give_up(TemplateState::kNone, "the template gave no answer in 500 ms");
    return drop_silent();
  }
  if (state_ == TemplateState::kReady && !any(SeatState::kForking)) template_due_.reset();
  if (template_due_ && *template_due_ <= now) {
    switch (state_) {
      case TemplateState::kStarting:
        return refuse("the interpreter did not import what ddprun put into PYTHONPATH");
      case TemplateState::kImporting:
        return refuse("the imports took more than 10 min");
      default:
        return give_up(TemplateState::kNone, "the template did not fork within 30 s");
    }
  }
  return {};
}

StockActions Stock::drop_silent() {
  StockActions actions;
  answers_due_.reset();
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].state != SeatState::kAsked && !seats_[i].wanted) continue;
    seats_[i] = {};
    actions.emplace_back(Drop{static_cast<int>(i)});
  }
  if (!actions.empty()) actions.emplace_back(Note{"a worker that waited gave no answer in 500 ms"});
  return actions;
}

std::optional<TimePoint> Stock::deadline() const {
  // The forks are done, or given up.
  if (state_ == TemplateState::kReady && !any(SeatState::kForking)) return answers_due_;
  if (!answers_due_ || !template_due_) return answers_due_ ? answers_due_ : template_due_;
  return std::min(*answers_due_, *template_due_);
}

void Stock::extend(Duration by) {
  if (template_due_) *template_due_ += by;
  if (answers_due_) *answers_due_ += by;
  answered_at_ += by;
  asked_at_ += by;
}

bool Stock::settled() const {
  const bool coming = state_ == TemplateState::kStarting || state_ == TemplateState::kImporting;
  return !coming && !any(SeatState::kForking);
}

bool Stock::any(SeatState state) const {
  return std::any_of(seats_.begin(), seats_.end(),
                     [state](const Seat& seat) { return seat.state == state; });
}

// Without a template that answers nothing says that its workers are as good as new ones.
StockActions Stock::give_up(TemplateState next, const std::string& why) {
  StockActions actions;
  if (state_ != TemplateState::kNone && state_ != TemplateState::kOver) {
    actions.emplace_back(EndTemplate{});
  }
  state_ = next;
  checking_ = false;
  looked_at_.reset();
  changed_.clear();
  template_due_.reset();
  answers_due_.reset();
  drop_all(actions);
  actions.emplace_back(Note{why});
  return actions;
}

void Stock::drop_all(StockActions& actions) {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].state != SeatState::kEmpty) actions.emplace_back(Drop{static_cast<int>(i)});
    seats_[i] = {};
  }
}

bool is_late(std::string_view name) {
  if (name == "DDPRUN_WORKER_LIBRARY") return false;  // read when the module ddprun is imported
  if (name.starts_with("TORCHELASTIC_") || name.starts_with("DDPRUN_")) return true;
  return std::find(kLateNames.begin(), kLateNames.end(), name) != kLateNames.end();
}

Environment common_environment(const Environment& environment) {
  Environment common;
  for (const auto& [name, value] : environment) {
    if (!is_late(name)) common.emplace_hint(common.end(), name, value);
  }
  return common;
}

std::string difference(const Start& made, const Start& wanted) {
  if (made.program != wanted.program) return "the interpreter";
  if (made.argv != wanted.argv) return "the command line";
  std::string variable = first_difference(common_environment(made.environment),
                                          common_environment(wanted.environment));
  if (!variable.empty()) return variable;
  const std::string other = first_difference(made.inherited, wanted.inherited);
  return other.empty() ? "" : "the " + other;
}

}  // namespace ddprun::warm
