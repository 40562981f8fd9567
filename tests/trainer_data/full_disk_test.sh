#!/usr/bin/env bash
# A disk that fills up while the trainer runs costs checkpoints, not the training; only without the
# last one of the run it fails. Arguments: the trainer.
set -euo pipefail

export TRAINER=$1
if ! unshare --map-root-user --mount true 2>/dev/null; then
  echo 'skipped: mount namespaces are not allowed here'
  exit 77
fi
root=$(mktemp --directory)
trap 'rm -rf "$root"' EXIT
export root

fail() {
  echo "FAILED: $*" >&2
  cat "$root/output" >&2
  exit 1
}

# Width 8 makes checkpoints of 1.4 MB: the best one fits on this disk, the last one does not. The
# mount vanishes with the process, so what is left is listed in time.
train_on_a_small_disk() {
  mkdir "$root/disk"
  mount -t tmpfs -o size=2m tmpfs "$root/disk"
  local code=0
  "$TRAINER" --generated --limit-train 64 --limit-test 500 --batch-size 32 --width 8 --epochs 2 \
    --device cpu --threads 1 --model-dir "$root/disk" >"$root/output" 2>&1 || code=$?
  echo "$code" >"$root/code"
  ls -A "$root/disk" >"$root/files"
}
export -f train_on_a_small_disk
unshare --map-root-user --mount bash -euo pipefail -c train_on_a_small_disk

grep --quiet 'No space left on device.*training goes on' "$root/output" || fail 'it does not warn'
grep --quiet '^test step 4/4' "$root/output" || fail 'it does not train to the end'
[[ $(<"$root/code") -eq 1 ]] || fail 'a run without its last checkpoint is a success'
grep --quiet 'resnet18.best.safetensors' "$root/files" || fail 'the best checkpoint is gone'
! grep --quiet 'tmp-' "$root/files" || fail "litter: $(<"$root/files")"
echo 'ok: training goes on without room for its checkpoints, and says so'
