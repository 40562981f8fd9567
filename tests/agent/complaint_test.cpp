#include "agent/report/complaint.hpp"

#include <signal.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;
using std::chrono::milliseconds;

namespace {

std::string file_text(const std::string& name) {
  std::ifstream file(DDPRUN_CAPTURED + name);
  std::ostringstream text;
  text << file.rdbuf();
  INFO(name);
  REQUIRE_FALSE(text.str().empty());
  return text.str();
}

/// What a rank under PyTorch and Gloo really wrote.
Complaint captured(const std::string& name) {
  const auto complaint = find_complaint(file_text("/complaints/" + name + ".txt"));
  REQUIRE(complaint.has_value());
  return *complaint;
}

std::optional<ComplaintKind> kind_of(const std::string& text) {
  const auto complaint = find_complaint(text);
  return complaint ? std::optional(complaint->kind) : std::nullopt;
}

const std::string kTraceback = "Traceback (most recent call last):\n";
const std::string kTimedOut =
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
    "1800000ms for recv operation to complete\n";
const std::string kWatchdog =
    "[rank2]:[E1122 10:51:07.1 ProcessGroupNCCL.cpp:683] [Rank 2] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=2398459, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600013 milliseconds before timing out.\n";
const std::string kKeyError = "KeyError: 'labels'\n";

}  // namespace

TEST_CASE("a time-out of Gloo is a complaint about a collective, with its place") {
  for (const char* rank : {"gloo-2.11-stop-rank0", "gloo-2.11-stop-rank2"}) {
    const Complaint complaint = captured(rank);
    CHECK(complaint.kind == ComplaintKind::kCollective);
    CHECK(complaint.limit == milliseconds(4000));
    CHECK(complaint.operation == "all_reduce");
    CHECK(complaint.place == "train.py:37");
    CHECK_THAT(complaint.line, ContainsSubstring("Timed out waiting 4000ms"));
  }
  const Complaint behind = captured("gloo-2.11-behind-rank1");
  CHECK(behind.operation == "barrier");
  CHECK(behind.place == "train.py:21");
}

TEST_CASE("a monitored barrier names the rank that did not come") {
  const Complaint complaint = captured("gloo-2.11-mbarrier-rank0");
  CHECK(complaint.kind == ComplaintKind::kCollective);
  CHECK(complaint.accused == std::vector<int>{1});
  CHECK(complaint.limit == milliseconds(4000));
  CHECK(captured("gloo-2.11-mbarrier-rank2").accused == std::vector<int>{0});
  CHECK(captured("gloo-2.15-mbarrier-rank2").accused == std::vector<int>{0});
  CHECK(find_complaint("[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 30000 ms\n")
            ->accused == std::vector<int>{1, 3});
}

TEST_CASE("ranks that disagree name the first one that differs") {
  const auto fingerprint = [](const std::string& shape) {
    return "collective: CollectiveFingerPrint(SequenceNumber=0, OpType=ALLREDUCE, TensorShape=[" +
           shape +
           "], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), "
           "device=cpu, layout=Strided (default), requires_grad=false (default), "
           "pinned_memory=false (default), memory_format=(nullopt)))";
  };
  const auto collective = find_complaint(
      "[rank0]: " + kTraceback + "[rank0]:   File \"train.py\", line 5, in <module>\n" +
      "[rank0]: RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running " +
      fingerprint("4") + ", but Rank 2 is running " + fingerprint("1000000") +
      ".Collectives differ in the following aspects: \tTensor Tensor shapes: 4vs 1000000\n");
  REQUIRE(collective);
  CHECK(collective->kind == ComplaintKind::kCollective);
  CHECK(collective->accused == std::vector<int>{2});
  CHECK_THAT(collective->line,
             ContainsSubstring("Rank 0 is running ..., but Rank 2 is running ....Collectives"));
  CHECK_THAT(collective->line, ContainsSubstring("4vs 1000000"));
  const auto model = find_complaint(
      kTraceback + "RuntimeError: DDP expects same model across all ranks, but Rank 1 has 2 " +
      "params, while rank 2 has inconsistent 4 params.\n");
  REQUIRE(model);
  CHECK(model->accused == std::vector<int>{2});
}

