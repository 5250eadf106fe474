"""The pytest plugin, by pytest's own pytester."""

from __future__ import annotations

import shutil
from importlib.metadata import entry_points
from pathlib import Path

import jsonschema  # noqa: F401
import pytest

# pytester forgets what a run inside it was the first to import, and compiled modules load once.
import trueup.oracle.verify  # noqa: F401

pytest_plugins = ["pytester"]

# Installed, the entry point loads the plugin; from a source tree it must be named.
_INSTALLED = any(point.value == "trueup.plugin" for point in entry_points(group="pytest11"))
_PLUGIN = () if _INSTALLED else ("-p", "trueup.plugin")


@pytest.fixture
def mine(pytester: pytest.Pytester, kernels: Path) -> pytest.Pytester:
    """A project that holds a right and a wrong kernel."""
    shutil.copytree(kernels, pytester.path / "mine")
    return pytester


def _run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(
        *_PLUGIN, "-p", "no:cacheprovider", "-p", "no:xdist", *words
    )


def _ids(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def test_a_contract_becomes_a_test_per_lane(mine: pytest.Pytester) -> None:
    result = _run(mine, "mine/right.toml", "--collect-only", "-q")
    ids = _ids(result)
    assert "mine/right.toml::my.right[python-numeric]" in ids
    assert "mine/right.toml::my.right[python-canary]" in ids
    assert not any("order" in id for id in ids)


def test_every_lane_is_marked_fidelity_and_selected_by_name(mine: pytest.Pytester) -> None:
    mine.makepyfile(test_own="def test_own(): pass")
    marked = _ids(_run(mine, "--collect-only", "-q", "-m", "fidelity", "--strict-markers"))
    assert marked
    assert all("mine/" in id for id in marked)
    named = _ids(_run(mine, "--collect-only", "-q", "-m", "fidelity", "-k", "right and numeric"))
    assert named == ["mine/right.toml::my.right[python-numeric]"]


def test_a_right_kernel_passes_and_its_counts_are_summed(mine: pytest.Pytester) -> None:
    result = _run(mine, "mine/right.toml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["trueup: 1 contract, * cases, * elements, * launches on python"])


def test_a_wrong_kernel_fails_with_the_finding_and_no_traceback(mine: pytest.Pytester) -> None:
    result = _run(mine, "mine", "-k", "numeric")
    result.assert_outcomes(passed=1, failed=1, deselected=len(_ids_of_all(mine)) - 2)
    result.stdout.fnmatch_lines(
        [
            "*my.wrong[[]python-numeric]*",
            "my.wrong: y*: numeric.*",
            "  got *",
            "  replay    trueup verify mine/wrong.toml --backend python --lane numeric *",
        ]
    )
    text = result.stdout.str()
    assert "Traceback" not in text
    assert "fidelity.py" not in text


def _ids_of_all(pytester: pytest.Pytester) -> list[str]:
    return _ids(_run(pytester, "mine", "--collect-only", "-q"))


def test_a_malformed_contract_is_a_collection_error_in_our_words(mine: pytest.Pytester) -> None:
    (mine.path / "mine" / "broken.toml").write_text("[contract]\nid = 'x'\nreferense = 'y'\n")
    result = _run(mine, "mine", "-k", "right")
    result.assert_outcomes(errors=1)
    text = result.stdout.str()
    assert "did you mean `reference`" in text
    assert "Traceback" not in text
    assert "load.py" not in text


def test_a_kernel_that_cannot_be_opened_fails_each_lane_in_our_words(
    mine: pytest.Pytester,
) -> None:
    (mine.path / "mine" / "ref.py").write_text("def other(x, a):\n    return x\n")
    result = _run(mine, "mine/right.toml")
    assert result.ret == 1
    text = result.stdout.str()
    assert "has no function `scale`" in text
    assert "Traceback" not in text


def test_too_few_cases_fail_the_numeric_lane(mine: pytest.Pytester) -> None:
    path = mine.path / "mine" / "right.toml"
    path.write_text(path.read_text().replace("[contract]", "[contract]\nminimum.cases = 9999"))
    result = _run(mine, "mine/right.toml", "-k", "numeric")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*minimum.cases*", "*at least 9999*"])


def test_a_backend_the_contract_does_not_allow_is_a_counted_skip(mine: pytest.Pytester) -> None:
    result = _run(mine, "mine/right.toml", "--trueup-backend", "cuda", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*the contract runs on python only*"])


def test_several_backends_are_several_sets_of_lanes(mine: pytest.Pytester) -> None:
    words = ("--trueup-backend", "cuda", "--trueup-backend", "auto", "--collect-only", "-q")
    ids = _ids(_run(mine, "mine/right.toml", *words))
    assert "mine/right.toml::my.right[cuda]" in ids
    assert "mine/right.toml::my.right[python-numeric]" in ids


def test_an_unknown_backend_is_a_usage_error(mine: pytest.Pytester) -> None:
    assert _run(mine, "--trueup-backend", "gpu").ret == pytest.ExitCode.USAGE_ERROR


def test_other_toml_files_are_left_alone(pytester: pytest.Pytester) -> None:
    (pytester.path / "a.toml").write_text("[tool]\nx = 1\n")
    (pytester.path / "b.toml").write_text("# not a [contract] at all\nx = 1\n")
    (pytester.path / "c.toml").write_bytes(b"\xff\xfe")
    assert _run(pytester, ".").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_contracts_named_by_option_and_ini_are_collected_beside_the_arguments(
    mine: pytest.Pytester,
) -> None:
    mine.makepyfile(test_own="def test_own(): pass")
    alone = _ids(_run(mine, "test_own.py", "--collect-only", "-q"))
    assert alone == ["test_own.py::test_own"]
    options = ("--trueup-contracts", "mine/right.toml", "--trueup-contracts", "mine/right.toml")
    ids = _ids(_run(mine, "test_own.py", *options, "--collect-only", "-q"))
    assert ids.count("mine/right.toml::my.right[python-numeric]") == 1
    assert "test_own.py::test_own" in ids
    mine.makeini("[pytest]\ntrueup_contracts = mine\n")
    ids = _ids(_run(mine, "test_own.py", "--collect-only", "-q"))
    assert "mine/wrong.toml::my.wrong[python-numeric]" in ids


def test_the_shipped_kernels_are_collected_by_name(pytester: pytest.Pytester) -> None:
    result = _run(pytester, "--trueup-contracts", "shipped", "--collect-only", "-q")
    assert any("::nl.delta_momentum[" in id and "-numeric]" in id for id in _ids(result))


def test_a_contract_seen_in_two_places_is_one_contract(mine: pytest.Pytester) -> None:
    (mine.path / "linked").symlink_to(mine.path / "mine")
    ids = _ids(_run(mine, "linked", "mine", "--collect-only", "-q"))
    assert sum("my.right[python-numeric]" in id for id in ids) == 1


def test_workers_report_to_one_summary(mine: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    words = (*_PLUGIN, "-p", "no:cacheprovider", "-n", "2", "mine/right.toml")
    result = mine.runpytest_subprocess(*words, "--trueup-contracts", "mine/right.toml", timeout=120)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["trueup: 1 contract, * launches on python"])
