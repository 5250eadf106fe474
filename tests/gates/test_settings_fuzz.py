"""Whatever stands in a `trueup.toml`, it is read or refused in words; waivers follow their laws."""

from __future__ import annotations

import datetime
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from trueup.gates import SettingsError
from trueup.gates.catalogue.rules import built_in_entries
from trueup.gates.findings import Finding, Severity, Verdict, Where
from trueup.gates.settings.apply import apply_settings, check_rules
from trueup.gates.settings.load import load_settings
from trueup.gates.settings.model import Settings, SeverityOverride, Waiver

TODAY = datetime.date(2026, 1, 15)
FIRM = {entry.id for entry in built_in_entries() if not entry.waivable}
WORDS = st.sampled_from(
    ["[gate]", "[[waiver]]", "[severity]", "[limits]", "profile", "rule", "reason", "expires", "=",
     '"nl"', '"TEL008"', '"RDR003"', "TEL008", "2026-01-01", "2026-02-30", "true", "nan", "1e999",
     "{", "}", "[", "]", ",", "\n", "'''", '"""', "steps = [1, 0]", "severity", '"note"', "\0", "#",
     "artifact", '"*"', "9" * 40, "07:32:00", "\ufeff", "a.b.c"]
)  # fmt: skip


def loaded(raw: bytes) -> Settings | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trueup.toml"
        path.write_bytes(raw)
        refused = ""
        try:
            settings = load_settings(path)
            check_rules(settings, built_in_entries())
        except SettingsError as error:
            refused = str(error)
        assert not refused or str(path) in refused
        assert len(refused) < 5_000
        return None if refused else settings


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    loaded(raw)


@given(st.lists(WORDS, max_size=40))
def test_any_words_of_the_language_are_read_or_refused(words: list[str]) -> None:
    settings = loaded(" ".join(words).encode())
    for waiver in settings.waivers if settings else ():
        assert waiver.rule not in FIRM
        assert waiver.reason


RULES = ("OWN001", "OWN002")
KEYS = (None, "loss", "layer1.loss", "evals[0].loss")
ARTIFACTS = ("run/a.jsonl", "run/deep/b.json")


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    low, high = sorted(draw(st.tuples(st.integers(0, 20), st.integers(0, 20))))
    steps = draw(st.sampled_from([None, (low, high)]))
    where = Where(key=draw(st.sampled_from(KEYS)), step=low if steps else None, steps=steps)
    severity: Severity = draw(st.sampled_from(["error", "warning", "note"]))
    rule, artifact = draw(st.sampled_from(RULES)), draw(st.sampled_from(ARTIFACTS))
    return Finding(rule, severity, artifact, where, "g", "e", "f", count=draw(st.integers(1, 9)))


@st.composite
def waivers(draw: st.DrawFn) -> Waiver:
    low, high = sorted(draw(st.tuples(st.integers(0, 20), st.integers(0, 20))))
    return Waiver(
        rule=draw(st.sampled_from(RULES)),
        reason="r",
        expires=TODAY + datetime.timedelta(days=draw(st.integers(-2, 2))),
        place=f"waiver[{draw(st.integers(0, 99))}]",
        artifact=draw(st.sampled_from(["", "a.jsonl", "deep/*", "gone/*", "*"])),
        key=draw(st.sampled_from(["", "loss", "layer*", "evals[0].*"])),
        steps=draw(st.sampled_from([None, (low, high)])),
    )


@given(st.lists(findings(), max_size=12), st.lists(waivers(), max_size=5))
def test_waivers_hide_nothing_and_stretch_nothing(
    found: list[Finding], given_waivers: list[Waiver]
) -> None:
    verdict = Verdict("fail", "mine", 1, 1, tuple(found))
    settings = Settings(path="trueup.toml", folder="/elsewhere", waivers=tuple(given_waivers))
    out = apply_settings(verdict, settings, run="run", today=TODAY)
    own = [one for one in out.findings if one.rule in ("GAT009", "GAT010")]
    kept = [one for one in out.findings if one not in own]
    waived = [(one, use) for use in out.waivers for one in use.findings]
    # Each finding is in one of the two places, once, unchanged.
    assert sorted(map(repr, found)) == sorted(map(repr, [*kept, *(one for one, _ in waived)]))
    assert out.waived == len(waived)
    for one, use in waived:
        assert use.status == "used"
        assert one.rule == use.rule
        assert use.expires >= TODAY.isoformat()
        if use.steps is not None:
            assert one.where.steps is not None
            assert use.steps[0] <= one.where.steps[0] <= one.where.steps[1] <= use.steps[1]
        if use.key:
            assert one.where.key is not None
    assert sum(use.status == "expired" for use in out.waivers) == sum(
        one.count for one in own if one.rule == "GAT009"
    )
    assert out.passed is not any(one.severity == "error" for one in out.findings)


@given(st.lists(findings(), max_size=12), st.sampled_from(["error", "warning", "note"]))
def test_a_severity_changes_no_more_than_it_says(found: list[Finding], severity: Severity) -> None:
    override = SeverityOverride("OWN001", severity, "severity.OWN001", "a.jsonl")
    settings = Settings(path="trueup.toml", folder="/elsewhere", severities=(override,))
    verdict = Verdict("fail", "mine", 1, 1, tuple(found))
    out = apply_settings(verdict, settings, run="run", today=TODAY)
    back = [
        replace(one, severity=one.severity_was or one.severity, severity_was=None)
        for one in out.findings
    ]
    assert sorted(map(repr, back)) == sorted(map(repr, found))
    changed = [one for one in out.findings if one.severity_was is not None]
    assert all((one.rule, one.severity) == ("OWN001", severity) for one in changed)
    assert sum(change.findings for change in out.severity_changes) == len(changed)
    order = ["error", "warning", "note"]
    severities = [order.index(one.severity) for one in out.findings]
    assert severities == sorted(severities)
