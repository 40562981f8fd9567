#include "agent/watch/device_release.hpp"

#include <algorithm>
#include <iterator>

#include "agent/report/lines.hpp"
#include "base/format.hpp"
#include "base/message_line.hpp"

namespace ddprun {

namespace {

using Kind = DeviceHolder::Kind;

constexpr const char* kCode = "GPU";
constexpr std::size_t kHoldersShown = 4;

bool is_waited_for(const DeviceHolder& holder, Duration waited) {
  if (holder.kind == Kind::kStranger) return false;
  return holder.kind != Kind::kHidden || waited < kHiddenHolderMax;
}

std::string who_it_is(const DeviceHolder& holder) {
  switch (holder.kind) {
    case Kind::kWorker:
      return "rank " + std::to_string(holder.rank.value()) + " of round " +
             std::to_string(holder.round.value()) + ", which has ended";
    case Kind::kLeft:
      return holder.name + ", started by a worker of this run";
    case Kind::kEnded:
      return "has ended";
    case Kind::kHidden:
      return "not in this PID namespace";
    case Kind::kStranger:
      break;
  }
  return holder.name + (holder.user.empty() ? "" : ", user " + holder.user);
}

std::string holder_text(const DeviceHolder& holder) {
  std::string text = "GPU " + std::to_string(holder.gpu) + ": pid " + std::to_string(holder.pid) +
                     " (" + who_it_is(holder);
  if (holder.bytes > 0) text += ", " + bytes_text(static_cast<std::int64_t>(holder.bytes));
  return text + ")";
}

}  // namespace

DeviceHolders waited_for(const DeviceHolders& holders, Duration waited) {
  DeviceHolders held;
  std::copy_if(holders.begin(), holders.end(), std::back_inserter(held),
               [waited](const DeviceHolder& holder) { return is_waited_for(holder, waited); });
  return held;
}

DeviceHolders strangers_among(const DeviceHolders& holders, Duration waited) {
  DeviceHolders strangers;
  std::copy_if(holders.begin(), holders.end(), std::back_inserter(strangers),
               [waited](const DeviceHolder& holder) { return !is_waited_for(holder, waited); });
  return strangers;
}

std::string holders_text(const DeviceHolders& holders) {
  std::string text;
  const std::size_t shown = std::min(holders.size(), kHoldersShown);
  for (std::size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? "" : "; ") + holder_text(holders[i]);
  }
  if (holders.size() > shown) text += "; " + std::to_string(holders.size() - shown) + " more";
  return text;
}

std::string gpu_wait_line(const DeviceHolders& held) {
  return note_line(kCode, "waiting up to " + duration_text(kDeviceReleaseMax) +
                              " for the driver to release GPUs: " + holders_text(held));
}

std::string gpu_released_line(Duration waited) {
  return note_line(kCode, "GPUs released after " + duration_text(waited));
}

std::string gpu_held_line(const DeviceHolders& held, Duration waited, Round next) {
  return warning_line(kCode, "not released after " + duration_text(waited) + ": " +
                                 holders_text(held) + "; starting round " +
                                 std::to_string(next.value()) + " anyway");
}

std::string gpu_strangers_line(const DeviceHolders& strangers) {
  return note_line(kCode, "also in use outside this run: " + holders_text(strangers));
}

std::string gpu_lost_line(int gpu) {
  return warning_line(kCode, "GPU " + std::to_string(gpu) +
                                 " is lost: the driver cannot reach it any more") +
         labelled("likely", "broken hardware, or its power") +
         labelled("try",
                  "leave this GPU out (CUDA_VISIBLE_DEVICES) or this host, until it is reset");
}

std::string gpu_no_answer_line(Duration waited, Round next) {
  return warning_line(kCode, "the driver did not say within " + duration_text(waited) +
                                 " whether GPUs are released; starting round " +
                                 std::to_string(next.value()) + " anyway");
}

}  // namespace ddprun
