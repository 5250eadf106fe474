#!/usr/bin/env bash
# What a GPU runner runs: every lane of every shipped kernel on the device, the tests that need a
# device, and the benchmark. Prints short tables; full results go to OUT (default trueup-report).
#
#   ci/gpu.sh [verify|tests|bench]...      default: all three
#
# Most of the time of `verify` goes into deriving bounds on the host, so that JOBS contracts (default:
# one for each processor) are judged at once, each in a process of its own.
set -uo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
out=${OUT:-trueup-report}
jobs=${JOBS:-$(nproc)}
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(verify tests bench)
mkdir -p "$out"
status=0

run() { # name, command...
  local name=$1
  shift
  echo "== $name: $*"
  "$@" || { status=$?; echo "== $name failed with exit code $status"; }
}

for part in "${parts[@]}"; do
  case $part in
    verify) run verify "$python" -m trueup verify --backend cuda --jobs "$jobs" --report "$out" --evidence "$out/evidence.json" ;;
    tests) run tests "$python" -m pytest -q -p no:cacheprovider -m gpu tests/backends tests/torch ;;
    bench) run bench-nl "$python" benchmarks/nl.py; run bench-dqn "$python" benchmarks/dqn.py ;;
    *) echo "error: no such part: $part (verify, tests, bench)" >&2; exit 2 ;;
  esac
done
exit "$status"
