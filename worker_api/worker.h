/* What a training program may know of its launcher, as a C interface (ABI stable: fields are only
 * ever appended, and struct_size tells the library which ones the caller knows). Works under
 * ddprun, under torchrun, and without any launcher, where the process is rank 0 of 1. No library
 * but libc and the C++ runtime is pulled in. Threads: call from any thread, but not while another
 * one changes the environment. Nothing here may be called from a signal handler. */
#ifndef DDPRUN_WORKER_API_WORKER_H
#define DDPRUN_WORKER_API_WORKER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest master_addr and run_id including the final NUL; a longer value is an error, never cut. */
#define DDPRUN_WORKER_TEXT_MAX 512

struct ddprun_worker {
  size_t struct_size; /* in: sizeof(struct ddprun_worker) */
  int launched;       /* 1: a launcher set the variables; 0: none did, these are rank 0 of 1 */
  int rank;           /* RANK: 0 .. world_size-1, over all nodes */
  int local_rank;     /* LOCAL_RANK: 0 .. local_world_size-1, on this node */
  int world_size;
  int local_world_size;
  int group_rank;       /* number of this node */
  int group_world_size; /* nodes */
  int restart_count;    /* restarts of the run so far */
  int max_restarts;
  int round;            /* from 1: which start of all workers this is */
  int use_agent_store;  /* 1: the launcher serves the store at master_addr:master_port; connect only
                         */
  uint16_t master_port; /* 0: unknown (no launcher) */
  char master_addr[DDPRUN_WORKER_TEXT_MAX];
  char run_id[DDPRUN_WORKER_TEXT_MAX]; /* empty without a launcher */
};

/* Reads and checks the environment. Returns 0; or -1 with one sentence in `problem` (cut to
 * problem_size, always terminated) that names the variable. */
int ddprun_worker_read(struct ddprun_worker* worker, char* problem, size_t problem_size);

/* Makes writing to a closed socket an error instead of a death by SIGPIPE. Gloo writes with plain
 * writev(2): when one rank dies, the signal would kill the ranks that still talk to it before they
 * can report, checkpoint or recover. Call it first in main(). Returns 0 or an errno value. */
int ddprun_worker_ignore_sigpipe(void);

/* Records why this worker fails, for the launcher's report: written to TORCHELASTIC_ERROR_FILE in
 * the format of torch.distributed.elastic's recorder, so that a reader sees the whole record or
 * none. `message`: "Type: text". `callstack`: may be NULL. Bytes that are not UTF-8 become U+FFFD.
 * Returns 0; ENOENT when no launcher asked for a record; another errno value when writing failed.
 */
int ddprun_worker_record_error(const char* message, const char* callstack);

#ifdef __cplusplus
}
#endif
#endif
