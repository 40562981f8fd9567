// What a round says of its ranks on the console before they run.
#include <spdlog/logger.h>

#include <filesystem>

#include "agent/core/placement.hpp"
#include "agent/round.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"

namespace ddprun {

// With the first start only: the directories of the others are beside it.
void RoundRunner::say_where_hidden_output_is() {
  if (inputs_.config.log.console != Console::kRank0 || inputs_.facts.restarts.value() != 0) return;
  const LocalRank last(inputs_.config.workers.count - 1);
  const std::string file = output_->logs.stdout_log(last);
  if (file.empty() || worker(last).plan.rank == Rank(0)) return;
  const std::string folder = std::filesystem::path(file).parent_path().parent_path().string();
  const bool stays = inputs_.config.log.asks_for_files();
  inputs_.logger.info(note_line("", "stdout of all ranks but 0 is in " + printable(folder) +
                                        (stays ? "" : ", removed after success without --log-dir") +
                                        "; --console=prefix shows it"));
}

std::string RoundRunner::placement() const {
  std::vector<Placed> workers;
  for (const auto& planned : workers_) {
    workers.push_back(placed(inputs_.config, planned->plan, log_to_name(planned->output_plan)));
  }
  return placement_table(inputs_.hostname, workers);
}

}  // namespace ddprun
