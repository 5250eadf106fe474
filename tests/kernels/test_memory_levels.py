"""The levels of the continuum memory where sums are long enough for tensor cores, on the host.

Boundary sizes put small companions beside a long axis, and special values go into small cases:
both leave out tiles whose every axis is longer than the shortest sum of split factors.
"""

from pathlib import Path

import pytest

import trueup.kernels
from trueup.oracle.contract import load_contract
from trueup.oracle.verdict import Outcome
from trueup.oracle.verify import open_session

KERNELS = Path(trueup.kernels.__file__).resolve().parent
AGAIN = "if (plain || !tile.settle()) {"


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        pytest.param("cms_level", "T=37,d=44,h=70", id="forward"),
        pytest.param("cms_level_update", "C=37,d=44,h=70", id="update"),
        pytest.param("cms_level_update_tf32", "C=37,d=44,h=70", id="update-tf32"),
    ],
)
def test_every_axis_longer_than_the_shortest_sum(kernel: str, case: str) -> None:
    opened = open_session(load_contract(KERNELS / "nl" / f"{kernel}.toml"), "host")
    for lane, family in (("numeric", "scaled"), ("order", "unit"), ("canary", "unit")):
        verdict = opened.run(lane, case=f"{case}/{family}")
        assert verdict.verdict is Outcome.PASS, (lane, verdict.findings, verdict.reason)
        assert verdict.launches


@pytest.mark.parametrize(
    ("kernel", "case"),
    [("cms_level", "T=2,d=2,h=40"), ("cms_level_update", "C=33,d=2,h=2")],
)
def test_infinity_stays_infinity_in_long_sums(kernel: str, case: str) -> None:
    """Split, it is inf - inf: a tile with a sum that is not finite is summed again by fmaf."""
    opened = open_session(load_contract(KERNELS / "nl" / f"{kernel}.toml"), "host")
    verdict = opened.run("special", case=f"{case}/unit")
    assert verdict.verdict is Outcome.PASS, (verdict.findings, verdict.reason)


def test_without_a_second_sum_infinity_is_lost(tmp_path: Path) -> None:
    header = (KERNELS / "compact.cuh").read_text()
    assert header.count(AGAIN) == 2
    once = header.replace(AGAIN, "if (!tile.settle() && plain) {")
    (tmp_path / "compact.cuh").write_text(once)
    (tmp_path / "cms_level.cu").write_text((KERNELS / "nl" / "cms_level.cu").read_text())
    text = (KERNELS / "nl" / "cms_level.toml").read_text()
    contract = tmp_path / "contract.toml"
    contract.write_text(text.replace('include = [".."]', f'include = [".", "{KERNELS}"]'))
    verdict = open_session(load_contract(contract), "host").run("special", case="T=2,d=2,h=40/unit")
    assert verdict.verdict is Outcome.FAIL
    assert any(finding.rule == "special.nonfinite" for finding in verdict.findings)
