#!/usr/bin/env bash
# scripts/demo without its long steps, and scripts/setup beside it without apt-get. Arguments: the
# script. setup, get-cifar10, cmake and ddprun are fakes for the demo.
set -euo pipefail

readonly SCRIPT=$1

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
  fake fakes/cmake 'bin=build/trainer/bin; mkdir --parents $bin && touch $bin/resnet18_cifar10 &&
    cp '"$root"'/fakes/ddprun $bin && chmod +x $bin/*'
  # RUN says how it ends: stopped after its first checkpoint, or finished.
  fake fakes/ddprun 'echo "trains: $*"; [[ -e runs/demo/a.last.safetensors ]] && echo resumes
    if [[ $RUN == killed ]]; then
      resnet18_worker 60 & worker=$!
      echo "worker: $worker"
    fi
    touch runs/demo/a.last.safetensors; [[ $RUN == stopped ]] && exit 130
    [[ $RUN != killed ]] || { wait "$worker"; exit "$?"; }
    touch runs/demo/best.pt'
  cp "$(command -v sleep)" "$root/fakes/resnet18_worker"
}
fake() {
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$root/$1"
  chmod +x "$root/$1"
}

# demo RUN ARGUMENT...: the code must be that of a run that ends so.
demo() {
  local code=0 expected=0
  [[ $1 == finished ]] || expected=130
  [[ $1 != killed ]] || expected=137
  PATH=$root/fakes:$PATH RUN=$1 "$root/scripts/demo" "${@:2}" >"$root/output" 2>&1 || code=$?
  [[ $code -eq $expected ]] || fail "exit code $code instead of $expected"
}
says() { grep --quiet --fixed-strings -- "$1" "$root/output" || fail "it does not say: $1"; }
says_not() { ! grep --quiet --fixed-strings -- "$1" "$root/output" || fail "it says: $1"; }

test_each_step_says_what_it_does_and_how_long_it_takes_where_it_is_not_done() {
  demo finished
  says 'step 1 of 3, setup: packages, and torch into .venv (4.8 GB), 2 to 3 min'
  says 'step 2 of 3, build, about 3 min on two processors; output in build/demo-build.log'
  says 'step 3 of 3: the images into data/, then training, 1 to 2 min on two processors'
  demo finished
  says_not '4.8 GB'
  says_not 'about 3 min'
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
  says "demo: kill -9 $(sed -n 's/^worker: //p' "$root/output")"
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
  says 'trains: --standalone'
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
