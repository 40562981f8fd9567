#include "tests/agent/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "agent/proc/program.hpp"
#include "agent/proc/spawn.hpp"
#include "tests/support/catch.hpp"

namespace ddprun::test {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

namespace {

boost::asio::awaitable<void> store_exit(Child& child, std::optional<ExitStatus>& status) {
  const auto ended = co_await child.wait();
  if (ended) status = *ended;
}

}  // namespace

bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  while (!condition()) {
    if (SteadyClock::now() > deadline) return false;
    ::poll(nullptr, 0, 2);  // between two looks at the condition
  }
  return true;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (fs::temp_directory_path() / "ddprun_test_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryDirectory::entries() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    names.push_back(fs::relative(entry.path(), path_).string());
  }
  return names;
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool exists(const std::string& path) {
  return fs::exists(path);
}

bool alive(pid_t pid) {
  const std::string stat = content("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.at(name_end + 2) != 'Z';
}

Command::Command(std::vector<std::string> argv, Environment changes)
    : Command(Exact{}, std::move(argv), [&changes] {
        changes.merge(read_environment(environ));
        return changes;
      }()) {}

Command Command::with_environment(std::vector<std::string> argv, Environment environment) {
  return Command(Exact{}, std::move(argv), environment);
}

Command::Command(Exact, std::vector<std::string> argv, const Environment& environment)
    : directory_(std::make_unique<TemporaryDirectory>()),
      io_(std::make_unique<boost::asio::io_context>(1)) {
  const auto open_output = [this](const char* name) {
    return ::open(directory_->file(name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  };
  const auto program = find_program(argv.at(0), "/usr/bin:/bin");
  if (!program) throw std::runtime_error(program.error().sentence);
  SpawnRequest request;
  request.program = *program;
  request.argv = std::move(argv);
  request.environment = to_block(environment);
  request.stdout_fd = open_output("out");
  request.stderr_fd = open_output("err");
  auto child = spawn(io_->get_executor(), request);
  ::close(request.stdout_fd);
  ::close(request.stderr_fd);
  if (!child) throw std::runtime_error(child.error().sentence);
  child_ = std::make_unique<Child>(std::move(*child));
}

Command::~Command() {
  if (!child_ || status_) return;
  ::kill(child_->pid(), SIGKILL);
  try {
    (void)wait();
  } catch (const std::exception&) {
    return;  // the test has failed already
  }
}

void Command::signal(int number) const {
  ::kill(child_->pid(), number);
}

ExitStatus Command::wait(std::chrono::milliseconds timeout) {
  if (status_) return *status_;
  boost::asio::co_spawn(*io_, store_exit(*child_, status_), boost::asio::detached);
  io_->restart();
  io_->run_for(timeout);
  if (!status_) throw std::runtime_error("it did not end in time; its stderr:\n" + err());
  return *status_;
}

bool Command::says(const std::string& text) const {
  return wait_until([&] { return err().find(text) != std::string::npos; });
}

}  // namespace ddprun::test
