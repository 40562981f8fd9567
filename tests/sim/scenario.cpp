#include "tests/sim/scenario.hpp"

#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "tests/sim/sole_world.hpp"

namespace ddprun::sim {
namespace {

using Words = std::vector<std::string>;

Words split(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

int to_int(const std::string& text) {
  return std::stoi(text);
}

Duration to_duration(const std::string& text) {
  const std::size_t unit = text.find_first_not_of("0123456789");
  const int count = to_int(text.substr(0, unit));
  const std::string name = unit == std::string::npos ? "" : text.substr(unit);
  if (name == "ms") return milliseconds(count);
  if (name == "s") return seconds(count);
  if (name == "min") return seconds(60 * count);
  throw std::runtime_error("not a duration: " + text);
}

/// Value of "name=value" among the words, or nothing.
std::string option(const Words& words, const std::string& name) {
  for (const std::string& word : words) {
    if (word.rfind(name + "=", 0) == 0) return word.substr(name.size() + 1);
  }
  return "";
}

std::string joined(const Words& words, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < words.size(); ++i) text += (i == from ? "" : " ") + words[i];
  return text;
}

class Stage {
 public:
  /// Carries out one command line; what happens is appended to the transcript.
  void act(const std::string& line) {
    const Words words = split(line);
    if (words.front() == "run") return open(words);
    if (!world_) throw std::runtime_error("the first command must be: run MIN:MAX");
    if (words.front() == "coordinator") return coordinator(words);
    if (words.front() == "after") return world_->run_for(to_duration(words.at(1)));
    if (words.front() == "node") return add(words);
    const auto verb = verbs().find(words.front());
    if (verb == verbs().end()) throw std::runtime_error("no such command: " + words.front());
    verb->second(*this, node(words.at(1)), words);
  }
  /// Lets everything that is under way arrive.
  void settle() {
    if (world_) world_->run_for(milliseconds(50));
  }
  [[nodiscard]] std::string take_transcript() { return std::exchange(transcript_, {}); }

 private:
  using Verb = std::function<void(Stage&, int, const Words&)>;

  static const std::map<std::string, Verb>& verbs() {
    static const std::map<std::string, Verb> table{
        {"start",
         [](Stage& s, int, const Words& w) {
           for (std::size_t i = 1; i < w.size(); ++i) s.world_->start_agent(s.node(w[i]));
         }},
        {"kill", [](Stage& s, int n, const Words&) { s.world_->kill_agent(n, "is killed"); }},
        {"power-off", [](Stage& s, int n, const Words&) { s.world_->power_off(n); }},
        {"leave",
         [](Stage& s, int n, const Words&) { s.world_->leave(n, 143, "agent got SIGTERM"); }},
        {"fail", [](Stage& s, int n,
                    const Words& w) { s.world_->fail_worker(n, joined(w, 3), to_int(w.at(2))); }},
        {"finish",
         [](Stage& s, int, const Words& w) {
           for (std::size_t i = 1; i < w.size(); ++i) {
             s.world_->finish_worker_group(s.node(w[i]));
           }
         }},
        {"last-step",
         [](Stage& s, int n, const Words& w) {
           s.world_->take_last_step(n, to_duration(w.at(2)), to_duration(w.at(2)));
         }},
        {"signal",
         [](Stage& s, int n, const Words& w) { s.world_->signal_agent(n, to_int(w.at(2))); }},
        {"drop", [](Stage& s, int n, const Words&) { s.world_->drop_link(n); }},
        {"cut", [](Stage& s, int n, const Words&) { s.world_->set_partitioned(n, true); }},
        {"mend", [](Stage& s, int n, const Words&) { s.world_->set_partitioned(n, false); }},
        {"quiet",
         [](Stage& s, int n, const Words& w) { s.world_->make_quiet(n, to_duration(w.at(2))); }},
        {"pause",
         [](Stage& s, int n, const Words& w) { s.world_->pause_agent(n, to_duration(w.at(2))); }},
    };
    return table;
  }

  void open(const Words& words) {
    SoleOptions options;
    const std::string range = words.at(1);
    const std::size_t colon = range.find(':');
    options.terms.nodes_min = to_int(range.substr(0, colon));
    options.terms.nodes_max = to_int(range.substr(colon + 1));
    const std::string restarts = option(words, "restarts");
    if (!restarts.empty()) options.terms.max_restarts = to_int(restarts);
    const std::string attempts = option(words, "attempts");
    if (!attempts.empty()) options.terms.keep_alive_max_attempt = to_int(attempts);
    const auto time = [&words](const char* name, protocol::Milliseconds& value) {
      const std::string text = option(words, name);
      if (!text.empty()) value = std::chrono::duration_cast<milliseconds>(to_duration(text));
    };
    time("last_call", options.terms.last_call_timeout);
    time("join", options.terms.join_timeout);
    const std::string uptime = option(words, "min_uptime");
    if (!uptime.empty()) time("min_uptime", options.terms.min_uptime.emplace());
    const std::string hang = option(words, "hang_timeout");
    if (!hang.empty()) time("hang_timeout", options.terms.hang_timeout.emplace());
    if (option(words, "restart") == "failed") {
      options.survivor_percent = 100;
      options.steady = true;
    }
    if (option(words, "coordinator") == "root") options.coordinator = Coordinator::kInRoot;
    options.work = seconds(1'000'000);
    options.bytes = Bytes::kCodec;
    nodes_.clear();
    world_ = std::make_unique<SoleWorld>(options);
    world_->trace([this](const std::string& line) { record(line); });
  }

  // The two reports that every start of every round brings tell no story.
  void record(const std::string& line) {
    const bool routine = line.find("-> report: ") != std::string::npos &&
                         (line.ends_with(" starting") || line.ends_with(" running"));
    if (!routine) transcript_ += line + "\n";
  }

  void coordinator(const Words& words) {
    if (words.at(1) == "starts") return world_->start_coordinator();
    if (words.at(1) == "dies") return world_->crash_coordinator();
    if (words.at(1) == "pauses") return world_->pause_coordinator(to_duration(words.at(2)));
    throw std::runtime_error("a coordinator starts, dies or pauses");
  }

  void add(const Words& words) {
    NodeOptions options;
    options.host = words.at(1);
    const std::string workers = option(words, "workers");
    const std::string rank = option(words, "rank");
    const std::string role = option(words, "role");
    if (!workers.empty()) options.workers = to_int(workers);
    if (!rank.empty()) options.node_rank = to_int(rank);
    if (!role.empty()) options.role = role;
    if (const std::string run = option(words, "run"); !run.empty()) options.run_id = run;
    options.fingerprint = option(words, "command");
    nodes_[options.host] = world_->add_node(options);
  }

  int node(const std::string& name) {
    if (nodes_.count(name) == 0) add({"node", name});
    return nodes_.at(name);
  }

  std::unique_ptr<SoleWorld> world_;
  std::map<std::string, int> nodes_;
  std::string transcript_;
};

}  // namespace

std::string replay_scenario(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  Stage stage;
  enum class At { kOutside, kCommands, kTranscript } at = At::kOutside;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) {
      out += "\n";
      at = At::kOutside;
    } else if (at == At::kTranscript) {
      continue;  // the recorded one; the new one is out already
    } else if (line[0] == '#') {
      out += line + "\n";
    } else if (line == "----") {
      stage.settle();
      out += line + "\n" + stage.take_transcript();
      at = At::kTranscript;
    } else {
      out += line + "\n";
      stage.act(line);
      at = At::kCommands;
    }
  }
  return out;
}

}  // namespace ddprun::sim
