#!/usr/bin/env bash
# A disk that fills up during training loses checkpoints but does not stop training; the run fails
# only if its last checkpoint cannot be written. Arguments: the trainer.
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
# mount vanishes with the process, so the files are listed before that.
# Argument: --checkpoint-async.
train_on_a_small_disk() {
  mkdir --parents "$root/disk"
  mount -t tmpfs -o size=2m tmpfs "$root/disk"
  local code=0
  "$TRAINER" --generated --limit-train 64 --limit-test 500 --batch-size 32 --width 8 --epochs 2 \
    --device cpu --threads 1 --model-dir "$root/disk" --checkpoint-async "$1" \
    >"$root/output" 2>&1 || code=$?
  echo "$code" >"$root/code"
  ls -A "$root/disk" >"$root/files"
}
export -f train_on_a_small_disk

for async in on off; do
  unshare --map-root-user --mount bash -euo pipefail -c "train_on_a_small_disk $async"
  grep --quiet 'No space left on device.*training continues' "$root/output" ||
    fail 'it does not warn'
  grep --quiet '^test step 4/4' "$root/output" || fail 'it does not train to the end'
  [[ $(<"$root/code") -eq 1 ]] || fail 'a run without its last checkpoint is a success'
  grep --quiet 'resnet18.best.safetensors' "$root/files" || fail 'the best checkpoint is gone'
  ! grep --quiet 'tmp-' "$root/files" || fail "temporary files remain: $(<"$root/files")"
  echo "ok: training continues without space for its checkpoints, and warns (async $async)"
done
