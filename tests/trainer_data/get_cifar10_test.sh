#!/usr/bin/env bash
# scripts/get-cifar10 with every kind of source and failure. Arguments: the script. Needs no network
# and no Pillow: curl and md5sum are fakes that precede the real ones in PATH.
set -euo pipefail

readonly SCRIPT=$1
readonly RECORD=3073
readonly OFFICIAL_MD5=c32a1d4ab5d03f1284b67883e8d87530
unset CIFAR10_SOURCE

main() {
  local test
  shared=$(mktemp --directory)
  trap 'rm -rf "$shared" "$root"' EXIT
  for test in $(declare -F | sed -n 's/^declare -f test_//p'); do
    root=$(mktemp --directory)
    mkdir "$root/fakes"
    PATH=$root/fakes:$ORIGINAL_PATH
    "test_$test"
    rm -rf "$root"
    echo "ok: ${test//_/ }"
  done
}
readonly ORIGINAL_PATH=$PATH

fail() {
  echo "FAILED: $*" >&2
  echo "output: $(<"$root/output")" >&2
  exit 1
}

# run CODE ARGUMENTS…: the script must exit with CODE. Its output is in $root/output.
run() {
  local expected=$1 code=0
  shift
  timeout 60 "$SCRIPT" "$@" >"$root/output" 2>&1 || code=$?
  [[ $code -eq $expected ]] || fail "exit code $code instead of $expected: get-cifar10 $*"
}
says() { grep --quiet --fixed-strings -- "$1" "$root/output" || fail "it does not say: $1"; }
whole() {
  local files
  files=$(find "$1/cifar-10-batches-bin" -name '*.bin' -size +0 | wc --lines)
  [[ $files -eq 6 ]] || fail "$1 is not complete"
}
no_leftovers() {
  local leftovers
  leftovers=$(find "$1" -mindepth 1 -maxdepth 1 ! -name cifar-10-batches-bin)
  [[ -z $leftovers ]] || fail "leftovers: $leftovers"
}

# A folder in the official layout, with RECORDS images in each training file.
make_layout() {
  mkdir -p "$1"
  local i
  for i in 1 2 3 4 5; do truncate --size=$((RECORD * $2)) "$1/data_batch_$i.bin"; done
  truncate --size=$((RECORD * 4)) "$1/test_batch.bin"
}

# A source with an unpack.py that takes the same arguments as the real one; CODE runs before the
# last file is written.
make_unpacker() {
  mkdir -p "$root/source"
  cat >"$root/source/unpack.py" <<PYTHON
import os, pathlib, signal, sys
per_class = int(sys.argv[3]) if len(sys.argv) > 2 else 5000
out = pathlib.Path(sys.argv[1]) / "cifar-10-batches-bin"
out.mkdir(parents=True)
def put(name):
    (out / name).touch()
    os.truncate(out / name, $RECORD * 2 * per_class)
for i in range(5):
    put(f"data_batch_{i + 1}.bin")
${1:-pass}
put("test_batch.bin")
PYTHON
}

# Fakes: an md5sum that accepts every file except those that contain "damaged", and a curl.
fake() {
  printf '#!/bin/bash\n%s\n' "$2" >"$root/fakes/$1"
  chmod +x "$root/fakes/$1"
}
fake_md5sum() {
  fake md5sum "if grep --quiet damaged \"\$1\"; then echo 0000 x; else echo $OFFICIAL_MD5 x; fi"
}
make_archive() {  # only once: 150 MB take a while
  if [[ ! -f $shared/official.tar.gz ]]; then
    make_layout "$shared/cifar-10-batches-bin" 10000
    tar --create --gzip --file "$shared/official.tar.gz" --directory "$shared" cifar-10-batches-bin
  fi
  cp "$shared/official.tar.gz" "$root/"
}
# curl … --output FILE URL: FILE follows --output.
readonly CURL_OUTPUT='while [[ $1 != --output ]]; do shift; done; out=$2'

test_usage_errors_are_sentences() {
  run 2 && says 'no folder given'
  run 2 --per-class && says '--per-class needs'
  run 2 a --per-class x && says '"x"'
  run 2 a --per-class 6000 && says 'from 1 to 5000'
  run 2 a b && says 'one folder'
  run 2 --force && says 'unknown option --force'
  run 0 --help && says 'CIFAR10_SOURCE' && says '3: no images are available'  # to the last line
}

test_unpack_script_fills_the_folder_and_the_second_run_does_nothing() {
  make_unpacker
  export CIFAR10_SOURCE=$root/source
  run 0 "$root/data" && says '50000 training and 10000 test images'
  whole "$root/data" && no_leftovers "$root/data"
  rm "$root/source/unpack.py"
  run 0 "$root/data" && says '50000 training'
  unset CIFAR10_SOURCE
}

test_small_set_has_the_layout_and_is_not_taken_for_the_whole_one() {
  make_unpacker
  export CIFAR10_SOURCE=$root/source
  run 0 "$root/data" --per-class 3 && says '30 training'
  run 0 "$root/data" --per-class=3 && says '30 training'
  run 1 "$root/data" && says 'has 30 training images, 50000 were requested'
  unset CIFAR10_SOURCE
  run 1 "$root/other" --per-class 3 && says 'needs CIFAR10_SOURCE with an unpack.py'
}

