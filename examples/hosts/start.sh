#!/bin/sh
# Starts one run on all hosts of a list, from one machine that reaches them through ssh. The run has
# a new secret, which each ddprun reads from its standard input: it is in no argument, variable or
# file. SIGINT and SIGTERM stop the run; the exit code is that of the first host that failed.
#   start.sh FILE OPTION... PROGRAM...     FILE: one host on each line
set -eu
hosts=$(grep . "$1")
shift

words=''
quote() {
  words="$words '$(printf '%s' "$1" | sed "s/'/'\\\\''/g")'"
}
for word in "$@"; do quote "$word"; done
options=$words words=''
quote "$PWD"
id=start-$(head -c 8 /dev/urandom | od -An -tx1 | tr -d ' \n')
list=$(printf '%s\n' "$hosts" | paste -sd, -)
command="cd$words && exec ddprun --rdzv-secret-file=- --rdzv-id=$id --hosts=$list$options"

# On a terminal (-t) the host would show the secret.
remote() {
  ssh -T -o BatchMode=yes "$@"
}
# shellcheck disable=SC2317  # called by trap
stop() {
  for host in $hosts; do
    remote "$host" "ddprun stop $id --no-wait" </dev/null >/dev/null 2>&1 &
  done
}
trap stop INT TERM

secret=$(head -c 32 /dev/urandom | base64)
processes=''
for host in $hosts; do
  printf '%s\n' "$secret" | remote "$host" "$command" &
  processes="$processes $!"
done

code=0
for process in $processes; do
  ended=0
  while wait "$process" || ended=$?; kill -0 "$process" 2>/dev/null; do ended=0; done
  [ $code -ne 0 ] || code=$ended
done
exit $code
