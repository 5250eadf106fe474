"""Gates: judge the artifacts of a run. `judge(path, profile)` gives a `Verdict`."""

from trueup.gates.errors import GateError, ProfileError, SettingsError, Unreadable
from trueup.gates.findings import ArtifactInfo, Example, Finding, RuleOutcome, Verdict, Where
from trueup.gates.judge import judge

__all__ = [
    "ArtifactInfo",
    "Example",
    "Finding",
    "GateError",
    "ProfileError",
    "RuleOutcome",
    "SettingsError",
    "Unreadable",
    "Verdict",
    "Where",
    "judge",
]
