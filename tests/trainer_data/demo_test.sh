#!/usr/bin/env bash
# scripts/demo without its long steps, and scripts/setup beside it without apt-get. Arguments: the
# script, ddprun. setup, get-cifar10, cmake and the trainer are fakes for the demo.
set -euo pipefail

readonly SCRIPT=$1 DDPRUN=$2

main() {
  root=$(mktemp --directory)
  trap 'rm -rf "$root"' EXIT
  make_fakes
  local test
  for test in $(declare -F | sed -n 's/^declare -f test_//p'); do
    rm -rf "$root"/{build,runs,.venv}
    "test_$test"
    echo "ok: ${test//_/ }"
  done
}

fail() {
  echo "FAILED: $*" >&2
  echo "output: $(<"$root/output")" >&2
  exit 1
}

make_fakes() {
  mkdir "$root/scripts" "$root/fakes"
  cp "$SCRIPT" "$root/scripts/demo"
  # It runs the fakes where it is.
  mkdir --parents "$root/elsewhere/scripts"
  cp "$(dirname "$SCRIPT")/setup" "$root/elsewhere/scripts"
  fake scripts/setup 'mkdir --parents .venv'
  fake scripts/get-cifar10 'exit ${IMAGES:-0}'
  fake fakes/cmake "[[ \$1 == --build ]] || exit 0; bin=build/trainer/bin; mkdir --parents \$bin &&
    cp '$root/fakes/resnet18_cifar10' \$bin && ln --symbolic --force '$DDPRUN' \$bin/ddprun"
  fake fakes/ninja 'for file in {1..100}; do echo "c++ -c $file.cpp"; done; echo "c++ -o program"'
  # RUN says how its ranks end: finished, stopped by a signal after the first checkpoint, or killed
  # and then finished. Without that signal or kill they end after a minute, and the test fails.
  fake fakes/resnet18_cifar10 'if [[ $RANK == 0 ]]; then
      echo "trains: $*"
      [[ -e runs/demo/a.last.safetensors ]] && echo resumes
      touch runs/demo/a.last.safetensors
    fi
    if [[ $RUN == stopped || $RUN == killed && $TORCHELASTIC_RESTART_COUNT == 0 ]]; then
      echo "rank $RANK: $$"
      exec sleep 60
    fi
    touch runs/demo/best.pt'
}
fake() {
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$root/$1"
  chmod +x "$root/$1"
}

# demo RUN ARGUMENT...: the code must be that of a run that ends so.
demo() {
  local code=0 expected=0 pid
  [[ $1 != stopped ]] || expected=143
  rm --force "$root/output"
  PATH=$root/fakes:$PATH RUN=$1 "$root/scripts/demo" "${@:2}" >"$root/output" 2>&1 &
  pid=$!
  if [[ $1 == stopped ]]; then
    eventually prints 'rank 0: ' || fail 'it does not train'
    kill "$pid"
  fi
  wait "$pid" || code=$?
  [[ $code -eq $expected ]] || fail "exit code $code instead of $expected"
}
prints() { grep --quiet --no-messages --text "$1" "$root/output"; }
# eventually CONDITION...: false if it does not hold within 30 s.
eventually() {
  local tries=0
  until "$@"; do
    [[ $((tries += 1)) -lt 300 ]] || return 1
    sleep 0.1
  done
}
says() { grep --quiet --fixed-strings -- "$1" "$root/output" || fail "it does not say: $1"; }
says_not() { ! grep --quiet --fixed-strings -- "$1" "$root/output" || fail "it says: $1"; }

test_each_step_says_what_it_does_and_how_long_it_takes_where_it_is_not_done() {
  demo finished
  says 'step 1 of 3, setup: packages, and torch into .venv (4.8 GB), 2 to 3 min'
  says 'step 2 of 3, build; output in build/demo-build.log'
  local minutes=$(((800 / $(nproc) + 59) / 60))
  says "100 files to compile on $(nproc) processors, at most about $minutes min"
  says 'step 3 of 3: the images into data/, then training, 1 to 2 min on two processors'
  demo finished
  says_not '4.8 GB'
  says_not 'files to compile'
}

test_a_run_that_was_stopped_continues_and_a_finished_one_starts_over() {
  demo stopped
  says_not resumes
  demo stopped
  says 'continuing the run in runs/demo, which was stopped'
  says resumes
  demo finished
  says resumes
  demo finished
  says_not resumes
  says_not continuing
}

test_with_kill_a_worker_gets_sigkill_after_the_first_checkpoint() {
  demo killed --kill
  local pid
  pid=$(sed -n 's/.*rank 1: //p' "$root/output")
  says "demo: kill -9 $pid"
  says "rank 1 (local 1, pid $pid)"
  says 'received SIGKILL'
  says 'restart 1 of 3'
}

test_the_line_for_a_second_terminal_kills_a_worker() {
  rm --force "$root/output"
  (
    eventually prints 'in a second terminal:' || exit 1
    bash -c "$(sed -n 's/.*in a second terminal://p' "$root/output")"
  ) 2>/dev/null &
  local second=$!
  demo killed
  wait "$second" || fail 'it shows no command for a second terminal'
  says 'received SIGKILL'
  says 'restart 1 of 3'
}

# setup USER SUDO: what it does on a machine without packages, where apt-get takes everything.
setup() {
  fake fakes/dpkg-query 'exit 1'
  fake fakes/id "echo $1"
  fake fakes/sudo "[[ $2 == yes ]] && shift && exec \"\$@\""
  fake fakes/apt-get "echo \"\$*\" >>$root/installed"
  rm -f "$root/installed"
  PATH=$root/fakes:$PATH "$root/elsewhere/scripts/setup" >"$root/output" 2>&1
}

test_missing_packages_are_installed_each_with_its_reason_or_the_command_is_shown() {
  ! setup 1000 no || fail 'it succeeds without packages, root and sudo'
  says 'setup: missing: cmake ('
  grep --quiet '^  sudo apt-get update && sudo apt-get install .* cmake ' "$root/output" ||
    fail 'it does not show the command'
  [[ ! -e $root/installed ]] || fail 'it calls apt-get without root'
  local user
  for user in '0 no' '1000 yes'; do
    setup $user || fail "it fails for user and sudo $user"
    says 'setup: missing: cmake ('
    grep --quiet ' install .* cmake ' "$root/installed" || fail 'it does not install'
  done
}

test_other_flags_start_over() {
  demo stopped
  demo stopped -- --width 16
  says 'trains: --model-dir'
  says '--width 16'
  says_not resumes
  demo stopped -- --width 16
  says resumes
}

test_the_warning_about_generated_images_is_a_box() {
  IMAGES=3 demo finished
  says 'ACCURACY BELOW MEANS NOTHING'
  local widths
  widths=$(sed -n '/^  \*/p' "$root/output" | awk '{print length}' | sort --unique)
  [[ $widths == 78 ]] || fail "lines of the box have the widths ${widths//$'\n'/, }"
  says '--generated on'
}

main
