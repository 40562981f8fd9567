#include "rendezvous/round/record.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ddprun::round {

namespace {

constexpr std::string_view kTermMark = "term-";
constexpr char kLineageMark = '@';

RunTerms run_terms_of(const RunId& run, const RunRecord::Agreed& agreed) {
  return {run, agreed.terms, agreed.fingerprint, "", agreed.host, agreed.address};
}

/// Whether the agent was in this run or in one before it. A round is of it by its number, since a
/// later run has higher ones; or by its author, of which the verdict's coordinator may not have
/// known the last round. Who has heard of a round only, as a spare node, has no workers.
bool was_in(const RunRecord::Ended& ended, const protocol::Hello& hello) {
  if (!hello.claim) return hello.seen > Round(0) && hello.seen.value() <= ended.round;
  const protocol::RoundStamp& stamp = hello.claim->stamp;
  const std::int64_t term = term_of_author(stamp.author);
  return stamp.number.value() <= ended.round || (term > 0 && term <= ended.verdict.term);
}

}  // namespace

std::string author_name(std::int64_t term, const std::string& unique) {
  return term > 0 ? std::string(kTermMark) + std::to_string(term) + "-" + unique : unique;
}

std::string author_of_lineage(const std::string& lineage, const std::string& unique) {
  return unique + kLineageMark + lineage;
}

std::string_view lineage_of(const std::string& author) {
  const auto mark = author.find(kLineageMark);
  return mark == std::string::npos ? "" : std::string_view(author).substr(mark + 1);
}

std::int64_t term_of_author(const std::string& author) {
  std::string_view rest = author;
  if (!rest.starts_with(kTermMark)) return 0;
  rest.remove_prefix(kTermMark.size());
  std::int64_t term = 0;
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data(), end, term);
  return error == std::errc() && stop != end && *stop == '-' ? term : 0;
}

RunRecord::Agreed agreed_on(const RunTerms& run_terms) {
  RunRecord::Agreed agreed{run_terms.terms, run_terms.fingerprint, run_terms.host,
                           run_terms.address};
  agreed.terms.list_begins.clear();
  return agreed;
}

std::optional<RunTerms> standing_terms(const RunId& run, const RunRecord& record) {
  if (record.over || !record.agreed) return std::nullopt;
  return run_terms_of(run, *record.agreed);
}

std::vector<RunRecord::Ended> ended_runs(const RunRecord& record) {
  std::vector<RunRecord::Ended> ended = record.before;
  if (record.over) ended.push_back({record.round, *record.over});
  if (ended.size() > kEndedRunsMax) ended.erase(ended.begin());
  return ended;
}

const RunRecord::Verdict* missed_verdict(const std::vector<RunRecord::Ended>& ended,
                                         const protocol::Hello& hello) {
  const auto run = std::find_if(ended.begin(), ended.end(),
                                [&hello](const auto& one) { return was_in(one, hello); });
  return run == ended.end() ? nullptr : &run->verdict;
}

bool is_of_other_command(const RunRecord& record, const protocol::Hello& hello) {
  return record.over && record.agreed &&
         has_other_command(hello, run_terms_of(hello.run_id, *record.agreed));
}

std::optional<protocol::Refused> refuse_record(const protocol::Hello& hello,
                                               const RunRecord& record) {
  const auto run_terms = standing_terms(hello.run_id, record);
  return run_terms ? refuse_terms(hello, *run_terms) : std::nullopt;
}

}  // namespace ddprun::round
