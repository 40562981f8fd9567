#!/bin/sh
# Starts this host's part of one run. Run the same command on each host of the list; a host's rank
# is the line that has one of its own addresses, and the first one is the master.
#   launch.sh FILE OPTION... PROGRAM...     FILE: one IPv4 address on each line
set -eu
file=$1
shift
own=$(hostname -I)
nodes=0 rank='' master=''
while read -r host || [ -n "$host" ]; do
  [ -n "$host" ] || continue
  case " $own " in *" $host "*) rank=$nodes ;; esac
  master=${master:-$host}
  nodes=$((nodes + 1))
done <"$file"
if [ -z "$rank" ]; then
  echo "$0: none of this host's addresses ($own) is in $file" >&2
  exit 2
fi
# shellcheck disable=SC2086  # it may be several words
exec ${LAUNCHER:-ddprun} --nnodes="$nodes" --node-rank="$rank" \
  --master-addr="$master" --master-port="${MASTER_PORT:-29500}" "$@"
