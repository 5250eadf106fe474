"""Ways in which a wrong kernel once passed, or a right one failed: each stays closed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.lanes.conftest import REFERENCE, Make
from trueup.oracle.backends.base import Buffer, RunOptions
from trueup.oracle.backends.host import HostBackend
from trueup.oracle.bounds.digest import case_digest
from trueup.oracle.bounds.precision import Precision
from trueup.oracle.contract import load_contract
from trueup.oracle.contract.expressions import parse
from trueup.oracle.contract.model import Arg
from trueup.oracle.errors import ContractError
from trueup.oracle.evidence import digests, record
from trueup.oracle.inputs.sizes import boundary_sizes
from trueup.oracle.isolate import many
from trueup.oracle.lanes.special import spots
from trueup.oracle.memory import stray_writes
from trueup.oracle.verdict import Outcome
from trueup.oracle.verify import Task, open_session, verify

RIGHT = "y[...] = a * x + np.float32(1)"

CONTRACT = """\
[contract]
id = "user.rows"
reference = "ref.py:rows"
source = "rows.cu"
axes = ["m", "n"]
{extra}

[[arg]]
name = "x"
role = "in"
dtype = "f32"
shape = ["m", "n"]

[[arg]]
name = "y"
role = "out"
dtype = "f32"
shape = ["m", "n"]

[[arg]]
name = "m"
role = "axis"

[[arg]]
name = "n"
role = "axis"

