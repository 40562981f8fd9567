#!/usr/bin/env bash
# Kills a process that repeatedly writes checkpoints, itself or in the background: every checkpoint
# that it reported as saved is complete. Then a real full disk. Arguments: the probe.
set -euo pipefail

readonly PROBE=$1
readonly KILLS=60
root=$(mktemp --directory)
trap 'rm -rf "$root"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

found() {
  local line
  line=$("$PROBE" find "$1") || fail "nothing to resume from: $line"
  echo "${line#found }"
}

# Parses one line of the writer: the last step it started to save, and the last one it saved.
take() {
  [[ $1 == sav* ]] || fail "$1"
  if [[ $1 == saved* ]]; then saved=${1#saved }; else began=${1#saving }; fi
}

# The writer is killed after a varying number of lines, at any point. All lines that it wrote count,
# whether read before or after the kill. Argument: save or beside.
kill_while_saving() {
  local run=$root/$1 saved=0 began=0 line kills lines step output
  for ((kills = 0; kills < KILLS; ++kills)); do
    coproc WRITER { exec "$PROBE" "$1" "$run" 3000000 1000; }
    local pid=$WRITER_PID
    exec {output}<&"${WRITER[0]}"  # bash closes its own when it sees the end
    for ((lines = 0; lines <= kills % 7; ++lines)); do
      read -r -t 30 -u "$output" line || fail 'the writer says nothing'
      take "$line"
    done
    kill -KILL "$pid"
    while read -r -t 30 -u "$output" line; do take "$line"; done
    exec {output}<&-
    wait "$pid" 2>/dev/null || true
    step=$(found "$run")
    [[ $step -ge $saved ]] || fail "step $saved was saved, but $step is found"
    [[ $step -le $began ]] || fail "step $step is found, but saving it never began"
    saved=$step
  done
  "$PROBE" "$1" "$run" 3000000 1 >/dev/null
  [[ $(find "$run" -type f | wc --lines) -eq 2 ]] || fail "leftovers: $(ls -A "$run")"
  echo "ok: $1: $KILLS kills, $saved steps, none lost"
}

# A file system of 1 MB, in a mount namespace that ends with its process.
fill_the_disk() {
  export -f fail found fill_the_small_disk
  export PROBE root
  if ! unshare --map-root-user --mount true 2>/dev/null; then
    echo 'the part with the full disk is left out: mount namespaces are not allowed here'
    return
  fi
  unshare --map-root-user --mount bash -euo pipefail -c fill_the_small_disk
}

fill_the_small_disk() {
  mkdir "$root/disk"
  mount -t tmpfs -o size=1m tmpfs "$root/disk"
  "$PROBE" save "$root/disk" 100000 2 >/dev/null
  local output
  local how
  for how in save beside; do
    ! output=$("$PROBE" "$how" "$root/disk" 1000000 1) || fail 'a checkpoint fits on a full disk'
    [[ $output == *'No space left on device'*'is unchanged'* ]] || fail "$output"
  done
  [[ $(found "$root/disk") -eq 2 ]] || fail 'the checkpoint from before is gone'
  [[ $(find "$root/disk" -type f | wc --lines) -eq 2 ]] || fail "leftovers: $(ls -A "$root/disk")"
  "$PROBE" save "$root/disk" 100000 1 >/dev/null
  [[ $(found "$root/disk") -eq 3 ]] || fail 'it does not continue when space is free again'
  echo 'ok: a full disk leaves the old checkpoint, and the run continues once space is free'
}

kill_while_saving save
kill_while_saving beside
fill_the_disk
