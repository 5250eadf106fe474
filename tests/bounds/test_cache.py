"""Evaluations are kept on disk by a digest of everything they depend on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueup.oracle.bounds import Evaluation, Evaluator, Precision, evaluate, follow
from trueup.oracle.bounds.cache import Cache, default_folder

Array = Any
X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32).astype(np.float64)


def form(x: Array) -> Array:
    return np.exp(x).sum(axis=1)


def make(
    function: Callable[..., Any] = form,
    *,
    x: Any = X,
    precision: Precision | None = None,
    dtype: str = "f32",
    seed: int = 0,
) -> Evaluator:
    return Evaluator([function], {"x": x}, precision or Precision(), [dtype], seed=seed)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each evaluation that is really made."""
    made: list[int] = []
    original = follow.follow

    def counted(*args: Any) -> Any:
        made.append(1)
        return original(*args)

    monkeypatch.setattr(evaluate, "follow", counted)
    return made


def same(a: Evaluation, b: Evaluation) -> bool:
    def arrays(e: Evaluation) -> list[Array]:
        parts = [e.values]
        parts += [(x.value, x.allowed, x.worst, x.spread, x.flags) for o in e.outputs for x in o]
        return [array for part in parts for array in part]

    numbers = [(x.form, x.outcome, x.systematic, x.coherent) for o in a.outputs for x in o]
    others = [(x.form, x.outcome, x.systematic, x.coherent) for o in b.outputs for x in o]
    pairs = list(zip(arrays(a), arrays(b), strict=True))
    equal = all(np.array_equal(p, q, equal_nan=True) for p, q in pairs)
    kinds = all(p.dtype == q.dtype for p, q in pairs)
    return equal and kinds and numbers == others and a.notes == b.notes


def test_the_second_evaluation_is_read_back(runs: list[int]) -> None:
    first = make().evaluation()
    second = make().evaluation()
    assert len(runs) == 1
    assert same(first, second)


def test_long_doubles_survive(runs: list[int]) -> None:
    precision = Precision(storage="f64")
    first = make(precision=precision, dtype="f64").evaluation()
    second = make(precision=precision, dtype="f64").evaluation()
    assert len(runs) == 1
    assert second.outputs[0][0].value.dtype == np.longdouble
    assert same(first, second)


SCALE = 2.0


def scaled(x: Array) -> Array:
    return x * SCALE


def test_anything_that_matters_is_another_key(
    runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    make().evaluation()
    changed = X.copy()
    changed[0, 0] = np.nextafter(changed[0, 0], 9)
    make(x=changed).evaluation()
    make(seed=1).evaluation()
    make(dtype="bf16").evaluation()
    make(precision=Precision(approximate=("exp",))).evaluation()
    make(lambda x: np.exp(x).sum(axis=1) * 1.0).evaluation()
    make(functools.partial(lambda x, k: k * x.sum(axis=1), k=1.0)).evaluation()
    make(functools.partial(lambda x, k: k * x.sum(axis=1), k=2.0)).evaluation()
    make(scaled).evaluation()
    monkeypatch.setitem(scaled.__globals__, "SCALE", 3.0)
    make(scaled).evaluation()
    make().confirmed()
    assert len(runs) == 11


def test_a_closure_is_part_of_the_key(runs: list[int]) -> None:
    def closing(k: float) -> Callable[..., Any]:
        return lambda x: x * k

    make(closing(0.1)).evaluation()
    make(closing(0.2)).evaluation()
    make(closing(0.1)).evaluation()
    assert len(runs) == 2


def test_what_cannot_be_read_is_not_kept(runs: list[int], own_cache: Path) -> None:
    class Scale:
        def __init__(self) -> None:
            self.k = 2.0

    scale = Scale()
    make(lambda x: x * scale.k).evaluation()
    make(lambda x: x * scale.k).evaluation()
    assert len(runs) == 2
    assert not list(own_cache.glob("*.bounds")) if own_cache.exists() else True


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "text", "other archive"])
def test_a_damaged_file_is_evaluated_again(damage: str, runs: list[int], own_cache: Path) -> None:
    first = make().evaluation()
    (path,) = own_cache.glob("*.bounds")
    data = path.read_bytes()
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        middle = len(data) // 3
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :])
    elif damage == "text":
        path.write_text("not an archive")
    else:
        with path.open("wb") as file:
            np.savez(file, other=np.zeros(3))
    again = make().evaluation()
    assert same(first, again)
    assert len(runs) == 2
    make().evaluation()
    assert len(runs) == 2


def test_nothing_half_written_is_left(own_cache: Path) -> None:
    make().evaluation()
    assert [p.suffix for p in own_cache.iterdir()] == [".bounds"]


def test_the_folder_is_bounded(tmp_path: Path) -> None:
    evaluation = make().evaluation()
    size = sum(p.stat().st_size for p in _kept(tmp_path / "one", evaluation, 1))
    kept = _kept(tmp_path / "many", evaluation, 12, limit=5 * size)
    assert 3 <= len(kept) <= 5
    assert (tmp_path / "many" / "11.bounds") in kept


def _kept(folder: Path, evaluation: Evaluation, count: int, limit: int = 2**30) -> list[Path]:
    cache = Cache(folder, limit)
    for i in range(count):
        cache.store(str(i), evaluation)
    return sorted(folder.glob("*.bounds"))


def test_where_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path))
    assert default_folder() == tmp_path / "bounds"
    monkeypatch.setenv("TRUEUP_CACHE", "off")
    assert default_folder() is None
    monkeypatch.delenv("TRUEUP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "trueup" / "bounds"


def test_it_may_be_switched_off(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEUP_CACHE", "off")
    make().evaluation()
    make().evaluation()
    assert len(runs) == 2


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    e = Evaluator([form], {"x": X}, Precision(), ["f32"], seed=0, cache=blocked / "under")
    assert e.evaluation().samples == 32