[[launch]]
entry = "rows"
grid = 64
block = 128
args = ["x", "y", "m", "n"]
"""

HEAD = 'extern "C" __global__ void rows(const float* x, float* y, int m, int n) {\n'
START = "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


def rows(tmp_path: Path, body: str, extra: str = "") -> Path:
    (tmp_path / "ref.py").write_text("def rows(x):\n    return 2.0 * x\n")
    (tmp_path / "rows.cu").write_text(HEAD + body + "}\n")
    path = tmp_path / "rows.toml"
    path.write_text(CONTRACT.format(extra=extra))
    return path


@pytest.mark.parametrize(
    ("lane", "body"),
    [
        pytest.param("poison", START + "  if (i < m * n) y[i] = 2 * x[i];\n", id="one-turn-only"),
        pytest.param(
            "exact",
            START + "  for (int k = i; k < m * n; k += 64 * 128)\n"
            "    y[k] = k / n > 0 && k % n >= 2048 ? x[k] : 2 * x[k];\n",
            id="later-rows-of-long-columns",
        ),
        pytest.param(
            "exact",
            START + "  for (int k = i; k < m * n; k += 64 * 128) {\n"
            "    const unsigned short row = k / n * n;\n"
            "    y[row + k % n] = 2 * x[row + k % n];\n  }\n",
            id="sixteen-bit-index",
        ),
    ],
)
def test_sizes_reach_second_turns_long_rows_and_wide_indices(
    tmp_path: Path, lane: str, body: str
) -> None:
    opened = open_session(load_contract(rows(tmp_path, body)), HostBackend())
    assert opened.run(lane, stop_after=1).verdict is Outcome.FAIL


def test_large_least_sizes_leave_more_than_one_size(tmp_path: Path) -> None:
    extra = "limits = { m = { min = 512 }, n = { min = 512 } }"
    sizes = boundary_sizes(load_contract(rows(tmp_path, "", extra)))
    assert len(sizes) >= 3
    assert {"m": 512, "n": 513} in sizes


def test_a_launch_over_the_smaller_axis_is_tried_with_both_beyond_its_tile(tmp_path: Path) -> None:
    path = rows(tmp_path, "")
    path.write_text(path.read_text().replace("grid = 64", 'grid = "ceil(min(m, n) / 48)"'))
    assert {"m": 49, "n": 50} in boundary_sizes(load_contract(path))


def test_every_output_must_be_rejectable_by_itself(make: Make) -> None:
    """Nothing rejects a wrong output where the right one is 0 everywhere."""
    zero = REFERENCE.replace("return a * x + 1.0", "return 0.0 * (a * x)")
    verdict = open_session(make("y[...] = 0", reference=zero), "python").run("numeric")
    assert verdict.verdict is Outcome.INCONCLUSIVE
    assert "plainly wrong" in (verdict.reason or "")


def test_nan_is_tried_in_the_middle_and_at_the_end() -> None:
    assert spots(1) == []
    assert spots(2) == [1]
    assert spots(1000) == [500, 999]


def test_a_declared_range_is_never_left(make: Make) -> None:
    """The reference is a table look-up: any other index would raise."""
    reference = (
        "import numpy as np\n\ndef scale(x, a):\n    return np.sqrt(1.0 - x * x) + a * 0.0\n"
    )
    body = "y[...] = np.sqrt(np.float32(1) - x * x)"
    contract = make(body, reference=reference)
    path = contract.path
    path.write_text(path.read_text().replace('name = "x"', 'name = "x"\nrange = [-0.5, 0.5]'))
    contract = load_contract(path)
    for lane in ("numeric", "exact", "special"):
        verdict = open_session(contract, "python").run(lane)
        assert verdict.verdict is not Outcome.FAIL, verdict.findings


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        pytest.param("import sys\ndef scale(x, a):\n    sys.exit(0)\n", "SystemExit", id="exits"),
        pytest.param("import sys\nsys.exit(0)\n", "SystemExit", id="exits-at-import"),
        pytest.param("def scale(x, a):\n    return None\n", "NoneType", id="none"),
        pytest.param("def scale(x, a):\n    return x[:-1]\n", "another shape for `y`", id="shape"),
        pytest.param("def scale(x, a):\n    return 'abc'\n", "numbers", id="text"),
        pytest.param(
            "import random\ndef scale(x, a):\n    return x + random.random()\n",
            "not deterministic",
            id="random",
        ),
        pytest.param(
            "def scale(x, a):\n    while True: pass\n", "had not returned after 1 s", id="hangs"
        ),
    ],
)
def test_a_reference_that_cannot_judge_is_an_error_never_a_pass(
    make: Make, reference: str, says: str
) -> None:
    contract = make(RIGHT, reference=reference)
    verification = verify([contract], "python", lanes=["numeric"], time_limit=1.0)
    assert verification.verdict is Outcome.INCONCLUSIVE
    assert says in verification.errors[0]


def test_a_variant_that_raises_names_itself(make: Make) -> None:
    broken = REFERENCE.replace("return a * x * x + 1.0", 'raise IndexError("17")')
    verification = verify([make(RIGHT, reference=broken)], "python", lanes=["numeric"])
    assert "the variant `squared` of the reference raised IndexError: 17" in verification.errors[0]


def test_a_process_that_dies_takes_no_other_contract_with_it(make: Make, tmp_path: Path) -> None:
    good = make(RIGHT)
    folder = tmp_path / "dies"
    folder.mkdir()
    for name in ("kernel.py", "contract.toml"):
        (folder / name).write_text((tmp_path / name).read_text())
    (folder / "ref.py").write_text("import os\ndef scale(x, a):\n    os._exit(0)\n")
    text = (folder / "contract.toml").read_text().replace("user.scale", "user.dies")
    (folder / "contract.toml").write_text(text)
    bad = load_contract(folder / "contract.toml")
    results = many([bad, good], Task("python", ("exact",)), 2, None)
    assert results[0].error is not None
    assert "died" in results[0].error
    assert results[1].verdict is not None
    assert results[1].verdict.verdict is Outcome.PASS


def test_a_reference_outside_the_array_types_leaves_small_excess_open(make: Make) -> None:
    reference = (
        "import math\nimport numpy as np\n\ndef scale(x, a):\n"
        "    return np.array([1.0 + math.erf(a * v - 2.0) for v in x])\n"
    )
    body = (
        "import math\n"
        "t = (a * x - np.float32(2)).astype(np.float32)\n"
        "y[...] = [np.float32(1) + np.float32(math.erf(v)) for v in t]"
    )
    verdict = open_session(make(body, reference=reference), "python").run("numeric")
    assert verdict.verdict in (Outcome.PASS, Outcome.INCONCLUSIVE), verdict.findings
    wrong = body.replace("math.erf(v)", "math.erf(1.1 * v)")
    verdict = open_session(make(wrong, reference=reference), "python").run("numeric")
    assert verdict.verdict is Outcome.FAIL


def test_an_integer_output_with_an_unwritten_part_is_no_coherent_error(make: Make) -> None:
    reference = "import numpy as np\n\ndef scale(x, a):\n    return np.floor(x).astype(np.int64)\n"
    contract = make("y[:-1] = np.floor(x[:-1])", reference=reference, written='written = ["0:n-1"]')
    path = contract.path
    text = path.read_text()
    head, tail = text.split('name = "y"')
    path.write_text(head + 'name = "y"' + tail.replace('dtype = "f32"', 'dtype = "i32"', 1))
    limits = 'axes = ["n"]\nlimits = { n = { min = 2 } }'
    path.write_text(path.read_text().replace('axes = ["n"]', limits))
    verdict = open_session(load_contract(path), "python").run("numeric")
    assert verdict.verdict is Outcome.PASS, verdict.findings


def test_a_helper_modules_change_changes_the_key_and_the_evidence(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib
    import sys

    monkeypatch.syspath_prepend(tmp_path)
    helper = tmp_path / "a_helper_of_this_test.py"
    reference = (
        "import a_helper_of_this_test as h\n\ndef scale(x, a):\n    return a * x + h.SHIFT\n"
    )
    keys, evidence = [], []
    for shift in ("1.0", "2.0"):
        helper.write_text(f"SHIFT = {shift}\n" + "#" * int(float(shift)))
        sys.modules.pop("a_helper_of_this_test", None)
        for name in [n for n in sys.modules if n.startswith("trueup_user_reference")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        opened = open_session(make(RIGHT, reference=reference), "python")
        form = opened.session.reference.forms
        inputs = {"x": np.ones(3), "a": 0.5}
        keys.append(case_digest(form, inputs, Precision(), ("f32",), (0,)))
        evidence.append(digests(opened.session)["reference"])
    assert keys[0] != keys[1]
    assert evidence[0] != evidence[1]


def test_headers_in_angle_brackets_are_part_of_the_evidence(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "two.cuh").write_text("#define TWO 2\n")
    path = rows(tmp_path, START + "  if (i < m * n) y[i] = TWO * x[i];\n", 'include = ["inc"]')
    source = tmp_path / "rows.cu"
    source.write_text("#include <two.cuh>\n" + source.read_text())
    opened = open_session(load_contract(path), HostBackend())
    assert "include:inc/two.cuh" in digests(opened.session)


def test_evidence_says_what_was_asked_for(make: Make) -> None:
    data = record(verify([make(RIGHT)], "python", lanes=["numeric"], case="n=5/unit", seed=3))
    assert data["scope"] == {
        "backend": "python",
        "lanes": ["numeric"],
        "case": "n=5/unit",
        "seed": 3,
    }
    json.dumps(data, allow_nan=False)


def test_claims_and_unchecked_aliases_are_said(make: Make) -> None:
    extra = 'determinism = "tolerance"\nalias = [["x", "y"]]'
    verification = verify([make(RIGHT, extra=extra)], "python", lanes=["numeric"])
    (contract,) = verification.contracts
    assert "taken from the contract: determinism = tolerance" in contract.lanes[0].notes
    assert any("aliasing of x and y is not checked" in skip.reason for skip in verification.skipped)


def strided(**more: str) -> Arg:
    names = frozenset({"n"})
    return Arg(
        "y",
        "out",
        "f32",
        (parse("n", names, "y"), parse("2", names, "y")),
        (parse(more.get("stride", "3"), names, "y"), parse("1", names, "y")),
    )


def test_writes_between_the_strides_are_found() -> None:
    buffer = Buffer("y", "out", np.dtype(np.float32), (5,))
    storage = np.frombuffer(np.full(10, 0x7FF5, np.uint16).tobytes(), np.float32).copy()
    assert stray_writes(strided(), {"n": 2}, buffer, storage, RunOptions()) == []
    storage[2] = 7.0
    (fault,) = stray_writes(strided(), {"n": 2}, buffer, storage, RunOptions())
    assert "element 2" in fault.message


def test_negative_shapes_and_strides_are_refused() -> None:
    shape = (parse("n - 3", frozenset({"n"}), "x"),)
    with pytest.raises(ContractError, match="negative"):
        Arg("x", "in", "f32", shape).sizes({"n": 1})
    buffer = Buffer("y", "out", np.dtype(np.float32), (5,))
    with pytest.raises(ContractError, match="stride is negative"):
        stray_writes(strided(stride="0 - 1"), {"n": 2}, buffer, np.zeros(5), RunOptions())
