#!/bin/sh
# Prints its rank and counts for a minute. Any executable can be a worker.
#   ddprun --standalone --nproc-per-node 2 --max-restarts 3 examples/shell/count.sh [SECONDS]
# In a second terminal: kill -9 one of the printed pids. ddprun reports which rank died and how,
# stops the other worker and restarts both as round 2.
step=0
while [ "$step" -lt "${1:-60}" ]; do
  echo "rank $RANK of $WORLD_SIZE, restart $TORCHELASTIC_RESTART_COUNT, pid $$: step $step"
  step=$((step + 1)); sleep 1
done
