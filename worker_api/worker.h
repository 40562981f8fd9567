/* C interface for training programs to what the launcher provides. The ABI is stable: fields are
 * only appended, and struct_size tells the library which fields the caller has. Works under ddprun,
 * under torchrun and without a launcher, in which case the process is rank 0 of 1. Depends only on
 * libc and the C++ runtime. Thread rule: any thread, as long as no other thread modifies the
 * environment. Not async-signal-safe. */
#ifndef DDPRUN_WORKER_API_WORKER_H
#define DDPRUN_WORKER_API_WORKER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Size of master_addr and run_id including the final NUL; a longer value is an error. */
#define DDPRUN_WORKER_TEXT_MAX 512

struct ddprun_worker {
  size_t struct_size; /* in: sizeof(struct ddprun_worker) */
  int launched;       /* 1: started by a launcher; 0: no launcher, the fields are rank 0 of 1 */
  int rank;           /* RANK: 0 .. world_size-1, over all nodes */
  int local_rank;     /* LOCAL_RANK: 0 .. local_world_size-1, on this node */
  int world_size;
  int local_world_size;
  int group_rank;       /* rank of this node */
  int group_world_size; /* number of nodes */
  int restart_count;    /* restarts of the run so far */
  int max_restarts;
  int round;            /* from 1: increases with every start of the worker group */
  int use_agent_store;  /* 1: the launcher serves the store at master_addr:master_port: connect */
  uint16_t master_port; /* 0: unknown (no launcher) */
  char master_addr[DDPRUN_WORKER_TEXT_MAX];
  char run_id[DDPRUN_WORKER_TEXT_MAX]; /* empty without a launcher */
};

/* Reads and validates the environment. Returns 0, or -1 and a sentence in `problem` (truncated to
 * problem_size, always terminated) that names the variable. */
int ddprun_worker_read(struct ddprun_worker* worker, char* problem, size_t problem_size);

/* Ignores SIGPIPE, so that writing to a closed socket fails with EPIPE. Gloo uses plain writev(2):
 * when one rank dies, the signal would kill the ranks connected to it before they can report,
 * checkpoint or recover. Call it first in main(). Returns 0 or an errno value. */
int ddprun_worker_ignore_sigpipe(void);

/* Records the failure of this worker for the launcher's report: writes TORCHELASTIC_ERROR_FILE
 * atomically, in the format of torch.distributed.elastic's recorder. `message`: "Type: text".
 * `callstack` may be NULL. Bytes that are not UTF-8 become U+FFFD. Returns 0; ENOENT if no launcher
 * set the variable; another errno value if writing failed. */
int ddprun_worker_record_error(const char* message, const char* callstack);

#ifdef __cplusplus
}
#endif
#endif
