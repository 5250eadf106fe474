from __future__ import annotations

import io
from dataclasses import replace

import pytest

from trueup.oracle.verdict import Finding, Verification
from trueup.render.clean import one_line, printable
from trueup.render.console import console
from trueup.render.findings import Origin, alike, finding_text
from trueup.render.text import show_verification, summary_line


def _shown(verification: Verification, **options: bool) -> str:
    stream = io.StringIO()
    show_verification(verification, console(stream), **options)
    return stream.getvalue()


def test_a_finding_says_everything_and_how_to_see_it_again(failed: Verification) -> None:
    lane = failed.contracts[0].lanes[0]
    text = finding_text(lane.findings[0], Origin("kernels/a b.toml", "host", "numeric"))
    assert text.splitlines() == [
        "nl.delta_momentum: m_next[3, 5]: numeric.bound",
        "  got       1.0023, off by 3.1e-05: 41 times the allowed error",
        "            matches the reading literal_left",
        "  expected  1.00227 ± 7.6e-07, by the reading derived",
        "  fix       correct the delta term, or declare reading = 'literal_left'",
        "  case      d_out=33,d_in=7/it's near eps, seed 5",
        "  replay    trueup verify 'kernels/a b.toml' --backend host --lane numeric "
        "--case 'd_out=33,d_in=7/it'\"'\"'s near eps' --seed 5",
    ]


def test_the_table_has_a_row_per_lane_and_loses_nothing_off_a_terminal(
    failed: Verification,
) -> None:
    text = _shown(failed)
    rows = {
        line.split()[0]: line for line in text.splitlines() if line[:2] == "  " and line.strip()
    }
    assert "812,544" in rows["numeric"]
    assert "m_next[3, 5] in d_out=33,d_in=7/it's near eps" in rows["numeric"]
    assert "beyond" in rows["exact"]
    assert "the cuda backend has no thread orders" in rows["order"]
    assert "…" not in text


def test_no_control_character_reaches_the_output(failed: Verification) -> None:
    text = _shown(failed)
    text.encode("utf-8")
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "\u202e" not in text
    assert r"\x1b[31m\x00\u202e\ud800" in text


def test_quiet_keeps_findings_and_the_verdict(failed: Verification) -> None:
    text = _shown(failed, quiet=True)
    assert "nearest its bound" not in text
    assert "numeric.bound" in text
    assert text.splitlines()[-1].startswith("FAIL: 2 contracts")


def test_the_summary_says_that_host_evidence_is_not_gpu_evidence(passed: Verification) -> None:
    assert summary_line(passed) == (
        "PASS: 1 contract, 20 cases, 1,000 elements, 20 launches on host; "
        "host evidence is not GPU evidence"
    )


def test_a_terminal_gets_colour_unless_no_color_is_set(
    passed: Verification, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for variable, coloured in (("TRUEUP_UNRELATED", True), ("NO_COLOR", False)):
        monkeypatch.setenv(variable, "1")
        stream = Terminal()
        show_verification(passed, console(stream))
        assert ("\x1b[" in stream.getvalue()) is coloured


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\tb\nc", "a\tb\nc", id="layout-stays"),
        pytest.param("\x1b]0;x\x07", r"\x1b]0;x\x07", id="terminal-title"),
        pytest.param("a\rb", r"a\x0db", id="carriage-return"),
        pytest.param("\x9b31m", r"\x9b31m", id="c1-control"),
        pytest.param("‖x‖ ≤ ε", "‖x‖ ≤ ε", id="symbols-stay"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n\n b\tc ") == "a b c"


def test_a_finding_without_a_case_has_no_case_line() -> None:
    text = finding_text(Finding("r", "error", "a", "", "1", "2", ""))
    assert text.splitlines() == ["a: r", "  got       1", "  expected  2"]


def test_the_same_finding_in_many_cases_is_shown_once_and_counted() -> None:
    crash = Finding("numeric.crash", "error", "a", "k.cu:3", "SIGSEGV", "no fault", "", "n=1/unit")
    others = [replace(crash, case=f"n={n}/unit") for n in (2, 3)]
    elsewhere = replace(crash, where="k.cu:4")
    (first, also), (second, alone) = alike([crash, others[0], elsewhere, others[1]])
    assert (first, also, second, alone) == (crash, 2, elsewhere, 0)
    assert "  also in   2 more cases" in finding_text(first, also=also).splitlines()
