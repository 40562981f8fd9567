#include "agent/events/metrics.hpp"

#include <algorithm>
#include <cstdio>

#include "base/printable.hpp"

namespace ddprun {

namespace {

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string label_value(const std::string& text) {
  std::string escaped;
  for (const char letter : printable(text)) {
    if (letter == '"' || letter == '\\') escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string shown(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.6f", value);
  return text.data();
}

/// One family with its only sample.
std::string family(const std::string& name, const char* type, const char* help,
                   const std::string& value) {
  return "# HELP ddprun_" + name + " " + help + "\n# TYPE ddprun_" + name + " " + type +
         "\nddprun_" + name + " " + value + "\n";
}

template <class Number>
std::string gauge(const std::string& name, const char* help, Number value) {
  return family(name, "gauge", help, std::to_string(value));
}

template <class Number>
std::string counter(const std::string& name, const char* help, Number value) {
  return family(name, "counter", help, std::to_string(value));
}

std::string steps_text(const MetricsFacts& facts) {
  if (facts.steps.empty()) return {};
  std::string text =
      "# HELP ddprun_last_step The last step that a rank of this node has finished.\n"
      "# TYPE ddprun_last_step gauge\n";
  for (const auto& [rank, step] : facts.steps) {
    text += "ddprun_last_step{rank=\"" + std::to_string(rank.value()) + "\"} " +
            std::to_string(step) + "\n";
  }
  return text;
}

}  // namespace

void RunMetrics::take(const RunEvent& event, Duration since_start) {
  const double at = seconds_of(since_start);
  if (event.name == "round") take_round(event, at);
  if (event.name == "worker_started") {
    ++started_;
    ++running_;
    if (!first_started_) {
      first_started_ = at;
      add(kStart, ended_ && decided_ ? std::max(ended_, decided_) : decided_, at);
    }
  }
  if (event.name == "all_running") {
    add(kSpawn, first_started_, at);
    healthy_since_ = at;
  }
  if (event.name == "worker_exited") {
    --running_;
    end_health(at);
  }
  if (event.name == "stop_began") {
    end_health(at);
    stop_began_ = at;
  }
  if (event.name == "round_ended") {
    end_health(at);
    add(kStop, stop_began_, at);
    stop_began_.reset();
    first_started_.reset();
    ended_ = at;
  }
  if (event.name == "first_failure") ++failures_;
  if (event.name == "link_lost") ++links_lost_;
  if (event.name == "signal") ++signals_;
}

void RunMetrics::take_round(const RunEvent& event, double at) {
  ++rounds_;
  round_ = event.round.value();
  restarts_ = event.number("restarts");
  nodes_ = event.number("nodes");
  world_size_ = event.number("world_size");
  decided_ = at;
  // A round that is decided while the one before still stops has cost nothing of its own.
  const bool is_waited_for = rounds_ == 1 || (ended_ && !stop_began_ && running_ == 0);
  if (rounds_ > 1) add(kRendezvous, is_waited_for ? ended_ : At(at), at);
}

void RunMetrics::add(Phase phase, At from, double to) {
  if (!from) return;
  ++phases_[phase].count;
  phases_[phase].seconds += std::max(0.0, to - *from);
}

void RunMetrics::end_health(double at) {
  if (healthy_since_) healthy_ += at - *healthy_since_;
  healthy_since_.reset();
}

double RunMetrics::healthy_seconds(double now) const {
  return healthy_ + (healthy_since_ ? now - *healthy_since_ : 0);
}

std::string RunMetrics::text(const MetricsFacts& facts) const {
  const double age = seconds_of(facts.age);
  std::string text = "# HELP ddprun_info The run and the node.\n# TYPE ddprun_info gauge\n";
  text += "ddprun_info{version=\"" + label_value(facts.version) + "\",run=\"" +
          label_value(facts.run) + "\",host=\"" + label_value(facts.host) + "\"} 1\n";
  text += family("age_seconds", "gauge", "Time since ddprun started.", shown(age));
  text += gauge("round", "The current round; 0 before the first.", round_);
  text += counter("rounds_total", "Rounds that this node took part in.", rounds_);
  text += counter("restarts_total", "Restarts of the run.", restarts_);
  text += gauge("nodes", "Nodes of the round.", nodes_);
  text += gauge("world_size", "Ranks of the round, on all nodes.", world_size_);
  text += gauge("workers_running", "Workers of this node that run.", running_);
  text +=
      gauge("all_workers_running", "1 while all workers of this node run.", healthy_since_ ? 1 : 0);
  text += family("all_workers_running_seconds_total", "counter",
                 "Time in which all workers of this node ran.", shown(healthy_seconds(age)));
  text += counter("workers_started_total", "Workers that were started on this node.", started_);
  text += counter("failures_total", "Rounds that a worker of this node made fail.", failures_);
  text +=
      counter("links_lost_total", "Connections to the coordinator that were lost.", links_lost_);
  text += counter("signals_total", "Signals that ddprun received.", signals_);
  text += counter("output_bytes_total", "Output of workers that passed through ddprun.",
                  facts.output_bytes);
  text += gauge("store_connections", "Clients of the stores that this node serves.",
                facts.store_connections);
  text += gauge("store_keys", "Keys in the stores that this node serves.", facts.store_keys);
  text += counter("store_peers_refused_total", "Connections that the stores of this node refused.",
                  facts.store_refused);
  text += steps_text(facts);
  text += recovery_text();
  text += family("process_cpu_seconds_total", "counter", "Processor time of ddprun's agent.",
                 shown(facts.cpu_seconds));
  text += family("loop_turn_seconds_max", "gauge",
                 "The longest turn of the event loop of ddprun's agent.",
                 shown(seconds_of(facts.longest_turn)));
  text += family("loop_turn_cpu_seconds_max", "gauge",
                 "Most processor time of one turn; 0 if none took 20 ms.",
                 shown(seconds_of(facts.turn_cpu_max)));
  text += gauge("process_resident_memory_max_bytes", "Most memory that ddprun's agent had.",
                facts.resident_bytes);
  return text;
}

std::string RunMetrics::recovery_text() const {
  std::string text =
      "# HELP ddprun_recovery_seconds What each phase from one round to the next took.\n"
      "# TYPE ddprun_recovery_seconds summary\n";
  constexpr std::array<const char*, kPhases> kNames{"stop", "rendezvous", "start", "spawn"};
  for (std::size_t i = 0; i < kPhases; ++i) {
    const std::string label = "{phase=\"" + std::string(kNames[i]) + "\"} ";
    text += "ddprun_recovery_seconds_sum" + label + shown(phases_[i].seconds) + "\n";
    text += "ddprun_recovery_seconds_count" + label + std::to_string(phases_[i].count) + "\n";
  }
  return text;
}

}  // namespace ddprun
