#include "agent/worker_link/worker_links.hpp"

#include <errno.h>
#include <linux/magic.h>
#include <spdlog/logger.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>

#include "agent/control/directory.hpp"
#include "agent/proc/files.hpp"
#include "agent/proc/leftovers.hpp"
#include "agent/proc/process_table.hpp"
#include "base/message_line.hpp"

namespace ddprun {

namespace {

// Processes between a worker and the one that connects; one that is further away has no link.
constexpr int kAncestorsMax = 64;
constexpr const char* kSuffix = ".link";

}  // namespace

// Closed to other users, because a process that may connect can hold up the one that closes what
// was sent there (SO_LINGER).
Result<std::string> private_directory() {
  const std::string user = std::to_string(::geteuid());
  Error why(ErrorKind::kSystem, "neither /dev/shm nor /tmp is a tmpfs that can be written");
  for (const std::string& place : {std::string("/dev/shm"), std::string("/tmp")}) {
    struct statfs facts = {};
    if (::statfs(place.c_str(), &facts) != 0 || facts.f_type != TMPFS_MAGIC) continue;
    auto directory = control::private_directory_at(place + "/ddprun-" + user);
    if (directory && ::access(directory->c_str(), W_OK) == 0) return directory;
    // Another user may have made it, or the file system is read-only now.
    why = directory ? Error(ErrorKind::kSystem,
                            "cannot write to " + *directory + ": " + ::strerror(errno))
                    : directory.error();
  }
  return why;
}

namespace {

// What agents left that got SIGKILL. Those of other PID namespaces may be there, too.
void remove_leftovers(const std::string& directory) {
  for_each_entry(directory, [&](const dirent& entry) {
    const std::string name = entry.d_name;
    const bool is_socket =
        name.ends_with(kSuffix) || control::is_unfinished_of_ended(name, kSuffix);
    const bool is_pipe = name.ends_with(kTimersSuffix) || is_left_unfinished(name);
    if (is_socket) remove_if_refused(directory + "/" + name);
    if (is_pipe) static_cast<void>(remove_if_unread(directory + "/" + name));
    return true;
  });
}

// How many workers and spares may have links at one time. A node that waits for a part in the run
// has a spare for each of its ranks.
int linked_processes(const LaunchConfig& config) {
  const int spares = config.stopping.spares;
  return config.workers.count + (spares == 0 ? 0 : std::max(spares, config.workers.count));
}

std::string no_link_line(const LaunchConfig& config, const std::string& why) {
  std::string text = "workers cannot report steps: " + why;
  const bool spares = config.stopping.spares > 0;
  if (config.stopping.rejoin_timeout) {
    text += spares ? "; --restart=failed and --spares have no effect"
                   : "; --restart=failed has no effect";
  }
  return note_line("LINK", text);
}

}  // namespace

std::string WorkerLinks::open(const boost::asio::any_io_executor& executor,
                              const std::string& nonce, const LaunchConfig& config,
                              spdlog::logger& logger) {
  if (path_) return *path_;
  path_.emplace();
  const auto directory = private_directory();
  Result<std::unique_ptr<worker_link::Server>> server = directory.error();
  std::string path;
  if (directory) {
    remove_leftovers(*directory);
    path = *directory + "/" + std::to_string(::getpid()) + "-" + nonce + kSuffix;
    server = worker_link::Server::open(executor, path, linked_processes(config), *this);
  }
  if (!server) {
    logger.info(no_link_line(config, server.error().sentence));
    return {};
  }
  server_ = std::move(*server);
  path_ = path;
  return path;
}

WorkerLinks::Number WorkerLinks::add(int pid, std::string mark, Seat seat) {
  const Number number(++last_number_);
  workers_.emplace(number, Worker{pid, std::move(mark), seat});
  return number;
}

void WorkerLinks::ended(Number worker) {
  const auto found = workers_.find(worker);
  if (found != workers_.end()) found->second.pid = 0;
}

void WorkerLinks::move(Number worker, Seat seat) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  found->second.seat = seat;
  if (seat.round != nullptr) look_again(worker);
}

void WorkerLinks::remove(Number worker) {
  workers_.erase(worker);
  if (server_) server_->forget(worker);
}

// What a worker has started may have lost its parent: then it is a child of this process.
std::optional<WorkerLinks::Owner> WorkerLinks::owner_of(int pid) const {
  int at = pid;
  for (int depth = 0; at > 0 && depth < kAncestorsMax; ++depth) {  // 0: of a worker that has ended
    if (const auto number = by_pid(at)) return Owner{*number, at == pid};
    const auto process = find_process(at);
    if (!process) return std::nullopt;
    if (process->parent == ::getpid()) return by_mark(pid);
    at = process->parent;
  }
  return std::nullopt;
}

std::optional<WorkerLinks::Number> WorkerLinks::by_pid(int pid) const {
  for (const auto& [number, worker] : workers_) {
    if (worker.pid == pid) return number;
  }
  return std::nullopt;
}

// Below another ddprun in the worker its marks follow ours.
std::optional<WorkerLinks::Owner> WorkerLinks::by_mark(int pid) const {
  const std::string marks = environment_of(pid, "DDPRUN_WORKER") + ",";
  for (const auto& [number, worker] : workers_) {
    if (marks.find(worker.mark + ",") != std::string::npos) return Owner{number, false};
  }
  return std::nullopt;
}

void WorkerLinks::hear(Number worker, const worker_link::Report& report) {
  const Seat seat = workers_.at(worker).seat;
  if (seat.round != nullptr) seat.round->hear(seat.rank, report);
}

void WorkerLinks::read_timers(const boost::asio::any_io_executor& executor, const OpenPipe& pipe,
                              spdlog::logger& logger) {
  TimerPipe::Workers workers;
  workers.has = [this](int pid) { return owner_of(pid).has_value(); };
  workers.expired = [this](const WorkerTimer& timer) { return timer_expired(timer); };
  timers_ = std::make_unique<TimerPipe>(executor, pipe, logger, std::move(workers));
}

// Of a process whose worker is not known any more nothing is left to end.
bool WorkerLinks::timer_expired(const WorkerTimer& timer) const {
  const auto owner = owner_of(timer.pid);
  if (!owner) return true;
  const Seat seat = workers_.at(owner->worker).seat;
  return seat.round != nullptr && seat.round->timer_expired(seat.rank, timer);
}

}  // namespace ddprun
