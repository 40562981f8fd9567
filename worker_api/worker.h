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

/* The link to ddprun. Nothing below blocks, and nothing is an error that a program has to handle:
 * under another launcher, or alone, calls do nothing and return ENOTCONN. Any thread may call; a
 * process that was forked continues with the link of its parent. No other thread may modify the
 * environment during the first call. */

/* Step `step` (from 0) is finished: a few writes to shared memory, no system call. ddprun shows the
 * last one of each rank, and quotes it when the run fails. Returns 0 or ENOTCONN. */
int ddprun_worker_step_done(int64_t step);

/* The program is ready to train. Returns 0, ENOTCONN, or EAGAIN if ddprun does not keep up. */
int ddprun_worker_ready(void);

/* A checkpoint of `step` is complete at `path` (not NULL, at most 4096 bytes). Returns as
 * ddprun_worker_ready(); EINVAL or ENAMETOOLONG for a path that is not valid. */
int ddprun_worker_checkpoint_written(int64_t step, const char* path);

/* If what follows takes longer than `timeout_ms`, ddprun saves the stacks of all ranks and ends the
 * round; the report names the section and this rank. Sections may overlap, 16 at a time. Returns a
 * number for ddprun_worker_section_end(), or -1 if ddprun does not watch the section. */
int64_t ddprun_worker_section_begin(const char* name, int64_t timeout_ms);
/* Does nothing for -1 and for a section that has ended. */
void ddprun_worker_section_end(int64_t section);

/* From now on a stop signal (SIGTERM, SIGINT, SIGHUP, SIGQUIT) does not end this process if it
 * leaves time to save: ddprun_worker_stop_requested() tells of it. Without ddprun every first one
 * does. A signal that stops this rank because another one failed ends it as before. What was forked
 * after this call ignores the first kind. Returns 0 or an errno value. */
int ddprun_worker_handle_stop(void);

/* The signal of the stop that was requested, 0 if none was: save at the next step, and exit before
 * ddprun's --shutdown-timeout has passed. Ranks learn of a stop at different steps: use the maximum
 * of what all of them say, in an all-reduce for example. No system call. */
int ddprun_worker_stop_requested(void);

/* 1: ddprun is at the other end; 0: it is not, or not any more. */
int ddprun_worker_connected(void);

/* Waits until a stop is requested (returns 1), the link has ended (-1), or `timeout_ms` have passed
 * (0). */
int ddprun_worker_wait_for_stop(int timeout_ms);

/* Survivors. With ddprun --restart=failed a worker that says that it survives stays when another
 * one fails, and takes part in the next round with the process it has. A program that does not call
 * these is started again, as ever. */

/* This process can take a new round without being started again. Starts one thread, which waits for
 * rounds, with all signals blocked; processes that the program forks do not have it. Returns 0, or
 * ENOTCONN: there is no ddprun, it starts all ranks again (no --restart=failed), or this process is
 * not the worker itself but one below it. Again: nothing. */
int ddprun_worker_survive(void);

/* This process was started for the round. */
#define DDPRUN_WORKER_CAUSE_START 0
/* The round before is over: a worker is gone, or nodes joined; collectives of that round do not
 * end. */
#define DDPRUN_WORKER_CAUSE_FAILURE 1

struct ddprun_worker_change {
  size_t struct_size; /* in: sizeof(struct ddprun_worker_change) */
  int cause;
  int previous_rank; /* in the round that the process was in before; -1: in none */
  int previous_world_size;
};

/* Waits at most `timeout_ms` (negative: for ever) for a round newer than the one the process is in,
 * and takes part in it; of several the last. The first call returns that of the environment at
 * once. Fills `worker`, and `change` if it is not NULL. Returns 0; ETIMEDOUT; ENOTCONN, at once: no
 * other round can come, because ddprun is gone or ddprun_worker_survive() did not return 0, or
 * ddprun closes each link; EINVAL with a sentence in `problem`, as ddprun_worker_read(). Must be
 * called within ddprun's --rejoin-timeout, else the worker is killed and started again. One thread
 * at a time. */
int ddprun_worker_next_round(struct ddprun_worker* worker, struct ddprun_worker_change* change,
                             int timeout_ms, char* problem, size_t problem_size);

/* A spare (ddprun --spares) is a process that was started without a place: it has loaded what it
 * needs, and its first ddprun_worker_next_round() waits until it gets the place of a lost rank,
 * without a limit whatever `timeout_ms` is. Before that it has no rank, and ddprun_worker_read()
 * takes it for one without a launcher. This waits for the place, at most `timeout_ms`, for callers
 * that have to look after signals meanwhile. Returns ETIMEDOUT, or 0: ddprun_worker_next_round()
 * has an answer; of a process that is no spare, at once. */
int ddprun_worker_wait_for_place(int timeout_ms);

/* The number of a round that ddprun_worker_next_round() would return at once; 0: none. No system
 * call. */
int ddprun_worker_round_pending(void);

/* The variables that have new values in the round of the last ddprun_worker_next_round(), as
 * NAME=VALUE with a final NUL each. Writes at most `size` bytes; returns how many there are. The
 * environment of the process itself is not changed. */
size_t ddprun_worker_variables(char* variables, size_t size);

/* Called on the thread of ddprun_worker_survive() when a round comes, before
 * ddprun_worker_next_round() returns it: to free a thread that waits in a collective of the round
 * before. Sockets that were noted are shut by then. In place of the one before; NULL: none. */
typedef void (*ddprun_worker_round_callback)(int round, int cause, void* context);
void ddprun_worker_on_round(ddprun_worker_round_callback callback, void* context);

/* Gloo waits for ever in a collective whose peers are alive but have left it. Sockets of TCP that
 * the process makes between these two calls, on any thread, are noted, in place of those before;
 * when a round comes, they are shut for both directions, not closed, and so are, until the process
 * takes the round, those that a thread between the two calls makes. Sockets that listen are not
 * noted. end returns how many there are. Gloo leaves a thread to its time-out if its connection
 * ends in the middle of a message, so from the shut to the next begin its waits in this process
 * fail. */
void ddprun_worker_sockets_begin(void);
int ddprun_worker_sockets_end(void);
/* Shuts those that were noted, now. Returns how many. */
int ddprun_worker_abandon_sockets(void);

/* A small value that all ranks of the round agree on: of those that they propose under one name,
 * the one that reaches the round's store first. `value`: `size` bytes, at most 65536. The result is
 * written to `agreed`, which has room for *agreed_size bytes, and *agreed_size is set. Needs the
 * store of the launcher, ddprun or torchrun; a process that is alone agrees with itself. Returns 0;
 * ETIMEDOUT; ENOTCONN: no store, or it has ended with its round; EINVAL; EMSGSIZE; ENOBUFS. */
int ddprun_worker_agree(const char* name, const void* value, size_t size, void* agreed,
                        size_t* agreed_size, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
