"""The kernels of the linear memories at sizes beyond those that their contracts try.

Three blocks of tokens in a chunk, several chunks of a sequence, keys and values of several tiles:
what reaches these paths costs seconds on the host, so one case of each is enough. A strip of
several tiles is what large weights give each block; here a launch of its own asks for it.
"""

import re
from pathlib import Path

import pytest

import trueup.kernels
from trueup.oracle.contract import load_contract
from trueup.oracle.verdict import Outcome
from trueup.oracle.verify import open_session

KERNELS = Path(trueup.kernels.__file__).resolve().parent / "nl"


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        pytest.param("projected_descent_chunk", "C=150,d_out=7,d_in=5/balanced", id="chunk-blocks"),
        pytest.param(
            "projected_descent_batch_prox", "B=130,d_out=5,d_in=9/balanced", id="prox-samples"
        ),
        pytest.param("linear_attention", "N=1,T=210,d_k=5,d_v=3/unit", id="chunks"),
        pytest.param("linear_attention", "N=1,T=70,d_k=260,d_v=70/unit", id="wide"),
        pytest.param("linear_attention_bf16", "N=2,T=70,d_k=136,d_v=72/unit", id="bf16-wide"),
    ],
)
def test_larger_sizes_are_as_right(kernel: str, case: str) -> None:
    opened = open_session(load_contract(KERNELS / f"{kernel}.toml"), "host")
    for lane in ("numeric", "order"):
        verdict = opened.run(lane, case=case)
        assert verdict.verdict is Outcome.PASS, (lane, verdict.findings, verdict.reason)
        assert verdict.launches


@pytest.mark.parametrize(
    ("kernel", "blocks", "case"),
    [
        pytest.param(
            "projected_descent_batch",
            "ceil(d_out / 128)",
            "B=40,d_out=5,d_in=150/unit",
            id="factors-stay",
        ),
        pytest.param(
            "projected_descent_batch",
            "ceil(d_out / 128)",
            "B=140,d_out=6,d_in=131/unit",
            id="factors-fetched-for-each-tile",
        ),
        pytest.param(
            "projected_descent_batch",
            "2 * ceil(d_out / 128)",
            "B=3,d_out=130,d_in=200/unit",
            id="rows-and-strips",
        ),
        pytest.param(
            "cms_level_update_tf32",
            "2 * max(ceil(h / 128), ceil(d / 128))",
            "C=37,d=70,h=150/unit",
            id="both-matrices",
        ),
    ],
)
def test_strips_of_several_tiles_are_as_right(
    tmp_path: Path, kernel: str, blocks: str, case: str
) -> None:
    text = (KERNELS / f"{kernel}.toml").read_text()
    text = text.replace(f'source = "{kernel}.cu"', f'source = "{KERNELS / kernel}.cu"')
    text = text.replace('include = [".."]', f'include = ["{KERNELS.parent}"]')
    start, last = text[: text.rindex("[[launch]]")], text[text.rindex("[[launch]]") :]
    last, count = re.subn(r"^grid = .*$", f'grid = "{blocks}"', last, flags=re.M)
    assert count == 1
    contract = tmp_path / "contract.toml"
    contract.write_text(start + last)
    opened = open_session(load_contract(contract), "host")
    for lane in ("numeric", "order"):
        verdict = opened.run(lane, case=case)
        assert verdict.verdict is Outcome.PASS, (lane, verdict.findings, verdict.reason)
        assert verdict.launches
