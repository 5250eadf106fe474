#!/usr/bin/env bash
# What a GPU runner runs: every lane of every shipped kernel on the device, the tests that need a
# device, and the benchmark. Prints short tables; full results go to OUT (default trueup-report).
#
#   ci/gpu.sh [verify|tests|bench]... [CONTRACT...]     default: all three, all shipped contracts
#
# Most of the time of `verify` goes into deriving bounds on the host, so that JOBS contracts (default:
# one for each processor) are judged at once, each in a process of its own that may take LIMIT
# seconds. Each verdict is printed as it falls: a run that is cut off tells what it got to.
set -uo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
backend=${BACKEND:-cuda}
out=${OUT:-trueup-report}
jobs=${JOBS:-$(nproc)}
limit=${LIMIT:-300}
parts=() contracts=()
for word in "$@"; do
  case $word in
    verify | tests | bench) parts+=("$word") ;;
    *.toml) contracts+=("$word") ;;
    *) echo "error: neither a part (verify, tests, bench) nor a contract: $word" >&2; exit 2 ;;
  esac
done
[ ${#parts[@]} -gt 0 ] || parts=(verify tests bench)
[ ${#contracts[@]} -gt 0 ] || contracts=(kernels/{nl,dqn,isv}/*.toml)
mkdir -p "$out/verify"
status=0

run() { # name, command...
  local name=$1
  shift
  echo "== $name: $*"
  "$@" || { status=$?; echo "== $name failed with exit code $status"; }
}

judge() { # contract
  local name from=$SECONDS code
  name=$(basename "$1" .toml)
  timeout "$limit" "$python" -m trueup verify "$1" --backend "$backend" --jobs 1 \
    --evidence "$out/verify/$name.json" >"$out/verify/$name.txt" 2>&1
  code=$?
  local word=FAIL
  case $code in 0) word=PASS ;; 124) word="NOT DONE in ${limit} s" ;; esac
  echo "$word $name $((SECONDS - from)) s"
  [ "$code" -eq 0 ] || grep -v '^note' "$out/verify/$name.txt" | head -n 14
  return "$code"
}
export -f judge
export python backend out limit

verify() {
  printf '%s\n' "${contracts[@]}" | grep -v '/layout\.toml$' |
    xargs -P "$jobs" -I{} bash -c 'judge "$1" || exit 1' _ {} || return 1
}

for part in "${parts[@]}"; do
  case $part in
    verify) run verify verify ;;
    tests) run tests "$python" -m pytest -q -p no:cacheprovider -m gpu tests/backends tests/torch ;;
    bench) run bench-nl "$python" benchmarks/nl.py; run bench-dqn "$python" benchmarks/dqn.py ;;
  esac
done
exit "$status"
