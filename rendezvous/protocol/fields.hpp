// One description of every message, walked by the writer and by the reader of codec.cpp: a field
// cannot be written under one name and read under another. Internal to the codec.
#pragma once

#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::protocol {

inline constexpr int kPortMax = 65535;
inline constexpr int kSignalMax = 64;
inline constexpr int kRankMax = kAgentsPerRunMax * kWorkersPerNodeMax;

template <class Io, class Value>
void fields_of_stamp(Io& io, Value& stamp) {
  io.number("round", stamp.number, 1, kRoundMax);
  io.name("author", stamp.author);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Terms>
void fields(Io& io, Value& terms) {
  io.number("nodes_min", terms.nodes_min, 1, kAgentsPerRunMax);
  io.number("nodes_max", terms.nodes_max, 1, kAgentsPerRunMax);
  io.number("max_restarts", terms.max_restarts, 0, kRestartsMax);
  io.duration("join_timeout_ms", terms.join_timeout);
  io.duration("last_call_timeout_ms", terms.last_call_timeout);
  io.duration("keep_alive_interval_ms", terms.keep_alive_interval);
  io.number("keep_alive_max_attempt", terms.keep_alive_max_attempt, 1, 1000);
  io.flag("commands_may_differ", terms.commands_may_differ);
  io.optional_duration("min_uptime_ms", terms.min_uptime);
  io.optional_duration("hang_timeout_ms", terms.hang_timeout);
  io.optional_text("list_begins", terms.list_begins);
  io.flag("named", terms.is_named);
  io.optional_text("program", terms.program);
}

// Absent where no other node may coordinate, and from older peers.
template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Succession>
void fields(Io& io, Value& succession) {
  io.count("needs", succession.needs, kAgentsPerRunMax);
  io.flag("has_vote", succession.has_vote);
  io.flag("with_author", succession.with_author);
  io.flag("at_endpoint", succession.at_endpoint);
  io.flag("after_unsettled", succession.after_unsettled);
  io.optional_text("origin", succession.origin);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Successor>
void fields(Io& io, Value& successor) {
  io.number("group_rank", successor.group_rank, 0, kAgentsPerRunMax - 1);
  io.name("host", successor.host);
  io.name("address", successor.address);
  io.number("port", successor.port, 1, kPortMax);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Claim>
void fields(Io& io, Value& claim) {
  fields_of_stamp(io, claim.stamp);
  io.number("group_rank", claim.group_rank, 0, kAgentsPerRunMax - 1);
  io.number("group_size", claim.group_size, 1, kAgentsPerRunMax);
  io.number("restarts", claim.restarts, 0, kRestartsMax);
  io.word("state", claim.state);
  io.part("succession", claim.succession);
  io.flag("settled", claim.settled);
  io.flag("failed_unheard", claim.failed_unheard);
  io.flag("restart_told", claim.restart_told);
  io.flag("cut_short", claim.cut_short);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Hello>
void fields(Io& io, Value& hello) {
  io.number("protocol", hello.protocol, 0, 1'000'000);
  io.name("run_id", hello.run_id);
  io.name("agent", hello.agent);
  io.name("host", hello.host);
  io.maybe_host("address", hello.address);
  io.number("store_port", hello.store_port, 1, kPortMax);
  io.number("local_world_size", hello.local_world_size, 1, kWorkersPerNodeMax);
  io.maybe_empty("role", hello.role);  // TorchX sets an empty one
  io.object("terms", hello.terms);
  io.optional_number("node_rank", hello.node_rank, 0, kAgentsPerRunMax - 1);
  io.optional_number("scheduler_index", hello.scheduler_index, 0, kAgentsPerRunMax - 1);
  io.maybe_empty("fingerprint", hello.fingerprint);
  io.optional_text("command", hello.command);
  io.duration("age_ms", hello.age);
  io.duration("stop_timeout_ms", hello.stop_timeout);
  io.number("seen", hello.seen, 0, kRoundMax);
  io.flag("runs_coordinator", hello.runs_coordinator);
  io.optional_object("claim", hello.claim);
  io.words("addresses", hello.addresses, kAddressesMax);
  io.count("standby_port", hello.standby_port, kPortMax);
  io.optional_text("version", hello.version);
  io.short_text("reached", hello.reached);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Refused>
void fields(Io& io, Value& refused) {
  io.word("code", refused.code);
  io.text("sentence", refused.sentence);
  io.duration("retry_after_ms", refused.retry_after);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Waiting>
void fields(Io& io, Value& waiting) {
  io.number("here", waiting.here, 0, kAgentsPerRunMax);
  io.number("nodes_min", waiting.nodes_min, 1, kAgentsPerRunMax);
  io.number("nodes_max", waiting.nodes_max, 1, kAgentsPerRunMax);
  io.number("round", waiting.round, 0, kRoundMax);
  io.duration("left_ms", waiting.left);
  io.text("text", waiting.text);
  io.word("then", waiting.then);
  io.objects("successors", waiting.successors, kSuccessorsMax);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, StartRound>
void fields(Io& io, Value& start) {
  fields_of_stamp(io, start.stamp);
  io.number("group_rank", start.group_rank, 0, kAgentsPerRunMax - 1);
  io.number("group_size", start.group_size, 1, kAgentsPerRunMax);
  io.number("rank_base", start.rank_base, 0, kRankMax);
  io.number("world_size", start.world_size, 1, kRankMax);
  io.number("role_rank_base", start.role_rank_base, 0, kRankMax);
  io.number("role_world_size", start.role_world_size, 1, kRankMax);
  io.name("master_address", start.master_address);
  io.number("master_port", start.master_port, 1, kPortMax);
  io.number("restarts", start.restarts, 0, kRestartsMax);
  io.text("reason", start.reason);
  io.flag("may_be_last", start.may_be_last);
  io.words("store_peers", start.store_peers, kStorePeersMax);
  io.part("succession", start.succession);
  io.objects("successors", start.successors, kSuccessorsMax);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, MemoryEvidence>
void fields(Io& io, Value& memory) {
  io.amount("kills_before", memory.kills_before);
  io.amount("kills_after", memory.kills_after);
  io.flag("kills_cover_subtree", memory.kills_cover_subtree);
  io.amount("host_kills_before", memory.host_kills_before);
  io.amount("host_kills_after", memory.host_kills_after);
  io.amount("logged", memory.logged);
  io.amount("limit", memory.limit);
  io.amount("peak", memory.peak);
  io.amount("host_total", memory.host_total);
  io.amount("host_available", memory.host_available);
  io.amount("worker_peak", memory.worker_peak);
  io.amount("left_processes", memory.left_processes);
  io.amount("left_resident", memory.left_resident);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, LimitEvidence>
void fields(Io& io, Value& limits) {
  io.amount("cpu_seconds", limits.cpu_seconds);
  io.amount("file_bytes", limits.file_bytes);
  io.amount("processes", limits.processes);
  io.amount("descriptors", limits.descriptors);
  io.amount("address_space", limits.address_space);
  io.amount("core_bytes", limits.core_bytes);
  io.amount("cgroup_processes", limits.cgroup_processes);
  io.amount("cpu_used", limits.cpu_used);
  io.optional_text("lowered", limits.lowered);
  io.flag("known", limits.known);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, DiskEvidence>
void fields(Io& io, Value& disk) {
  io.maybe_empty("path", disk.path);
  io.amount("bytes", disk.bytes);
  io.amount("free_bytes", disk.free_bytes);
  io.amount("free_files", disk.free_files);
  io.flag("has_streams", disk.has_streams);
}

// A peer of an older version sends none of these.
template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Evidence>
void fields(Io& io, Value& evidence) {
  io.part("memory", evidence.memory);
  io.part("limits", evidence.limits);
  io.objects("disks", evidence.disks, kDisksMax);
  io.optional_text("core_pattern", evidence.core_pattern);
  io.optional_text("telling_line", evidence.telling_line);
  io.optional_text("steps", evidence.steps);
  io.flag("silent", evidence.silent);
  io.flag("stderr_unseen", evidence.stderr_unseen);
  io.flag("lines_of_stdout", evidence.lines_of_stdout);
  io.flag("stdout_closed", evidence.stdout_closed);
  io.flag("lines_of_both", evidence.lines_of_both);
  io.flag("stepped", evidence.stepped);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Complaint>
void fields(Io& io, Value& complaint) {
  io.word("kind", complaint.kind);
  io.maybe_empty("line", complaint.line);
  io.short_text("operation", complaint.operation);
  io.short_text("place", complaint.place);
  io.optional_number("sequence", complaint.sequence, 0, kSequenceMax);
  io.duration("limit_ms", complaint.limit);
  io.numbers("accused", complaint.accused, kRankMax, kAccusedMax);
  io.optional_text("key", complaint.key);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, StoreLink>
void fields(Io& io, Value& link) {
  io.flag("known", link.known);
  io.short_text("address", link.address);
  io.numbers("ports", link.ports, kPortMax, kStorePortsMax);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, StoreWait>
void fields(Io& io, Value& wait) {
  io.short_text("address", wait.address);
  io.number("port", wait.port, 0, kPortMax);
  io.short_text("key", wait.key);
  io.number("keys", wait.keys, 1, kRankMax);
  io.duration("waited_ms", wait.waited);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, RankFacts>
void fields(Io& io, Value& facts) {
  io.number("rank", facts.rank, 0, kRankMax);
  io.number("local_rank", facts.local_rank, 0, kWorkersPerNodeMax - 1);
  io.number("pid", facts.pid, 0, 1 << 30);
  io.word("end", facts.end);
  io.short_text("state", facts.state);
  io.short_text("waits_in", facts.waits_in);
  io.short_text("channel", facts.channel);
  io.optional_duration("cpu_ms", facts.cpu);
  io.optional_duration("watched_ms", facts.watched);
  io.part("store", facts.store);
  io.optional_duration("silent_ms", facts.silent);
  io.optional_duration("exited_ms", facts.exited);
  io.optional_object("complaint", facts.complaint);
  io.optional_text("raised", facts.raised);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, StackGroup>
void fields(Io& io, Value& group) {
  io.maybe_empty("place", group.place);
  io.numbers("ranks", group.ranks, kRankMax, kGroupRanksMax);
  io.number("more", group.more, 0, kRankMax);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Finding>
void fields(Io& io, Value& finding) {
  io.short_text("code", finding.code);
  io.text("text", finding.text);
  io.numbers("ranks", finding.ranks, kRankMax, kFindingRanksMax);
  io.lines("evidence", finding.evidence, kFindingLinesMax);
  io.text("likely", finding.likely);
  io.text("others", finding.others);
  io.objects("places", finding.places, kStackGroupsMax);
  io.maybe_empty("no_restart", finding.no_restart);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, WorkerExit>
void fields(Io& io, Value& exit) {
  io.number("rank", exit.worker.rank, 0, kRankMax);
  io.number("local_rank", exit.worker.local_rank, 0, kWorkersPerNodeMax - 1);
  io.number("pid", exit.worker.pid, 0, 1 << 30);
  io.maybe_empty("host", exit.worker.host);
  io.exit_status(exit.status);
  io.number("passed_signal", exit.passed_signal, 0, kSignalMax);
  io.wall_time("when_ms", exit.when);
  io.duration("since_start_ms", exit.since_start);
  io.duration("after_ms", exit.after);
  io.word("source", exit.source);
  io.lines("lines", exit.lines, kReportLinesMax);
  io.text("log", exit.log);
  io.part("evidence", exit.evidence);
  io.optional_object("given_up", exit.given_up);
  io.optional_object("complaint", exit.complaint);
  io.flag("in_grace", exit.in_grace);
  io.flag("is_slow", exit.is_slow);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, RunFailure>
void fields(Io& io, Value& failure) {
  io.object("first", failure.first);
  io.number("round", failure.round, 0, kRoundMax);
  io.number("stopped", failure.stopped, 0, kRankMax);
  io.number("killed", failure.killed, 0, kRankMax);
  io.count("alike", failure.alike, kRankMax);
  io.optional_text("also", failure.also);
  io.duration("stop_took_ms", failure.stop_took);
  io.span("spared_ms", failure.spared);
  io.maybe_empty("no_restart", failure.no_restart);
  io.optional_text("repeated", failure.repeated);
  io.optional_text("no_retry", failure.no_retry);
  io.optional_object("finding", failure.finding);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Report>
void fields(Io& io, Value& report) {
  io.number("round", report.round, 1, kRoundMax);
  io.word("state", report.state);
  io.number("store_port", report.store_port, 1, kPortMax);
  io.optional_object("failure", report.failure);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Stopped>
void fields(Io& io, Value& stopped) {
  io.number("round", stopped.round, 1, kRoundMax);
  io.duration("took_ms", stopped.took);
  io.number("killed", stopped.killed, 0, kWorkersPerNodeMax);
  io.number("stopped", stopped.stopped, 0, kWorkersPerNodeMax);
  io.objects("ranks", stopped.ranks, kRankFactsMax);
  io.objects("store_waits", stopped.waits, kStoreWaitsMax);
  io.optional_object("failure", stopped.failure);
  io.count("alike", stopped.alike, kWorkersPerNodeMax);
  io.span("spared_ms", stopped.spared);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Leave>
void fields(Io& io, Value& leave) {
  io.number("exit_code", leave.exit_code, 1, 255);
  io.text("reason", leave.reason);
  io.number("round", leave.round, 0, kRoundMax);
  io.flag("requested", leave.requested);
  io.flag("all_nodes", leave.all_nodes);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, LetGo>
void fields(Io& io, Value& let_go) {
  io.text("text", let_go.text);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Reconnecting>
void fields(Io& io, Value& reconnecting) {
  io.text("reason", reconnecting.reason);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Done>
void fields(Io& io, Value& done) {
  io.number("exit_code", done.exit_code, 0, 255);
  io.text("text", done.text);
  io.optional_object("failure", done.failure);
  io.maybe_empty("reporter", done.reporter);
  io.flag("node_lost", done.node_lost);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Stop>
void fields(Io& io, Value& stop) {
  io.number("round", stop.round, 1, kRoundMax);
  io.number("signal", stop.signal, 1, kSignalMax);
  io.duration("grace_ms", stop.grace);
  io.text("reason", stop.reason);
  io.optional_object("verdict", stop.verdict);
  io.flag("waits", stop.waits);
  io.flag("requested", stop.requested);
  io.optional_number("restarts", stop.restarts, 0, kRestartsMax);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, PassSignal>
void fields(Io& io, Value& passed) {
  io.number("round", passed.round, 1, kRoundMax);
  io.number("signal", passed.signal, 1, kSignalMax);
  io.maybe_empty("from", passed.from);
  io.maybe_empty("host", passed.host);
  io.flag("force", passed.force);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Beat>
void fields(Io& io, Value& beat) {
  io.optional_number("echo", beat.echo, 1, kEchoMax);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Quiet>
void fields(Io& io, Value& quiet) {
  io.number("round", quiet.round, 1, kRoundMax);
  io.duration("lasts_ms", quiet.lasts);
  io.optional_number("echo", quiet.echo, 1, kEchoMax);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Hang>
void fields(Io& io, Value& hang) {
  io.number("round", hang.round, 1, kRoundMax);
  io.optional_number("echo", hang.echo, 1, kEchoMax);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Settled>
void fields(Io& io, Value& settled) {
  fields_of_stamp(io, settled.stamp);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Lead>
void fields(Io& io, Value& lead) {
  io.name("run_id", lead.run_id);
  io.number("round", lead.round, 1, kRoundMax);
  io.number("port", lead.port, 1, kPortMax);
  io.optional_text("origin", lead.origin);
  io.optional_text("fingerprint", lead.fingerprint);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Resigned>
void fields(Io& io, Value& resigned) {
  io.text("reason", resigned.reason);
  io.flag("cuts_short", resigned.cuts_short);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Moved>
void fields(Io& io, Value& moved) {
  io.name("address", moved.address);
  io.number("port", moved.port, 1, kPortMax);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Probe>
void fields(Io& io, Value& probe) {
  io.short_text("nonce", probe.nonce);
  io.optional_text("run_id", probe.run_id);
  io.flag("had_round", probe.had_round);
}

template <class Io, class Value>
requires std::same_as<std::remove_const_t<Value>, Unknown>
void fields(Io& io, Value& unknown) {
  io.text("sentence", unknown.sentence);
}

}  // namespace ddprun::protocol
