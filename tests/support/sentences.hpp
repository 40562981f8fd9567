// The sentences that several tests look for. A wording changes in the program, here and in the one
// test that shows it literally (tests/style/sentences.cpp). tests/support/sentences.py gives them
// to tests in Python under the same names.
#pragma once

#include <string>

namespace ddprun::test {

// The launcher.
inline const std::string kForEachGpu = " on this node, one for each GPU";
inline const std::string kTimesOnANode = " times on a node";
inline const std::string kNotATime = " is not a time such as 600, 90s, 10m or 2h";
inline const std::string kNoLinkToProtect = "a single node has no link to protect";
inline const std::string kNotBySrun = "srun did not start this ddprun";

// The store.
inline const std::string kNoNodesAddress = "no node of this run has this address";
inline const std::string kOtherUser = ", which is neither the user of ddprun";

// The agent.
inline const std::string kFirstFailure = "first failure of the run";
inline const std::string kWithoutLogFiles = "this round continues without log files";
inline const std::string kTerminalClosed = "the terminal was closed (SIGHUP)";
inline const std::string kPressAgain = "press Ctrl-C again to kill immediately";
inline const std::string kInSleep = " been in uninterruptible sleep for ";
inline const std::string kSenderUnknown = ", not sent by ddprun; sender unknown";
inline const std::string kPassedOn = ", which ddprun had been sent and passed on";
inline const std::string kOutOfMemory = "because host memory ran out";
inline const std::string kKilledByKernel = "was killed by the kernel because host memory ran out";
inline const std::string kHostKills = "oom_kill counter of the host went ";
inline const std::string kCoresAreOff = "core dumps are off (limit 0)";
inline const std::string kCpuLimit = "its limit on CPU time is ";
inline const std::string kLimitSet = "has set this limit (ulimit -";
inline const std::string kFileLimit = "its limit on file size is ";
inline const std::string kLastOfStdout = "its stderr is empty; last lines of its stdout:\n";
inline const std::string kTryChmod = "try chmod +x on it";
inline const std::string kNoSuchFile = "there is no such file";
inline const std::string kStdoutClosed = ": its stdout was closed";
inline const std::string kLastOfBoth = "last lines of its output";
inline const std::string kStderrIsRaw = "its stderr does not pass through ddprun (--console raw)";
inline const std::string kCgroupKills = "oom_kill counter of its cgroup";
inline const std::string kTracebackIsAbove = "its traceback is above, with the exception:";
inline const std::string kTracebackAndMore =
    "its traceback is above, with the exception and what followed it:";
inline const std::string kLastLines = "last lines of its stderr";
inline const std::string kSpareNeverStarted = "this node was a spare: its workers never started";
inline const std::string kBytesNotShown = " more bytes of this line not shown]";

inline const std::string kFromTemplate = " of this node started from the template";
inline const std::string kWaitingIsSilent = "a worker that waited gave no answer in 500 ms";
inline const std::string kTemplateEnded = "the template ended while it imported";
inline const std::string kNoHook =
    "the interpreter ended without importing what ddprun put into PYTHONPATH";
inline const std::string kOtherPython = "the workers do not run under the Python";

// Python's, which a report recognises.
inline const std::string kDuringHandling =
    "During handling of the above exception, another exception occurred:";
inline const std::string kDirectCause =
    "The above exception was the direct cause of the following exception:";

// The rendezvous.
inline const std::string kWaitingForNodes = "waiting for nodes: ";
inline const std::string kOtherCommand = " runs another command than this run";
inline const std::string kHeldBackSinceIt = " joined and left this run";
inline const std::string kGiveAllTheSame = "; give all nodes the same";
inline const std::string kSucceededHere = "all ranks of this node exited with code 0";
inline const std::string kTorchrunCame = "a torchrun agent came to the coordinator of a ddprun run";
inline const std::string kOddOneOut = " is the odd one out";
inline const std::string kNotConnected = " not connected to the store";
inline const std::string kHasOtherSecret = "has another secret or none";
inline const std::string kPeerHasOtherSecret = "TLS: the peer has another secret";
inline const std::string kWithoutSecret = "an agent without the secret";
inline const std::string kNoTrustedLink = "no trusted link to the server at ";
inline const std::string kNotSignedBy = "its certificate is not signed by ";
inline const std::string kRefusesCertificate = "it refuses the certificate in ";
inline const std::string kWantsCertificate = "it wants a certificate, and none is given";
inline const std::string kSpeaksNoTls = "it does not speak TLS";
inline const std::string kNotTheKeyOf = "it is not the key of the certificate in ";
inline const std::string kNoCaInFile = "it has no CA certificate in PEM form";
inline const std::string kNoFirstMessage = "no complete first message within ";
inline const std::string kOthersMayAccess = "other users may access it (mode 0";
inline const std::string kSecretHasAtLeast = "a secret has at least 32 characters, ";
inline const std::string kCoordinatedBy = "the run is coordinated by";

// Programs.
inline const std::string kCannotWriteOutput = "cannot write to standard output";

// Reports.
inline const std::string kRanksDisagree = "the ranks disagree about a collective";
inline const std::string kNotExitedYet = "; it had not exited yet";

// What listens.
inline const std::string kPortInUse = "the port is in use";
inline const std::string kTooManyFiles = "cannot accept clients: Too many open files";
inline const std::string kFrameAnnounced = "the peer announced a frame of ";

/// In a log file with a limit, where bytes are missing.
inline const std::string kBytesLeftOut = "bytes are left out here";

}  // namespace ddprun::test
