"""The catalogue: what it holds, what it refuses, and what the package may import."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueup.reference
from trueup.reference import (
    BadDeclaration,
    BadInputs,
    Domain,
    Equation,
    Family,
    NotApplicable,
    ReferenceError_,
    Symbol,
    UnknownEquation,
    UnknownReading,
    catalogue,
    equation,
    get,
    register,
)

EQUATIONS = catalogue()
BY_ID = pytest.mark.parametrize("entry", EQUATIONS, ids=[entry.id for entry in EQUATIONS])
REAL = Domain("real")


def declare(function: Any = None, **changes: Any) -> Any:
    fields: dict[str, Any] = {
        "title": "Doubling",
        "source": "a test",
        "axes": ("n",),
        "inputs": (Symbol("x", ("n",), REAL, "a vector"),),
        "outputs": (Symbol("y", ("n",), REAL, "twice the vector"),),
        "register": False,
    }

    def double(x: Any) -> Any:
        return 2 * x

    return equation("test.double", **(fields | changes))(function or double)


def test_every_equation_is_there_in_order() -> None:
    assert [entry.id for entry in EQUATIONS] == [
        "dqn.action_encoding",
        "dqn.action_factoring",
        "dqn.adam_w",
        "dqn.adaptive_entropy",
        "dqn.advantage_noise",
        "dqn.atom_shift",
        "dqn.atom_shift_gradient",
        "dqn.atom_support",
        "dqn.attention_focus",
        "dqn.attention_summary",
        "dqn.aux_direction",
        "dqn.aux_heads",
        "dqn.aux_weight",
        "dqn.bdq_target",
        "dqn.branch_budgets",
        "dqn.c51_loss",
        "dqn.c51_projection",
        "dqn.conservative",
        "dqn.cosine_embedding",
        "dqn.counterfactual_reward",
        "dqn.cvar",
        "dqn.differential_sharpe",
        "dqn.dueling_backward",
        "dqn.dueling_forward",
        "dqn.entropy_term",
        "dqn.epsilon_greedy",
        "dqn.expected_q",
        "dqn.expected_q_backward",
        "dqn.expectile",
        "dqn.expectile_backup",
        "dqn.grad_norms",
        "dqn.greedy_action",
        "dqn.grn_backward",
        "dqn.grn_forward",
        "dqn.hold_quality",
        "dqn.horizon_value",
        "dqn.importance_weights",
        "dqn.iqn_loss",
        "dqn.iqn_target",
        "dqn.layer_norm_backward",
        "dqn.legacy_action",
        "dqn.liquid_mod",
        "dqn.liquid_step",
        "dqn.liquid_step_backward",
        "dqn.mag_concat",
        "dqn.mag_concat_backward",
        "dqn.moe_balance",
        "dqn.moe_gate_backward",
        "dqn.moe_gate_forward",
        "dqn.moe_mixture_backward",
        "dqn.moe_mixture_forward",
        "dqn.nan_flags",
        "dqn.nstep_return",
        "dqn.order_book",
        "dqn.percentile_scaling",
        "dqn.priorities",
        "dqn.q_quantiles",
        "dqn.sarsa_mixture",
        "dqn.sarsa_policy",
        "dqn.saxpy_correction",
        "dqn.selective_scan_backward",
        "dqn.selective_scan_forward",
        "dqn.sharpe",
        "dqn.sum_tree_rebuild",
        "dqn.sum_tree_sample",
        "dqn.sum_tree_update",
        "dqn.symexp",
        "dqn.symexp_backward",
        "dqn.symlog",
        "dqn.symlog_backward",
        "dqn.tanh_scaling",
        "dqn.td_priority",
        "dqn.thompson",
        "dqn.trunk_gradient",
        "dqn.vsn_backward",
        "dqn.vsn_forward",
        "isv.adaptive_clip",
        "isv.cql_alpha",
        "isv.epsilon",
        "isv.fold_warmup",
        "isv.gamma",
        "isv.grad_balancer",
        "isv.grad_norm_emas",
        "isv.kelly_cap",
        "isv.plan_threshold",
        "isv.polyak",
        "isv.reward_emas",
        "isv.rms_ema",
        "isv.soft_reset",
        "isv.state_kl",
        "isv.tau",
        "nl.adam_memory",
        "nl.associative_memory",
        "nl.cms_forward",
        "nl.cms_independent",
        "nl.cms_level",
        "nl.cms_level_update",
        "nl.cms_update",
        "nl.deep_momentum",
        "nl.deep_momentum_linear",
        "nl.delta_momentum",
        "nl.delta_momentum_rank1",
        "nl.ftrl",
        "nl.gradient_descent",
        "nl.hebbian_step",
        "nl.inner_momentum",
        "nl.linear_attention",
        "nl.m3",
        "nl.m3_slow",
        "nl.momentum",
        "nl.momentum_objective",
        "nl.muon",
        "nl.muon_library",
        "nl.newton_schulz",
        "nl.newton_schulz_bf16",
        "nl.newton_schulz_objective",
        "nl.online_writes",
        "nl.preconditioned_momentum",
        "nl.projected_descent",
        "nl.projected_descent_batch",
        "nl.projected_descent_chunk",
        "nl.projected_descent_order",
        "nl.projections",
        "nl.proximal_descent",
        "nl.self_modifying",
        "nl.self_modifying_dot",
        "nl.undamped_momentum",
    ]


def test_unknown_id_names_the_close_one() -> None:
    with pytest.raises(UnknownEquation, match=r"did you mean nl\.delta_momentum"):
        get("nl.delta_momentun")
    assert issubclass(UnknownEquation, ReferenceError_)


def test_unknown_id_without_a_close_one_points_to_the_list() -> None:
    with pytest.raises(UnknownEquation, match="trueup equations"):
        get("zzzzzzzz")


@BY_ID
def test_unknown_reading_names_the_known_ones(entry: Equation) -> None:
    with pytest.raises(UnknownReading) as caught:
        entry.form("no_such_reading")
    assert all(name in str(caught.value) for name in entry.known())


@BY_ID
@pytest.mark.parametrize("size", [1, 3])
def test_the_function_itself_refuses_an_unknown_reading(
    entry: Equation, size: int, draw: Any
) -> None:
    sizes = dict.fromkeys(entry.axes, size)
    values = draw(entry, sizes, np.random.default_rng(1))
    with pytest.raises(UnknownReading, match="no_such_reading"):
        entry.function(**values, reading="no_such_reading")


@BY_ID
def test_declaration_is_complete(entry: Equation) -> None:
    assert entry.title
    assert entry.source
    assert entry.grade
    assert entry.formula
    assert entry.families
    assert entry.default_reading in entry.readings
    assert all(symbol.meaning for symbol in entry.inputs + entry.outputs)
    assert all(family.why for family in entry.families)
    assert getattr(entry.function, "__equation__") is entry  # noqa: B009 - set by the decorator
    assert get(entry.id) is entry


@BY_ID
def test_shapes_use_declared_axes_only(entry: Equation) -> None:
    for symbol in entry.inputs + entry.outputs:
        assert symbol.axes() <= set(entry.axes)


@BY_ID
def test_docstring_holds_equation_shapes_and_every_reading(entry: Equation) -> None:
    text = entry.function.__doc__ or ""
    assert "Equation:" in text
    assert "Shapes:" in text
    if len(entry.readings) > 1:
        stems = {reading.removesuffix("_add").rstrip("0123456789") for reading in entry.readings}
        assert all(stem.removesuffix("_mean") in text for stem in stems)


@BY_ID
def test_call_refuses_missing_and_strange_inputs(entry: Equation) -> None:
    with pytest.raises(BadInputs, match="expected"):
        entry.call(entry.default_reading)
    with pytest.raises(BadInputs, match="stranger"):
        entry.call(entry.default_reading, stranger=1.0)


def test_an_id_is_taken_once() -> None:
    with pytest.raises(BadDeclaration, match="already in the catalogue"):
        register(get("nl.momentum"))


def test_a_users_function_is_declared_without_entering_the_catalogue() -> None:
    function = declare()
    declared = function.__equation__
    assert declared.id == "test.double"
    with pytest.raises(UnknownEquation):
        get("test.double")
    np.testing.assert_array_equal(declared.call("default", x=np.arange(3.0)), [0.0, 2.0, 4.0])


def test_declaring_leaves_the_function_as_it_was() -> None:
    def halve(x: Any) -> Any:
        return x / 2

    assert declare(halve) is halve


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"readings": ("a", "a")}, "twice", id="reading-twice"),
        pytest.param({"readings": ("a",), "wrong": ("a",)}, "twice", id="reading-also-wrong"),
        pytest.param({"default_reading": "b"}, "not a reading", id="default"),
        pytest.param({"forms": {"b": ()}}, "undeclared reading", id="forms"),
        pytest.param({"axes": ("k",)}, "undeclared axes", id="axis"),
        pytest.param(
            {"inputs": (Symbol("z", ("n",), REAL, ""),)}, "not a parameter", id="stranger"
        ),
        pytest.param({"inputs": ()}, "not declared", id="missing"),
        pytest.param({"readings": ("a", "b")}, "no `reading` keyword", id="no-keyword"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadDeclaration, match=message):
        declare(**changes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("complex",), "no such domain", id="kind"),
        pytest.param(("real", 2.0, 1.0), "empty range", id="range"),
        pytest.param(("index",), "names the axis", id="index-of-what"),
        pytest.param(("real", None, None, "n"), "names the axis", id="axis-of-a-real"),
    ],
)
def test_a_domain_that_makes_no_sense_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(BadDeclaration, match=message):
        Domain(*arguments)


def test_a_symbol_reads_expressions_and_the_bound_of_an_index() -> None:
    symbol = Symbol("i", ("ceil(n / 2)", "2 * k", "3"), Domain("index", axis="rows"), "indices")
    assert symbol.axes() == {"n", "k", "rows"}
    with pytest.raises(BadDeclaration, match="not an expression"):
        Symbol("x", ("n +",), REAL, "").axes()


def test_words_of_domain_and_error() -> None:
    assert str(Domain("unit", 0.5, 0.99)) == "unit, typically 0.5 to 0.99"
    assert str(Domain("index", axis="n")) == "index of n"
    error = NotApplicable("nl.x", "literal_left", "d_out = d_in")
    assert str(error) == (
        "nl.x: reading 'literal_left' does not apply to these inputs: expected d_out = d_in"
    )


@BY_ID
def test_families_keep_names_and_shapes(entry: Equation, draw: Any, sizes_of: Any) -> None:
    for number, family in enumerate(entry.families):
        assert isinstance(family, Family)
        for first in (1, 2, 5):
            sizes = {axis: first + place for place, axis in enumerate(entry.axes)}
            values = draw(entry, sizes, np.random.default_rng(number))
            before = {name: np.copy(value) for name, value in values.items()}
            changed = family.make(np.random.default_rng(number), sizes, values)
            if entry.prepare:
                changed = entry.prepare(np.random.default_rng(number), sizes, changed)
            assert set(changed) == set(before), family.name
            for symbol in entry.inputs:
                if symbol.name in changed:
                    got = np.shape(changed[symbol.name])
                    assert got == sizes_of(symbol.shape, sizes), (family.name, symbol.name)
            for name, value in before.items():
                np.testing.assert_array_equal(values[name], value, err_msg=family.name)


@BY_ID
def test_outputs_have_the_declared_shapes(entry: Equation, draw: Any, sizes_of: Any) -> None:
    sizes = {axis: 3 + place for place, axis in enumerate(entry.axes)}
    values = draw(entry, sizes, np.random.default_rng(5))
    result = entry.call(entry.default_reading, **values)
    arrays = result if isinstance(result, tuple) else (result,)
    shapes = [sizes_of(symbol.shape, sizes) for symbol in entry.outputs]
    assert [array.shape for array in arrays] == shapes


@BY_ID
def test_the_arguments_are_left_as_they_were(entry: Equation, draw: Any) -> None:
    sizes = dict.fromkeys(entry.axes, 3)
    values = draw(entry, sizes, np.random.default_rng(6))
    before = {name: np.copy(value) for name, value in values.items()}
    for reading in entry.known():
        for function in entry.form(reading):
            function(**values)
    for name, value in before.items():
        np.testing.assert_array_equal(values[name], value)


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            names.add(node.module or "")
    return names


def test_reference_imports_numpy_the_standard_library_and_itself_only() -> None:
    root = Path(trueup.reference.__file__).parent
    files = sorted(root.rglob("*.py"))
    assert len(files) > 10
    for path in files:
        for name in _imports(path):
            top = name.split(".")[0]
            allowed = top in sys.stdlib_module_names or top == "numpy"
            assert allowed or name.startswith("trueup.reference"), f"{path.name} imports {name}"
