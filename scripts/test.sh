#!/bin/bash
# test.sh: everything that `make test` runs, each step timed. A step of the set-up that fails ends it;
# after failing tests the other tests still run, and the end says which failed.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
times=()
failed=()
causes=()

step() {  # NAME COMMAND...
  local name=$1 begin=$SECONDS rc=0
  shift
  printf '\n==> %s: %s\n' "$name" "$*"
  "$@" || rc=$?
  times+=("$(printf '%-12s %5d s  %s' "$name" $((SECONDS - begin)) "$([ $rc -eq 0 ] && echo ok || echo "FAILED ($rc)")")")
  [ $rc -eq 0 ] || failed+=("$name")
  return $rc
}

summary() {
  printf '\n'
  [ ${#causes[@]} -eq 0 ] || printf '==> %s\n' "${causes[@]}"
  printf '==> %s\n' "${times[@]}" "$(printf '%-12s %5d s' all $SECONDS)"
  if [ ${#failed[@]} -gt 0 ]; then
    echo "==> FAILED: ${failed[*]}" >&2
    exit 1
  fi
  echo "==> all tests passed"
}

# What failed is told again at the end: a long log is read from there.
run_ctest() {  # FOLDER ARGUMENT...
  local folder=$1 rc=0 cause
  shift
  ctest --test-dir "$folder" --output-on-failure --no-tests=error "$@" || rc=$?
  if [ $rc -ne 0 ]; then
    while IFS= read -r cause; do causes+=("$cause"); done < <(
      grep -hE '^(FAIL|ERROR): |^[A-Za-z]*(Error|Exception): |^\[  FAILED  \] [^ ]+$|: Failure$' \
        "$folder/Testing/Temporary/LastTest.log" | cut -c1-600 | head -n 40)
  fi
  return $rc
}

step packages scripts/deps.sh build test || summary
step wheel make --no-print-directory venv || summary
if [ "${TRAINING:-ON}" != OFF ]; then step test-wheels scripts/venv.sh test || summary; fi
step build make --no-print-directory build || summary
step unit run_ctest build -L '^unit$' -j "$(nproc)"
# The end-to-end tests mostly wait. What they leave of the processors builds meanwhile, and no more
# than that: they assert times.
chrt --idle 0 make --no-print-directory asan-build >build/asan-build.log 2>&1 &
asan_build=$!
finish_asan_build() { wait "$asan_build" || { tail -n 50 build/asan-build.log && false; }; }
# Those that assert times go one after the other (a lock), the others beside them.
step end-to-end run_ctest build -LE '^(unit|long|training)$' -j 2
if [ "${TRAINING:-ON}" != OFF ]; then step training run_ctest build -L '^training$'; fi
step asan-build finish_asan_build &&
  step asan-unit run_ctest build-asan -L '^(unit|process)$' -j "$(nproc)"
summary
