#!/usr/bin/env bash
# The CI gate job: verify the contracts, then judge a run's artifacts; both always run, the worse
# exit code decides. JUnit, SARIF, Markdown and HTML go to REPORT; on GitHub, annotations and the
# step's summary as well.
#
#   [REPORT=trueup-report] [BACKEND=auto] [PROFILE=] ci/gate-job.sh RUN_DIR [CONTRACT...]
#
# Without PROFILE the profile is that of trueup.toml, else nl.
set -uo pipefail

if [ $# -lt 1 ]; then
  echo "usage: ci/gate-job.sh RUN_DIR [CONTRACT...]" >&2
  exit 2
fi
run_dir=$1
shift
report=${REPORT:-trueup-report}
mkdir -p "$report" || exit 2
rm -f "$report/verify.xml" "$report/gate.xml" "$report/gate.sarif" "$report/gate.md" || exit 2

# A command that says 0 and left no JUnit has judged nothing: that is 2, not a pass.
left_something() { # FILE CODE
  if [ ! -s "$1" ]; then
    echo "ci/gate-job.sh: $1 is empty: nothing was judged (exit code was $2)" >&2
    [ "$2" -lt 2 ] && return 2
  fi
  return "$2"
}

trueup verify "$@" --backend "${BACKEND:-auto}" --format junit --report "$report" \
  --evidence "$report/evidence.json" >"$report/verify.xml"
left_something "$report/verify.xml" $?
verified=$?

options=(--report "$report" --write "junit=$report/gate.xml" --write "sarif=$report/gate.sarif"
  --write "markdown=$report/gate.md")
[ -n "${PROFILE:-}" ] && options+=(--profile "$PROFILE")
[ "${GITHUB_ACTIONS:-}" = true ] && options+=(--format github)
trueup gate "$run_dir" "${options[@]}"
left_something "$report/gate.xml" $?
gated=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -s "$report/gate.md" ]; then
  cat "$report/gate.md" >>"$GITHUB_STEP_SUMMARY"
fi

echo "verify: exit code $verified, gate: exit code $gated; reports in $report"
[ "$verified" -ge "$gated" ] && exit "$verified"
exit "$gated"
