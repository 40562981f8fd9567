// `ddprun signal`, `ddprun stacks` and `ddprun stop`.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/exit_status.hpp"
#include "launcher/commands/commands.hpp"
#include "launcher/commands/runs.hpp"
#include "launcher/options/values.hpp"

namespace ddprun::commands {

namespace {

/// "USR1", "SIGUSR1", "usr1" or "10"; 0: none of them.
int parse_signal(const std::string& word) {
  const auto number = parse_integer(word);
  if (number) return *number >= 1 && *number < NSIG ? static_cast<int>(*number) : 0;
  std::string name = word;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char one) { return static_cast<char>(std::toupper(one)); });
  return signal_number(name.starts_with("SIG") ? name : "SIG" + name);
}

/// Without a deadline: a run has its own --shutdown-timeout, and Ctrl-C ends the wait.
void wait_for_end(int pidfd) {
  pollfd ended{pidfd, POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0) {
  }
}

/// What one answer suffices for.
int ask_once(const std::string& name, const control::Request& request,
             const Environment& environment) {
  const auto run = find_run(name, environment);
  if (!run) return fail(run.error().sentence);
  if (!run->answered) return fail_silent(*run, name);
  const Answer answer = answer_of(send_to(*run, request), soon());
  const std::string id = "run " + text_in(run->status, "run_id");
  switch (answer.kind) {
    case Answer::Kind::kDone:
      return print(answer.text + "\n");
    case Answer::Kind::kRefused:
      return fail(id + ": " + answer.text);
    case Answer::Kind::kSilent:
      break;
  }
  if (run->has_ended()) return fail(id + " has ended in this moment");
  return fail_silent(*run, name, answer.text);
}

struct StopOrder {
  bool all_nodes = false;
  bool waits = true;
};

/// What was asked for; how the run ends is not waited for.
std::string asked_text(const FoundRun& run, const StopOrder& order) {
  if (order.all_nodes) return " is asked to end on all nodes\n";
  const bool single = text_in(run.status, "coordinator").empty();
  return single ? " is stopping\n" : " is stopping on " + text_in(run.status, "host") + "\n";
}

bool flag_in(const boost::json::object& object, const char* name) {
  const boost::json::value* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

/// `outcome`: what its ddprun said at its end; silent where it could not, or is of an older
/// version.
int report_outcome(const FoundRun& run, const StopOrder& order, const Answer& outcome) {
  const std::string name = "run " + text_in(run.status, "run_id");
  const bool single = text_in(run.status, "coordinator").empty();
  if (outcome.kind != Answer::Kind::kDone) {
    if (single) return print(name + " has ended\n");
    const std::string text = name + ": its ddprun on " + text_in(run.status, "host") +
                             " has ended without a word about the other nodes";
    return order.all_nodes ? fail(text) : print(text + "\n");
  }
  if (flag_in(outcome.object, "run_ended")) return print(name + " " + outcome.text + "\n");
  const std::string text = name + ": " + outcome.text;
  if (order.all_nodes) return fail(text + "; it was not ended on all nodes");
  return print(text + "\n");
}

int stop_run(const FoundRun& run, const std::string& name, const StopOrder& order) {
  const auto pid = static_cast<pid_t>(number_in(run.status, "pid"));
  // Before the request: afterwards another process may have its pid.
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  control::Request request{control::Command::kStop};
  request.all_nodes = order.all_nodes;
  request.waits = order.waits;
  const Asked asked = send_to(run, request);
  const Answer begun = answer_of(asked, soon());
  const bool has_ended = begun.kind == Answer::Kind::kSilent && run.has_ended();
  if (begun.kind == Answer::Kind::kSilent && !has_ended) {
    return fail_silent(run, name, begun.text + "; it stops if it has read the request");
  }
  if (begun.kind == Answer::Kind::kRefused) {
    return fail("run " + text_in(run.status, "run_id") + ": " + begun.text);
  }
  if (!order.waits && !has_ended) {
    return print("run " + text_in(run.status, "run_id") + asked_text(run, order));
  }
  const Answer outcome = has_ended ? begun : answer_of(asked, std::nullopt);
  if (process.number() >= 0) wait_for_end(process.number());
  return report_outcome(run, order, outcome);
}

}  // namespace

int signal(const Arguments& arguments, const Environment& environment) {
  Arguments words = arguments;
  const bool force = std::erase(words, "--force") > 0;
  if (words.size() != 2) {
    return misuse("ddprun signal takes a run and a signal: ddprun signal RUN SIGNAL [--force]");
  }
  const int number = parse_signal(words.back());
  if (number == 0) return misuse("there is no signal " + words.back());
  control::Request request{control::Command::kSignal};
  request.signal = number;
  request.force = force;
  return ask_once(words.front(), request, environment);
}

int stacks(const Arguments& arguments, const Environment& environment) {
  if (arguments.size() != 1) return misuse("ddprun stacks takes one run");
  return ask_once(arguments.front(), {control::Command::kStacks}, environment);
}

int stop(const Arguments& arguments, const Environment& environment) {
  Arguments names = arguments;
  StopOrder order;
  order.waits = std::erase(names, "--no-wait") == 0;
  order.all_nodes = std::erase(names, "--all-nodes") != 0;
  if (names.size() != 1) {
    return misuse("ddprun stop takes one run: ddprun stop RUN [--all-nodes] [--no-wait]");
  }
  const auto run = find_run(names.front(), environment);
  if (!run) return fail(run.error().sentence);
  if (!run->answered) return fail_silent(*run, names.front());
  return stop_run(*run, names.front(), order);
}

}  // namespace ddprun::commands
