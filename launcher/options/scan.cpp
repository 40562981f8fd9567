#include "launcher/options/scan.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/program_name.hpp"
#include "launcher/options/option_table.hpp"
#include "launcher/options/values.hpp"

namespace ddprun {

namespace {

struct Match {
  const OptionSpec* option;
  std::string spelling;
};

/// The option at the start of a word: its spelling, and an attached value.
struct Head {
  const OptionSpec* option;
  std::string spelling;
  std::optional<std::string> attached;  // after '=' or directly after a letter
};

const OptionSpec* by_letter(char letter) {
  for (const OptionSpec& option : all_options()) {
    if (option.letter != 0 && option.letter == letter) return &option;
  }
  return nullptr;
}

/// The spellings that start with `prefix`; an exact one is the only match. torchrun treats the
/// dashed and the underscored spelling as different, so a prefix of both is ambiguous.
std::vector<Match> long_matches(std::string_view prefix) {
  std::vector<Match> matches;
  for (const OptionSpec& option : all_options()) {
    std::vector<std::string> spellings{dashed(option)};
    if (underscored(option) != spellings[0]) spellings.push_back(underscored(option));
    for (const std::string& spelling : spellings) {
      if (spelling == prefix) return {{&option, spelling}};
      if (spelling.starts_with(prefix)) matches.push_back({&option, spelling});
    }
  }
  // Abbreviations of torchrun's options stay valid, whatever options ddprun adds.
  const auto is_own = [](const Match& match) {
    return match.option->variable == OptionVariable::kDdprun;
  };
  if (!std::all_of(matches.begin(), matches.end(), is_own)) std::erase_if(matches, is_own);
  return matches;
}

/// As in argparse, "-1" and "-0.5" are values, because no option of torchrun looks like a number.
bool looks_negative(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  word.remove_prefix(1);
  const auto digits =
      std::count_if(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto dots = std::count(word.begin(), word.end(), '.');
  return digits > 0 && dots <= 1 && static_cast<std::size_t>(digits + dots) == word.size() &&
         word.back() != '.';
}

bool is_value(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return true;
  if (looks_negative(word)) return true;
  const std::string_view name = word.substr(0, word.find('='));
  const bool known =
      word.starts_with("--") ? !long_matches(name).empty() : by_letter(word[1]) != nullptr;
  return !known && word.find(' ') != std::string_view::npos;
}

Error ambiguous(const std::string& name, const std::vector<Match>& matches) {
  std::string text = name + " is ambiguous: it could be ";
  for (std::size_t i = 0; i < matches.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == matches.size() ? " or " : ", ") + matches[i].spelling;
  }
  return usage(std::move(text));
}

class Scanner {
 public:
  explicit Scanner(const std::vector<std::string>& words) : words_(words) {}

  Result<ScannedLine> run() {
    while (next_ < words_.size() && !line_.action) {
      const std::string& word = words_[next_];
      if (word == "--") {
        ++next_;
        break;
      }
      if (is_value(word)) break;
      ++next_;
      if (auto taken = take(word); !taken) return taken.error();
    }
    if (line_.action) return std::move(line_);
    if (unknown_) return unknown_option(*unknown_);
    line_.program.assign(words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
    return std::move(line_);
  }

 private:
  Result<void> take(const std::string& word) {
    return word.starts_with("--") ? take_long(word) : take_cluster(word);
  }

  Result<void> take_long(const std::string& word) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto matches = long_matches(name);
    if (matches.size() > 1) return ambiguous(name, matches);
    if (matches.empty()) {
      remember_unknown(name);
      return {};
    }
    Head head{matches[0].option, matches[0].spelling, std::nullopt};
    if (equals != std::string::npos) head.attached = word.substr(equals + 1);
    if (takes_no_value(*head.option) && head.attached) return refuse_value(head);
    return store(head);
  }

  /// "-r3", "-r=3", "-mr3": each letter of flags, then at most one option with a value.
  Result<void> take_cluster(const std::string& word) {
    for (std::size_t at = 1; at < word.size(); ++at) {
      const OptionSpec* option = by_letter(word[at]);
      const std::string spelling = std::string("-") + word[at];
      if (option == nullptr && at == 1) {
        remember_unknown(word);
        return {};
      }
      if (option == nullptr)
        return refuse_value({by_letter(word[at - 1]), word.substr(0, at), word.substr(at)});
      if (takes_no_value(*option)) {
        auto stored = store({option, spelling, std::nullopt});
        if (!stored || line_.action) return stored;
        continue;
      }
      Head head{option, spelling, std::nullopt};
      if (at + 1 < word.size()) head.attached = word.substr(word[at + 1] == '=' ? at + 2 : at + 1);
      return store(head);
    }
    return {};
  }

  Result<void> store(const Head& head) {
    const OptionSpec& option = *head.option;
    if (option.value == OptionValue::kAction) {
      line_.action = option.id;
      line_.action_value = head.spelling;
      return {};
    }
    if (takes_no_value(option)) {
      line_.options.push_back({option.id, ""});
      return {};
    }
    if (option.value == OptionValue::kOptional && !head.attached) {
      line_.options.push_back({option.id, "on"});
      return {};
    }
    if (head.attached) return keep(head, *head.attached);
    if (next_ == words_.size() || words_[next_] == "--" || !is_value(words_[next_])) {
      return usage(head.spelling + " needs a value: " + head.spelling + " " +
                   std::string(option.metavar));
    }
    return keep(head, words_[next_++]);
  }

