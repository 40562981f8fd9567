#!/usr/bin/env bash
# The real images, read with scripts/get-cifar10 and the trainer's reader: balanced classes, and
# the mean brightness of CIFAR-10. Arguments: the script, the probe. Needs CIFAR10_SOURCE.
set -euo pipefail

if [[ ! -f ${CIFAR10_SOURCE:-}/unpack.py ]]; then
  echo 'skipped: CIFAR10_SOURCE names no folder with an unpack.py'
  exit 77
fi
root=$(mktemp --directory)
trap 'rm -rf "$root"' EXIT
"$1" "$root" --per-class 100
"$2" images "$root" | tee "$root/counts"
grep --quiet '^\(100 \)\{10\}mean 0\.4[67]' "$root/counts"
grep --quiet '^\(20 \)\{10\}mean 0\.4[5-8]' "$root/counts"
