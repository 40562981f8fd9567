#!/usr/bin/env bash
# Kills a process that writes checkpoints again and again: what it said was saved is there, whole.
# Then a real full disk. Arguments: the probe.
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
  line=$("$PROBE" find "$1") || fail "nothing to go on from: $line"
  echo "${line#found }"
}

# The writer dies after a number of lines that differs from time to time, wherever it is then.
kill_while_saving() {
  local saved=0 line kills lines step
  for ((kills = 0; kills < KILLS; ++kills)); do
    coproc WRITER { exec "$PROBE" save "$root/run" 3000000 1000; }
    local pid=$WRITER_PID
    for ((lines = 0; lines <= kills % 7; ++lines)); do
      read -r -t 30 line <&"${WRITER[0]}" || fail 'the writer says nothing'
      [[ $line == sav* ]] || fail "$line"
      [[ $line != saved* ]] || saved=${line#saved }
    done
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null || true
    step=$(found "$root/run")
    [[ $step -ge $saved ]] || fail "step $saved was saved, but $step is found"
    [[ $step -le $((saved + 2)) ]] || fail "step $step is found, only $saved was saved"
    saved=$step
  done
  "$PROBE" save "$root/run" 3000000 1 >/dev/null
  [[ $(find "$root/run" -type f | wc --lines) -eq 2 ]] || fail "litter: $(ls -A "$root/run")"
  echo "ok: $KILLS kills, $saved steps, none lost"
}

# A file system of 1 MB, in a mount namespace that vanishes with its process.
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
  ! output=$("$PROBE" save "$root/disk" 1000000 1) || fail 'a checkpoint fits on a full disk'
  [[ $output == *'No space left on device'*'untouched'* ]] || fail "$output"
  [[ $(found "$root/disk") -eq 2 ]] || fail 'the checkpoint from before is gone'
  [[ $(find "$root/disk" -type f | wc --lines) -eq 2 ]] || fail "litter: $(ls -A "$root/disk")"
  "$PROBE" save "$root/disk" 100000 1 >/dev/null
  [[ $(found "$root/disk") -eq 3 ]] || fail 'it does not go on when there is room again'
  echo 'ok: a full disk leaves the old checkpoint, and the run goes on when there is room'
}

kill_while_saving
fill_the_disk