  Result<void> keep(const Head& head, const std::string& value) {
    if (head.option->value != OptionValue::kChoiceAction) {
      line_.options.push_back({head.option->id, value});
      return {};
    }
    const auto choices = split_list(head.option->choices);
    if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
      return usage(head.spelling + "='" + value + "' is not one of " + joined(choices));
    }
    line_.action = head.option->id;
    line_.action_value = value;
    return {};
  }

  static bool takes_no_value(const OptionSpec& option) {
    return option.value == OptionValue::kFlag || option.value == OptionValue::kAction;
  }

  static Error refuse_value(const Head& head) {
    return usage(head.spelling + " takes no value, but got '" + head.attached.value_or("") + "'");
  }

  /// Reported only at the end, so that a later --help is still answered, as in argparse.
  void remember_unknown(const std::string& name) {
    if (!unknown_) unknown_ = name;
  }

  static Error unknown_option(const std::string& name) {
    const std::string meant = suggestion(name);
    return usage("unknown option " + name + "; " +
                 (meant.empty() ? program_name() + " --help lists all" : meant) +
                 " (options of the program go after it)");
  }

  const std::vector<std::string>& words_;
  std::size_t next_ = 0;
  ScannedLine line_;
  std::optional<std::string> unknown_;
};

}  // namespace

Result<ScannedLine> scan(const std::vector<std::string>& words) {
  return Scanner(words).run();
}

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before(right.size() + 1);
  std::vector<std::size_t> above(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped =
          i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[right.size()];
}

namespace {

struct Synonym {
  std::string_view name;    // as other launchers spell it, without dashes in front
  std::string_view option;  // ours
};
constexpr Synonym kSynonyms[] = {
    {"n", "nproc-per-node"},
    {"np", "nproc-per-node"},
    {"nprocs", "nproc-per-node"},
    {"nprocs-per-node", "nproc-per-node"},
    {"num-procs", "nproc-per-node"},
    {"num-processes", "nproc-per-node"},
    {"num-proc-per-node", "nproc-per-node"},
    {"ntasks-per-node", "nproc-per-node"},
    {"num-workers", "nproc-per-node"},
    {"workers", "nproc-per-node"},
    {"world-size", "nproc-per-node"},
    {"ngpus", "nproc-per-node"},
    {"num-gpus", "nproc-per-node"},
    {"gpus-per-node", "nproc-per-node"},
    {"N", "nnodes"},
    {"nodes", "nnodes"},
    {"num-nodes", "nnodes"},
    {"num-machines", "nnodes"},
    {"machine-rank", "node-rank"},
    {"main-process-ip", "master-addr"},
    {"main-process-port", "master-port"},
    {"port", "master-port"},
    {"H", "hosts"},
    {"hostfile", "hosts"},
    {"machinefile", "hosts"},
    {"endpoint", "rdzv-endpoint"},
    {"rendezvous-endpoint", "rdzv-endpoint"},
    {"rendezvous-backend", "rdzv-backend"},
    {"backend", "rdzv-backend"},
    {"run-id", "rdzv-id"},
    {"job-id", "rdzv-id"},
    {"restarts", "max-restarts"},
    {"retries", "max-restarts"},
    {"max-retries", "max-restarts"},
    {"grace-period", "shutdown-timeout"},
    {"timeout", "hang-timeout"},
    {"heartbeat-timeout", "hang-timeout"},
    {"logs", "log-dir"},
    {"output-dir", "log-dir"},
    {"silent", "quiet"},
    {"background", "detach"},
    {"daemon", "detach"},
    {"V", "version"},
};

std::string_view synonym_of(std::string_view name) {
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.name == name) return synonym.option;
  }
  return {};
}

std::size_t common_prefix(std::string_view left, std::string_view right) {
  const auto differs = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return static_cast<std::size_t>(differs.first - left.begin());
}

/// An option that begins like this, or of whose name it has all but the end. The longest such
/// beginning decides, then the order of --help: workers before nodes.
std::string_view begun_by(std::string_view name) {
  const OptionSpec* best = nullptr;
  std::size_t best_length = 0;
  for (const OptionSpec& option : all_options()) {
    const std::size_t length = common_prefix(name, option.name);
    const bool nearly_all = length >= 4 && length * 4 >= option.name.size() * 3;
    if ((length < name.size() && !nearly_all) || length < best_length) continue;
    const bool first = best != nullptr && length == best_length && option.group >= best->group;
    if (first) continue;
    best = &option;
    best_length = length;
  }
  return best == nullptr ? std::string_view() : best->name;
}

std::string_view spelled_like(std::string_view name) {
  std::string_view best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const OptionSpec& option : all_options()) {
    const std::size_t distance = edit_distance(name, option.name);
    if (distance >= best_distance) continue;
    best = option.name;
    best_distance = distance;
  }
  return is_typing_mistake(name, best_distance) ? best : std::string_view();
}

}  // namespace

bool is_typing_mistake(std::string_view word, std::size_t distance) {
  constexpr std::size_t kLettersPerMistake = 3;
  return distance * kLettersPerMistake <= word.size();
}

std::string suggestion(const std::string& unknown) {
  std::string name = unknown.substr(std::min(unknown.find_first_not_of('-'), unknown.size()));
  std::replace(name.begin(), name.end(), '_', '-');
  name.resize(std::min(name.find('='), name.size()));
  if (unknown.starts_with("-") && !unknown.starts_with("--")) {  // "-n2" of mpirun
    name.resize(name.find_last_not_of("0123456789") + 1);
  }
  if (name.empty()) return {};
  for (const auto find : {synonym_of, begun_by, spelled_like}) {
    const std::string_view option = find(name);
    if (!option.empty()) return "did you mean --" + std::string(option) + "?";
  }
  return {};
}

}  // namespace ddprun
