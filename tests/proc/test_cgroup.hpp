// A cgroup of the v2 hierarchy for one test.
#pragma once

#include <optional>

#include "agent/proc/cgroup.hpp"
#include "tests/proc/support.hpp"

namespace proc_test {

/// A cgroup for one test, removed with all that is in it; none where the machine does not allow it.
class TestCgroup {
 public:
  explicit TestCgroup(const std::string& name = "test") {
    const auto ours = ddprun::Cgroup::of_this_process();
    if (ours) made_ = ours->make("ddprun-" + name + "." + std::to_string(::getpid()));
    if (!made_) WARN("no writable cgroup v2 hierarchy here: not tested");
  }
  ~TestCgroup() {
    if (!made_) return;
    made_->kill();
    eventually([this] { return made_->remove(); });
  }
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;
  explicit operator bool() const { return made_.has_value(); }
  const ddprun::Cgroup* operator->() const { return &*made_; }
  const ddprun::Cgroup& operator*() const { return *made_; }

 private:
  std::optional<ddprun::Cgroup> made_;
};

}  // namespace proc_test