test_killed_run_leaves_nothing_that_looks_whole_and_the_next_one_finishes() {
  make_unpacker 'os.kill(os.getppid(), signal.SIGKILL)'
  export CIFAR10_SOURCE=$root/source
  run 137 "$root/data"
  [[ ! -e $root/data/cifar-10-batches-bin ]] || fail 'a half set is in place'
  make_unpacker
  run 0 "$root/data" && whole "$root/data" && no_leftovers "$root/data"
  unset CIFAR10_SOURCE
}

test_interrupted_run_cleans_up() {
  make_unpacker 'os.kill(os.getppid(), signal.SIGTERM)'
  export CIFAR10_SOURCE=$root/source
  run 143 "$root/data"
  no_leftovers "$root/data"
  unset CIFAR10_SOURCE
}

test_failing_unpack_script_is_named_with_its_last_line() {
  make_unpacker 'raise OSError("no room")'
  export CIFAR10_SOURCE=$root/source
  run 1 "$root/data" && says 'unpack.py failed' && says 'no room'
  make_unpacker '(out / "data_batch_2.bin").write_bytes(b"short")'
  run 1 "$root/data" && says 'data_batch_2.bin has 5 bytes'
  no_leftovers "$root/data"
  unset CIFAR10_SOURCE
}

test_folder_in_the_layout_is_copied_also_a_small_one() {
  make_layout "$root/source/cifar-10-batches-bin" 7
  export CIFAR10_SOURCE=$root/source
  run 0 "$root/data" && says '35 training and 4 test images'
  run 0 "$root/data" && says '35 training'
  export CIFAR10_SOURCE=$root/source/cifar-10-batches-bin
  run 0 "$root/data2" && whole "$root/data2" && no_leftovers "$root/data2"
  rm "$CIFAR10_SOURCE/data_batch_4.bin"
  run 1 "$root/data3" && says 'data_batch_4.bin is missing'
  unset CIFAR10_SOURCE
}

test_sources_that_are_none_are_refused() {
  CIFAR10_SOURCE=$root/absent run 1 "$root/data" && says 'does not exist'
  mkdir "$root/empty"
  CIFAR10_SOURCE=$root/empty run 1 "$root/data" && says 'neither data_batch_1.bin nor unpack.py'
  echo text >"$root/file"
  CIFAR10_SOURCE=$root/file run 1 "$root/data" && says 'is not the official' && says $OFFICIAL_MD5
  run 1 "$root/file/data" && says 'cannot create the folder'
}

test_official_archive_is_unpacked() {
  make_archive
  fake_md5sum
  CIFAR10_SOURCE=$root/official.tar.gz run 0 "$root/data" && says '50000 training'
  whole "$root/data" && no_leftovers "$root/data"
}

test_truncated_archive_is_refused() {
  make_archive
  truncate --size=-1000 "$root/official.tar.gz"
  CIFAR10_SOURCE=$root/official.tar.gz run 1 "$root/data" && says 'is not the official'
  fake_md5sum  # even if its md5 were right
  CIFAR10_SOURCE=$root/official.tar.gz run 1 "$root/data" && says 'cannot unpack'
  no_leftovers "$root/data"
}

test_download_is_checked_unpacked_and_removed() {
  make_archive
  fake_md5sum
  fake curl "$CURL_OUTPUT; cp '$root/official.tar.gz' \"\$out\""
  run 0 "$root/data" && whole "$root/data" && no_leftovers "$root/data"
}

test_download_with_a_wrong_md5_is_refused_and_removed() {
  fake_md5sum
  fake curl "$CURL_OUTPUT; echo damaged >\"\$out\""
  run 1 "$root/data" && says 'is damaged: its md5 is not'
  no_leftovers "$root/data"
}

test_no_network_has_an_exit_code_of_its_own() {
  fake curl 'echo "curl: (6) Could not resolve host" >&2; exit 6'
  run 3 "$root/data" && says 'Could not resolve host' && says 'CIFAR10_SOURCE'
  no_leftovers "$root/data"
}

test_interrupted_download_is_gone_on_with() {
  make_archive
  fake_md5sum
  fake curl "$CURL_OUTPUT; echo damaged >\"\$out\"; exit 28"
  run 3 "$root/data"
  [[ -s $root/data/.cifar-10-binary.tar.gz.part ]] || fail 'the part is gone'
  fake curl "[[ \" \$* \" == *' --continue-at - '* ]] || exit 1; $CURL_OUTPUT
    [[ -s \$out ]] || exit 1; cp '$root/official.tar.gz' \"\$out\""
  run 0 "$root/data" && whole "$root/data" && no_leftovers "$root/data"
}

test_part_that_cannot_be_gone_on_with_is_removed() {
  fake_md5sum
  mkdir "$root/data"
  echo damaged >"$root/data/.cifar-10-binary.tar.gz.part"
  fake curl 'exit 33'
  run 1 "$root/data" && says 'try again'
  no_leftovers "$root/data"
}

test_set_that_somebody_damaged_is_refused_not_used() {
  make_layout "$root/data/cifar-10-batches-bin" 3
  truncate --size=-5 "$root/data/cifar-10-batches-bin/data_batch_5.bin"
  run 1 "$root/data" && says 'is incomplete: data_batch_5.bin' && says 'remove it'
}

test_two_runs_at_once_both_succeed() {
  make_unpacker
  export CIFAR10_SOURCE=$root/source
  "$SCRIPT" "$root/data" >"$root/first" 2>&1 &
  local first=$!
  run 0 "$root/data"
  wait "$first" || fail "the first run failed: $(<"$root/first")"
  whole "$root/data" && no_leftovers "$root/data"
  unset CIFAR10_SOURCE
}

main
