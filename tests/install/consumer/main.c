#include <ddprun/worker.h>
#include <stdio.h>

int main(void) {
  struct ddprun_worker worker = {sizeof worker};
  char problem[200];
  if (ddprun_worker_read(&worker, problem, sizeof problem) != 0) {
    fprintf(stderr, "%s\n", problem);
    return 1;
  }
  printf("rank %d of %d, %s\n", worker.rank, worker.world_size,
         worker.launched ? "launched" : "no launcher");
  return 0;
}
