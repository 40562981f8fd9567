#include "agent/warm/core/stock.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"

namespace ddprun::warm {
namespace {

constexpr TimePoint kNow{};
constexpr int kPid = 42;

template <class Action>
int count(const StockActions& actions) {
  return static_cast<int>(std::count_if(actions.begin(), actions.end(), [](const auto& action) {
    return std::holds_alternative<Action>(action);
  }));
}

std::string note_of(const StockActions& actions) {
  for (const StockAction& action : actions) {
    if (const auto* note = std::get_if<Note>(&action)) return note->text;
  }
  return {};
}

/// Its template is ready, and forks.
Stock forking_stock() {
  Stock stock(2);
  REQUIRE(stock.wants_template());
  CHECK(stock.template_started(kPid, kNow).empty());
  CHECK(stock.message("hello 42", kNow).empty());
  const StockActions actions = stock.message("ready", kNow);
  REQUIRE(actions.size() == 1);
  CHECK(std::get<Park>(actions.front()).seats == std::vector<int>{0, 1});
  CHECK(!stock.settled());
  return stock;
}

Stock full_stock() {
  Stock stock = forking_stock();
  CHECK(stock.parked(0, kNow).empty());
  CHECK(stock.parked(1, kNow).empty());
  CHECK(stock.settled());
  CHECK(!stock.deadline());
  return stock;
}

TEST_CASE("workers that wait become ranks when they have agreed and no file has changed") {
  Stock stock = full_stock();
  const StockActions asked = stock.ask({0, 1}, kNow);
  CHECK(count<Ask>(asked) == 2);
  CHECK(count<Check>(asked) == 1);
  CHECK(stock.agreed(0, kNow).empty());
  CHECK(stock.agreed(1, kNow).empty());
  CHECK(!stock.answered());
  CHECK(stock.message("same", kNow).empty());
  CHECK(stock.answered());
  CHECK(stock.take(0));
  CHECK(!stock.take(0));
  CHECK(stock.take(1));
  CHECK(stock.release().empty());
  const StockActions again = stock.refill(kNow);
  CHECK(std::get<Park>(again.front()).seats == std::vector<int>{0, 1});
}

TEST_CASE("a seat that is being filled when its round begins is asked as soon as it is") {
  Stock stock = forking_stock();
  CHECK(count<Ask>(stock.ask({0, 1}, kNow)) == 0);
  CHECK(!stock.answered());
  CHECK(count<Ask>(stock.parked(1, kNow)) == 1);
  CHECK(count<Ask>(stock.parked(0, kNow)) == 1);
}

TEST_CASE("a worker that gives no answer in time is killed, the others start warm") {
  Stock stock = full_stock();
  static_cast<void>(stock.ask({0, 1}, kNow));
  CHECK(stock.message("same", kNow).empty());
  CHECK(stock.agreed(1, kNow).empty());
  CHECK(stock.deadline() == kNow + kAnswerMax);
  CHECK(stock.tick(kNow + kAnswerMax - std::chrono::milliseconds(1)).empty());
  const StockActions late = stock.tick(kNow + kAnswerMax);
  CHECK(count<Drop>(late) == 1);
  CHECK(count<EndTemplate>(late) == 0);
  CHECK(stock.answered());
  CHECK(!stock.take(0));
  CHECK(stock.take(1));
}

TEST_CASE("time in which one that was asked got no processor does not count, up to a limit") {
  Stock stock = full_stock();
  static_cast<void>(stock.ask({0, 1}, kNow));
  CHECK(stock.message("same", kNow).empty());
  CHECK(stock.agreed(1, kNow).empty());
  const Duration starved = std::chrono::milliseconds(400);
  CHECK(stock.tick(kNow + kAnswerMax, starved).empty());
  CHECK(stock.deadline() == kNow + kAnswerMax + starved);
  Stock other = stock;
  CHECK(count<Drop>(stock.tick(kNow + kAnswerMax + starved, starved)) == 1);
  CHECK(stock.take(1));
  CHECK(other.tick(kNow + kAnswerMax + starved, kAllAnswersMax).empty());
  CHECK(other.deadline() == kNow + kAllAnswersMax);
  CHECK(count<Drop>(other.tick(kNow + kAllAnswersMax, kAllAnswersMax)) == 1);
}

TEST_CASE("each answer gives the others as much time again, up to a limit") {
  Stock stock = full_stock();
  static_cast<void>(stock.ask({0, 1}, kNow));
  const TimePoint later = kNow + kAnswerMax - std::chrono::milliseconds(1);
  CHECK(stock.agreed(0, later).empty());
  CHECK(stock.deadline() == later + kAnswerMax);
  CHECK(stock.message("same", kNow + kAllAnswersMax - std::chrono::milliseconds(1)).empty());
  CHECK(stock.deadline() == kNow + kAllAnswersMax);
}

TEST_CASE(
    "the files are looked at while the round before is stopped, and again if that takes long") {
  Stock stock = full_stock();
  CHECK(count<Check>(stock.look(kNow)) == 1);
  CHECK(stock.look(kNow).empty());
  CHECK(!stock.deadline());
  Stock late = stock;
  CHECK(count<Check>(stock.ask({0, 1}, kNow)) == 0);
  CHECK(stock.agreed(0, kNow).empty());
  CHECK(stock.agreed(1, kNow).empty());
  CHECK(!stock.answered());
  CHECK(stock.message("same", kNow).empty());
  CHECK(stock.answered());
  CHECK(count<Drop>(stock.release()) == 2);
  CHECK(count<Check>(stock.ask({0, 1}, kNow)) == 1);
  CHECK(late.message("same", kNow).empty());
  CHECK(count<Check>(late.ask({0, 1}, kNow + kLookMax)) == 1);
}

TEST_CASE("a change that is found while the round before is stopped is told in the next one") {
  Stock stock = full_stock();
  static_cast<void>(stock.look(kNow));
  CHECK(stock.message("changed lib.py has changed", kNow).empty());
  CHECK(stock.look(kNow).empty());
  const StockActions asked = stock.ask({0, 1}, kNow);
  CHECK(note_of(asked) == "lib.py has changed");
  CHECK(count<Drop>(asked) == 2);
  CHECK(count<EndTemplate>(asked) == 1);
  CHECK(stock.answered());
  CHECK(stock.wants_template());
}

TEST_CASE("a template that cannot say whether files changed is replaced, and all start cold") {
  Stock stock = full_stock();
  static_cast<void>(stock.ask({0, 1}, kNow));
  CHECK(stock.agreed(0, kNow).empty());
  const StockActions late = stock.tick(kNow + kAnswerMax);
  CHECK(count<Drop>(late) == 2);
  CHECK(count<EndTemplate>(late) == 1);
  CHECK(stock.answered());
  CHECK(!stock.take(0));
  CHECK(stock.wants_template());
}

TEST_CASE("a file that changed since it was imported makes all workers start cold") {
  Stock stock = full_stock();
  static_cast<void>(stock.ask({0, 1}, kNow));
  CHECK(stock.agreed(0, kNow).empty());
  CHECK(stock.agreed(1, kNow).empty());
  const StockActions changed = stock.message("changed lib.py has changed", kNow);
  CHECK(note_of(changed) == "lib.py has changed");
  CHECK(count<Drop>(changed) == 2);
  CHECK(stock.answered());
  CHECK(!stock.take(0));
  CHECK(stock.wants_template());
}

TEST_CASE("a refusal is for the rest of the run, and says why") {
  Stock stock(1);
  static_cast<void>(stock.template_started(kPid, kNow));
  static_cast<void>(stock.message("hello 42", kNow));
  const StockActions refused = stock.message("refused numpy started a thread", kNow);
  CHECK(note_of(refused) == "numpy started a thread");
  CHECK(count<EndTemplate>(refused) == 1);
  CHECK(stock.settled());
  CHECK(!stock.wants_template());
  CHECK(stock.ask({0}, kNow).empty());
  CHECK(stock.answered());
}

TEST_CASE("an interpreter that does not import the hook is killed before it gets far") {
  Stock stock(1);
  static_cast<void>(stock.template_started(kPid, kNow));
  CHECK(stock.tick(kNow + kHelloMax - std::chrono::milliseconds(1)).empty());
  CHECK(count<EndTemplate>(stock.tick(kNow + kHelloMax)) == 1);
  CHECK(stock.state() == TemplateState::kOver);

  Stock other(1);
  static_cast<void>(other.template_started(kPid, kNow));
  CHECK(count<EndTemplate>(other.message("hello 43", kNow)) == 1);
  CHECK(other.state() == TemplateState::kOver);
}

TEST_CASE("the template is started when the interpreter alone has imported the hook") {
  Stock stock(1);
  CHECK(stock.probe_started(kPid, kNow).empty());
  CHECK_FALSE(stock.settled());
  CHECK(count<Begin>(stock.message("able " + std::to_string(kPid), kNow)) == 1);
  CHECK_FALSE(stock.settled());

  Stock never(1);
  static_cast<void>(never.probe_started(kPid, kNow));
  CHECK(count<Begin>(never.template_ended()) == 0);
  CHECK(never.state() == TemplateState::kOver);

  Stock late(1);
  static_cast<void>(late.probe_started(kPid, kNow));
  CHECK(late.put_off().empty());
  CHECK(late.wants_template());
  CHECK_FALSE(late.deadline());
}

TEST_CASE("imports that take too long are refused") {
  Stock stock(1);
  static_cast<void>(stock.template_started(kPid, kNow));
  static_cast<void>(stock.message("hello 42", kNow));
  CHECK(stock.deadline() == kNow + kImportMax);
  CHECK(count<EndTemplate>(stock.tick(kNow + kImportMax)) == 1);
  CHECK(stock.state() == TemplateState::kOver);
}

TEST_CASE("a template that ends takes those that wait along, and is replaced some times") {
  Stock stock = full_stock();
  CHECK(count<Drop>(stock.template_ended()) == 2);
  CHECK(stock.template_ended().empty());
  for (int made = 1; made < kTemplatesMax; ++made) {
    REQUIRE(stock.wants_template());
    static_cast<void>(stock.template_started(kPid, kNow));
    static_cast<void>(stock.message("hello 42", kNow));
    static_cast<void>(stock.message("ready", kNow));
    static_cast<void>(stock.template_ended());
  }
  CHECK(!stock.wants_template());
}

TEST_CASE("a template that ends while it imports is not tried again") {
  Stock stock(1);
  static_cast<void>(stock.template_started(kPid, kNow));
  static_cast<void>(stock.message("hello 42", kNow));
  CHECK(!note_of(stock.template_ended()).empty());
  CHECK(!stock.wants_template());
}

TEST_CASE("what waits and ends, or says something unexpected, leaves its seat empty") {
  Stock stock = full_stock();
  CHECK(count<Drop>(stock.lost(0)) == 1);
  CHECK(stock.seat(0) == SeatState::kEmpty);
  CHECK(count<Drop>(stock.agreed(1, kNow)) == 1);
  CHECK(stock.seat(1) == SeatState::kEmpty);
  CHECK(stock.lost(0).empty());
}

TEST_CASE("forks that take too long end the template, those that ended do not") {
  Stock stock = forking_stock();
  CHECK(stock.parked(0, kNow).empty());
  CHECK(stock.deadline() == kNow + kForkMax);
  Stock other = stock;
  CHECK(count<EndTemplate>(stock.tick(kNow + kForkMax)) == 1);
  CHECK(stock.wants_template());
  CHECK(count<Drop>(other.lost(1)) == 1);
  CHECK(!other.deadline());
  CHECK(other.tick(kNow + kForkMax).empty());
  CHECK(other.settled());
}

TEST_CASE("a worker is forked on demand for a seat that is empty, after the files were looked at") {
  Stock stock = full_stock();
  const StockActions lost = stock.lost(1);
  CHECK(count<Drop>(lost) == 1);
  CHECK(note_of(lost).empty());
  const StockActions asked = stock.ask({0, 1}, kNow);
  REQUIRE(asked.size() == 3);
  CHECK(std::get<Ask>(asked[0]).seat == 0);
  CHECK(std::holds_alternative<Check>(asked[1]));
  CHECK(std::get<Park>(asked[2]).seats == std::vector<int>{1});
  CHECK(!std::get<Park>(asked[2]).ahead);
  CHECK(count<Ask>(stock.parked(1, kNow)) == 1);
  CHECK(stock.agreed(1, kNow).empty());
  CHECK(stock.take(1));
}

TEST_CASE("without a stock all workers are forked on demand, and a late one starts cold") {
  Stock stock(2, false);
  static_cast<void>(stock.template_started(kPid, kNow));
  static_cast<void>(stock.message("hello 42", kNow));
  CHECK(stock.message("ready", kNow).empty());
  CHECK(stock.settled());
  CHECK(count<Park>(stock.ask({0, 1}, kNow)) == 1);
  CHECK(stock.message("same", kNow).empty());
  CHECK(count<Ask>(stock.parked(0, kNow)) == 1);
  CHECK(stock.agreed(0, kNow).empty());
  const StockActions late = stock.tick(kNow + kAnswerMax);
  CHECK(count<Drop>(late) == 1);
  CHECK(count<EndTemplate>(late) == 0);
  CHECK(stock.take(0));
  CHECK(!stock.take(1));
  CHECK(stock.refill(kNow).empty());
}

TEST_CASE("nothing has less time because all processes were stopped for a while") {
  const Duration stopped = 2 * kImportMax;
  Stock asked = full_stock();
  CHECK(count<Ask>(asked.ask({0, 1}, kNow)) == 2);
  asked.extend(stopped);
  CHECK(asked.tick(kNow + stopped).empty());
  CHECK(count<EndTemplate>(asked.tick(kNow + stopped + kAnswerMax)) == 1);
  Stock forking = forking_stock();
  forking.extend(stopped);
  CHECK(forking.tick(kNow + stopped).empty());
  CHECK(count<EndTemplate>(forking.tick(kNow + stopped + kForkMax)) == 1);
}

TEST_CASE("a learned module that spoils a template is left out by the next one") {
  Stock stock(1);
  for (int made = 1; made <= kTemplatesMax; ++made) {
    static_cast<void>(stock.template_started(kPid, kNow));
    static_cast<void>(stock.message("hello 42", kNow));
    const StockActions spoilt = stock.message("spoilt a.b it started a thread", kNow);
    CHECK(note_of(spoilt) == "from a.b on: it started a thread");
    CHECK(count<EndTemplate>(spoilt) == 1);
    CHECK(count<Again>(spoilt) == (made < kTemplatesMax ? 1 : 0));
    CHECK(stock.cuts().size() == static_cast<std::size_t>(made));
  }
  CHECK(stock.state() == TemplateState::kOver);
  for (const char* wrong : {"spoilt ", "spoilt a;b x", "spoilt  x"}) {
    Stock other(1);
    static_cast<void>(other.template_started(kPid, kNow));
    static_cast<void>(other.message("hello 42", kNow));
    CHECK(note_of(other.message(wrong, kNow)) == "the template sent an unexpected message");
    CHECK(other.state() == TemplateState::kOver);
  }
}

TEST_CASE("a worker that ends while its modules are read is followed by another template") {
  Stock stock(1);
  static_cast<void>(stock.template_started(kPid, kNow));
  static_cast<void>(stock.message("hello 42", kNow));
  CHECK(count<EndTemplate>(stock.message("gone it ended", kNow)) == 1);
  CHECK(stock.wants_template());
}

TEST_CASE("a round that does not begin gives up those that it has asked") {
  Stock stock = full_stock();
  static_cast<void>(stock.ask({0, 1}, kNow));
  CHECK(stock.agreed(0, kNow).empty());
  CHECK(count<Drop>(stock.release()) == 2);
  CHECK(!stock.take(0));
}

}  // namespace
}  // namespace ddprun::warm
