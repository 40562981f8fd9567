#include "launcher/rules/alone.hpp"

#include "launcher/rules/meeting_parts.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

constexpr const char* kLoopback = "127.0.0.1";

/// Somebody who numbers nodes may have forgotten to say how many there are.
void note_second_node(Meeting& meeting, const Settings& settings) {
  if (settings.integer(Id::kNodeRank) == 0) return;
  note_unused(meeting, settings.shown(Id::kNodeRank), "the run has one node (--nnodes)");
}

}  // namespace

Result<Meeting> meet_nobody(const MeetingInput& input, const RunId& run_id) {
  const Settings& settings = input.settings;
  Meeting meeting;
  meeting.run_id = run_id;
  meeting.master_addr = settings.text(Id::kLocalAddr);
  if (meeting.master_addr.empty()) meeting.master_addr = kLoopback;
  meeting.store_host = shared_store(input.machine);
  auto literal = input.machine.own_address(meeting.master_addr);
  if (!literal) {
    return Error{ErrorKind::kUsage,
                 settings.shown(Id::kLocalAddr) + ": " + literal.error().sentence};
  }
  meeting.listen_addr = *literal;
  meeting.notes = conf_notes(input.conf, ConfUse::kAlone, settings);
  return meeting;
}

Result<Meeting> meet_standalone(const MeetingInput& input) {
  const Settings& settings = input.settings;
  auto meeting = meet_nobody(input, RunId(input.machine.random_id()));
  if (!meeting) return meeting;
  if (settings.on(Id::kStandalone)) {
    const std::string names =
        given_ones(settings, {Id::kRdzvEndpoint, Id::kRdzvId, Id::kMasterAddr, Id::kMasterPort});
    note_unused(*meeting, names,
                settings.named(Id::kStandalone) + " chooses a free port and a run id");
  } else {
    note_unused(*meeting, given_ones(settings, {Id::kRdzvId, Id::kMasterAddr}),
                "one node without --master-port runs standalone");
  }
  note_second_node(*meeting, settings);
  return meeting;
}

Result<Meeting> meet_nobody_at(const MeetingInput& input, const Endpoint& master) {
  const Settings& settings = input.settings;
  if (settings.integer(Id::kNodeRank) != 0) {
    return Error{ErrorKind::kUsage,
                 settings.shown(Id::kNodeRank) + ", but a run of one node has node 0 only"};
  }
  auto own = input.machine.own_address(master.host);
  if (!own) {
    return Error{ErrorKind::kUsage, "MASTER_ADDR " + master.host + ": " + own.error().sentence};
  }
  Meeting meeting;
  meeting.run_id = RunId(settings.text(Id::kRdzvId));
  meeting.master_addr = master.host;
  meeting.listen_addr = *own;
  meeting.master_port = master.port.value_or(0);
  meeting.notes = conf_notes(input.conf, ConfUse::kAlone, settings);
  note_unused(meeting, given_ones(settings, {Id::kLocalAddr}),
              "the static backend has a fixed address");
  return meeting;
}

}  // namespace ddprun