TEST_CASE("a connection that Gloo lost is a complaint about a peer") {
  for (const char* rank :
       {"gloo-2.11-exit0-rank0", "gloo-2.15-exit0-rank0", "gloo-2.11-raise-rank0"}) {
    CHECK(captured(rank).kind == ComplaintKind::kLostPeer);
  }
}

TEST_CASE("a rank that did not arrive is named by the key that the others wait for") {
  for (const char* rank : {"gloo-2.11-missing-rank0", "gloo-2.15-missing-rank0"}) {
    const Complaint complaint = captured(rank);
    CHECK(complaint.kind == ComplaintKind::kRendezvous);
    CHECK(complaint.accused == std::vector<int>{1});
    CHECK(complaint.limit == milliseconds(4000));
    CHECK(complaint.operation == "init_process_group");
  }
  const Complaint own_key = captured("gloo-2.11-store-rank0");
  CHECK(own_key.kind == ComplaintKind::kRendezvous);
  CHECK(own_key.accused.empty());
  CHECK(own_key.key == "never");
  for (const auto& [keys, names] :
       {std::pair<const char*, const char*>{"/default_pg/0//epoch/7", "epoch/7"},
        {"/default_pg/0//data_init/done", "data_init/done"},
        {"/default_pg/0//a, /default_pg/0//b", "a, b"}}) {
    const auto of_program = find_complaint(
        "DistStoreError: wait timeout after 4000ms, keys: " + std::string(keys) + "\n");
    REQUIRE(of_program.has_value());
    CHECK(of_program->key == names);
  }
  CHECK(captured("gloo-2.15-missing-rank0").key.empty());
  for (const char* key :
       {"/default_pg/0//cuda//0", "/init/worker_count", "0", "/default_pg/0//3"}) {
    const auto of_library = find_complaint(
        "DistStoreError: wait timeout after 4000ms, keys: " + std::string(key) + "\n");
    REQUIRE(of_library.has_value());
    CHECK(of_library->key.empty());
  }
  const auto clients = find_complaint(
      "DistStoreError: Timed out after 601 seconds waiting for clients. 2/3 clients joined.\n");
  CHECK(clients->kind == ComplaintKind::kRendezvous);
  CHECK(clients->limit == std::chrono::seconds(601));
  const auto unique_id = find_complaint(
      "DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] "
      "via c10d key-value store by key '0', but store->get('0') got error: wait timeout after "
      "600000ms, keys: /default_pg/0//cuda//0\n");
  CHECK(unique_id->accused == std::vector<int>{0});
}

