// RunRecord: what has to be known of a run when every coordinator of it is gone: kept in etcd.
// Plain data.
#pragma once

#include <optional>
#include <string>

namespace ddprun {

struct RunRecord {
  struct Verdict {
    int exit_code = 0;
    std::string text;
    int nodes = 0;  // of the last round
    friend bool operator==(const Verdict&, const Verdict&) = default;
  };
  int round = 0;     // the highest number that any coordinator has used or heard of
  int restarts = 0;  // used so far
  std::optional<Verdict> over{};
  friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

}  // namespace ddprun
