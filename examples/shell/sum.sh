#!/bin/sh
# A shell script as a worker: each rank sums its share of the numbers from 1 to N.
#   ddprun --standalone --nproc-per-node 4 examples/shell/sum.sh 1000
last=${1:-1000}
sum=0
number=$((RANK + 1))
while [ "$number" -le "$last" ]; do
  sum=$((sum + number))
  number=$((number + WORLD_SIZE))
done
echo "rank $RANK of $WORLD_SIZE: sum $sum"
