#!/usr/bin/env bash
# The CI gate job: verify the contracts, then judge a run's artifacts; both always run, the worse
# exit code decides. JUnit files and HTML reports go to REPORT (default trueup-report).
#
#   ci/gate-job.sh RUN_DIR [CONTRACT...]
set -uo pipefail

if [ $# -lt 1 ]; then
  echo "usage: ci/gate-job.sh RUN_DIR [CONTRACT...]" >&2
  exit 2
fi
run_dir=$1
shift
report=${REPORT:-trueup-report}
mkdir -p "$report"

trueup verify "$@" --backend "${BACKEND:-auto}" --format junit --report "$report" \
  --evidence "$report/evidence.json" >"$report/verify.xml"
verified=$?
trueup gate "$run_dir" --profile "${PROFILE:-nl}" --format junit --report "$report" >"$report/gate.xml"
gated=$?

echo "verify: exit code $verified, gate: exit code $gated; reports in $report"
[ "$verified" -ge "$gated" ] && exit "$verified"
exit "$gated"