TEST_CASE("NCCL's watchdog names the collective and its number") {
  const auto complaint = find_complaint(kWatchdog + "terminate called after throwing\n");
  REQUIRE(complaint.has_value());
  CHECK(complaint->kind == ComplaintKind::kCollective);
  CHECK(complaint->sequence == 2398459);
  CHECK(complaint->operation == "ALLREDUCE");
  CHECK(complaint->limit == milliseconds(600'000));
  std::string frames;
  for (int i = 0; i < 500; ++i) frames += "frame #" + std::to_string(i) + ": c10d::x + 0x1\n";
  CHECK(find_complaint(kWatchdog + frames).has_value());
  CHECK(kind_of("ncclRemoteError: A call failed possibly due to a network error or a remote "
                "process exiting prematurely.\n") == ComplaintKind::kLostPeer);
}

TEST_CASE("steps behind a complaint take it back, a thread's lines do not") {
  const std::string uncaught =
      "[rank0]: " + kTraceback +
      "[rank0]:   File \"train.py\", line 3, in <module>\n[rank0]: " + kTimedOut;
  const std::string steps = "step 1 loss 0.5\nstep 2 loss 0.4\nstep 3 loss 0.4\n";
  const std::string beats = "12:00:01 INFO rss 500 MB\n12:00:02 INFO rss 501 MB\n";
  CHECK_FALSE(kind_of("12:00:00 ERROR first barrier failed\n" + kTraceback + kTimedOut + steps));
  CHECK_FALSE(kind_of("rank 1: " + kTimedOut + steps + "shard 17 has no labels\n"));
  CHECK(kind_of(beats + uncaught + beats + beats) == ComplaintKind::kCollective);
  CHECK(kind_of(uncaught + "saving shard 1\nsaving shard 2\nsaving shard 3\n") ==
        ComplaintKind::kCollective);
  CHECK_FALSE(kind_of(beats + "ERROR:root:barrier\n" + kTraceback + kTimedOut + beats + beats));
}

TEST_CASE("an exception of its own, or what came after, takes a complaint back") {
  CHECK_FALSE(kind_of(kTraceback + kTimedOut + kTraceback + kKeyError));
  std::string went_on = kTimedOut;
  for (int i = 0; i < 100; ++i) went_on += "step " + std::to_string(i) + "\n";
  CHECK_FALSE(kind_of(went_on));
  CHECK_FALSE(kind_of(kTraceback + kKeyError));
  CHECK_FALSE(kind_of("requests.exceptions.ConnectionError: Connection reset by peer\n"));
  CHECK_FALSE(kind_of(""));
}

TEST_CASE("source that a traceback shows is no complaint, whatever it mentions") {
  const std::string frame = "  File \"/src/train.py\", line 8, in <module>\n";
  const std::string source =
      "    if \"ncclRemoteError\" in cfg[\"retries\"] or \\\n       'ncclRemoteError' in text:\n"
      "                                     ^^^^^^^^^^^^\n";
  CHECK_FALSE(kind_of(kTraceback + frame + source + kKeyError));
  CHECK(kind_of(kTraceback + frame + source + "RuntimeError: ncclRemoteError: x\n") ==
        ComplaintKind::kLostPeer);
}

TEST_CASE("a complaint that the rank survived does not count, whatever ended the rank later") {
  const std::string handled = "step 1: loss 0.4\n" + kTraceback +
                              "  File \"train.py\", line 19, in reduce_or_skip\n" + kTimedOut;
  const std::string worked = "step 2: loss 0.3\nstep 3: loss 0.3\n";
  CHECK_FALSE(kind_of(handled + worked));
  CHECK_FALSE(kind_of(handled + "group made again\n" + worked + "FATAL: loss is nan\n"));
  CHECK(kind_of(handled));
}

TEST_CASE("a rank that logs the lost connection, saves as before and exits is a witness") {
  const std::string saved =
      "2026-11-30 02:31:07,114 INFO saving checkpoint at step 4\n"
      "2026-11-30 02:31:07,201 ERROR exception in training loop\n";
  const std::string lost =
      kTraceback + "  File \"train.py\", line 19, in <module>\n    dist.all_reduce(x)\n" +
      "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed "
      "by peer [127.0.0.1]:16291\n";
  for (const std::string after :
       {"2026-11-30 02:31:07,202 INFO saving checkpoint at step 5\n",
        "2026-11-30 02:31:07,202 INFO closing writers\n"
        "2026-11-30 02:31:07,202 ERROR training failed\n",
        "closing writers\nbye\n", "FATAL: training failed\n", "wandb: Find logs at: ./wandb\n"}) {
    CAPTURE(after);
    CHECK(kind_of(saved + lost + after) == ComplaintKind::kLostPeer);
  }
}

TEST_CASE("what is printed while Python shuts down takes no complaint back, and makes none") {
  for (const char* aside : {"ignored", "atexit", "thread", "logging-error", "task", "child"}) {
    CAPTURE(aside);
    const std::string text = file_text(std::string("/asides/") + aside + ".txt");
    const std::string raised = kTraceback + "  File \"train.py\", line 3, in <module>\n";
    CHECK(kind_of(raised + kTimedOut + text) == ComplaintKind::kCollective);
    CHECK(kind_of(raised + kTimedOut + text + text) == ComplaintKind::kCollective);
    const std::string in_main = kTraceback + "  File \"train.py\", line 3, in main\n";
    CHECK(kind_of("ERROR:root:failed\n" + in_main + kTimedOut + text) ==
          ComplaintKind::kCollective);
    CHECK_FALSE(kind_of(raised + kKeyError + text));
    CHECK_FALSE(kind_of(text + raised + kKeyError));
    CHECK(kind_of(text + raised + kTimedOut) == ComplaintKind::kCollective);
  }
  const std::string in_thread = "Exception in thread Thread-1 (late):\n" + kTraceback;
  CHECK_FALSE(kind_of(kTraceback + "  File \"train.py\", line 3, in <module>\n" + kKeyError +
                      in_thread + kTimedOut));
  CHECK(kind_of(in_thread + kTimedOut) == ComplaintKind::kCollective);
}

TEST_CASE("a worker says why it ended on stdout, if its stderr has only what libraries print") {
  const std::string logged = "ERROR:root:training failed\n" + kTraceback + kTimedOut;
  CHECK(account_of("", logged) == logged);
  CHECK(account_of("[W1130 02:31:11.1 socket.cpp:209] [c10d] no IPv6\n"
                   "terminate called without an active exception\nFatal Python error: Aborted\n\n"
                   "Thread 0x00007f5125c80b80 (most recent call first):\n  <no Python frame>\n",
                   logged) == logged);
  CHECK(account_of(kKeyError, logged) == kKeyError);
  CHECK(account_of("wandb: synced\n", "\n") == "wandb: synced\n");
}

TEST_CASE("an exception that follows from a complaint keeps it") {
  CHECK(kind_of(kTraceback + kTimedOut + "\nThe above exception was its cause:\n\n" + kTraceback +
                "RuntimeError: step failed\n") == ComplaintKind::kCollective);
  CHECK_FALSE(kind_of(kTraceback + kKeyError));
}

TEST_CASE("a hostile complaint stays small and on one line") {
  const auto complaint = find_complaint(
      "File \"/x/\x1b[31m" + std::string(10'000, 'x') + "\", line " + std::string(5'000, '9') +
      ", in f\nRanks 1, 99999999999999999999, 3, " + std::string(100, '4') +
      " failed to pass monitoredBarrier in 99999999999999999999 ms\x1b[2J" +
      std::string(100'000, 'y') + "\n");
  REQUIRE(complaint.has_value());
  CHECK(complaint->line.size() <= 200);
  CHECK(complaint->place.size() <= 64);
  CHECK(complaint->line.find('\x1b') == std::string::npos);
  CHECK(complaint->place.find('\x1b') == std::string::npos);
  CHECK(complaint->accused == std::vector<int>{1, 3});
  CHECK(complaint->limit.count() == 0);
}

TEST_CASE("a rank that a signal from outside ended is no witness") {
  CHECK(follows_from_complaint(ExitStatus::exited(1)));
  CHECK(follows_from_complaint(ExitStatus::signaled(SIGABRT)));
  CHECK_FALSE(follows_from_complaint(ExitStatus::signaled(SIGKILL)));
  CHECK_FALSE(follows_from_complaint(ExitStatus::signaled(SIGSEGV)));
  CHECK_FALSE(follows_from_complaint(ExitStatus::exited(0)));
}

TEST_CASE("what a rank raised before it waited for the others is told with its complaint") {
  const std::string then = "\n\n" + kDuringHandling + "\n\n";
  const std::string trace =
      "Traceback (most recent call last):\n  File \"t.py\", line 8, in <module>\n    step()\n";
  const std::string lost =
      "RuntimeError: [/x/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:2\n";
  const auto before = [&](const std::string& first) {
    const auto complaint = find_complaint(trace + first + then + trace + lost);
    REQUIRE(complaint.has_value());
    return complaint->before;
  };
  CHECK(before("ValueError: NaN in gradients") == "ValueError: NaN in gradients");
  CHECK(before("StopIteration").empty());
  CHECK(before("RuntimeError: Application timeout caused pair closure").empty());
  const std::string handled = "KeyError: 'mean'" + then + trace;
  CHECK(before(handled + "ValueError: bad sample") == "ValueError: bad sample");
  const std::string logged = "ERROR:root:no cache\n" + trace + "FileNotFoundError: cache\n";
  const std::string frames =
      "Stack (most recent call last):\n  File \"t.py\", line 1, in <module>\n";
  for (const std::string& text :
       {logged, frames, logged + "step 5\n", frames + "step 5 loss 0.3\n"}) {
    const auto timed_out = find_complaint(text + kWatchdog);
    REQUIRE(timed_out.has_value());
    CHECK(timed_out->before.empty());
  }
}
