"""Cadence of chunked memories: against counts by hand, and against a buffer that is simulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Row = dict[str, Any]
Tell = Callable[..., Any]

LEVEL = "layer0.cms.fast."
RECORD = r"pattern = '^layer\d+\.cms\.[^.]+\.(?P<field>[^.]+)$'" + "\n"


def cadence(**params: Any) -> str:
    """The check on cadence; a parameter given as text is TOML."""
    base = {
        "updates": '"gate_hit"', "pending": '"pending_tokens"', "flushed": '"tokens_flushed"',
        "length": '"seq_len"', "periods": "4", "flush": '"drop"', "dense": "true",
    }  # fmt: skip
    said = ", ".join(f"{k} = {v}" for k, v in {**base, **params}.items() if v is not None)
    return f'check = "cadence"\n{RECORD}params = {{ {said} }}'


def row(updates: int, pending: int, flushed: int, length: int = 9, step: int = 0) -> Row:
    counts = {"gate_hit": updates, "pending_tokens": pending, "tokens_flushed": flushed}
    return {"step": step, "seq_len": length, **{LEVEL + k: v for k, v in counts.items()}}


@pytest.mark.parametrize(
    ("params", "counts", "length"),
    [
        # nine positions: without flush floor(9/C) updates and 9 mod C pending; with it ceil(9/C)
        pytest.param({"periods": 2}, (4, 1, 0), 9, id="C2"),
        pytest.param({"periods": 2, "flush": '"flush_partial"'}, (5, 0, 1), 9, id="C2-flush"),
        pytest.param({"periods": 4}, (2, 1, 0), 9, id="C4"),
        pytest.param({"periods": 4, "flush": '"flush_partial"'}, (3, 0, 1), 9, id="C4-flush"),
        # the next-token signal is zero in the last row: a remainder of that row is nothing
        pytest.param(
            {"periods": 4, "flush": '"flush_partial"', "dense": "false"}, (2, 0, 0), 9,
            id="C4-flush-silent-row",
        ),
        pytest.param(
            {"periods": 2, "flush": '"flush_partial"', "dense": "false"}, (4, 0, 0), 9,
            id="C2-flush-silent-row",
        ),
        pytest.param(
            {"periods": 4, "flush": '"flush_partial"', "dense": "false"}, (3, 0, 2), 10,
            id="C4-flush-silent-row-of-two",
        ),
        pytest.param({"periods": 1, "dense": "false"}, (8, 0, 0), 9, id="C1-silent-row"),
        pytest.param({"periods": 1}, (9, 0, 0), 9, id="C1-dense"),
        pytest.param({"periods": 4, "cleared": "true"}, (2, 0, 0), 9, id="C4-cleared-buffer"),
        # calls of 5 and 4 positions: the last one alone, or both together
        pytest.param({"periods": 2, "call": 5}, (2, 0, 0), 9, id="last-call"),
        pytest.param({"periods": 2, "call": 5, "agg": '"sum"'}, (4, 1, 0), 9, id="sum-of-calls"),
        pytest.param(
            {"periods": 2, "call": 5, "agg": '"sum"', "flush": '"flush_partial"'}, (5, 0, 1), 9,
            id="sum-of-calls-flush",
        ),
        pytest.param({"periods": 2, "call": 3}, (1, 1, 0), 9, id="last-call-is-whole"),
        pytest.param(
            {"periods": "{ fast = 3, slow = 8 }"}, (3, 0, 0), 9, id="period-of-the-level"
        ),
        pytest.param({"length": 9, "periods": 2}, (4, 1, 0), 33, id="length-by-number"),
    ],
)  # fmt: skip
def test_counts_by_hand(
    params: dict[str, Any], counts: tuple[int, int, int], length: int, tell: Tell
) -> None:
    rule = cadence(**params)
    assert tell(rule, [row(*counts, length=length)]).status == "true"
    for place in range(3):
        wrong = list(counts)
        wrong[place] += 1
        assert tell(rule, [row(*wrong, length=length)]).status == "false"


def test_what_is_carried_is_used_by_the_next_row(tell: Tell) -> None:
    rule = cadence(flush='"carry"')
    rows = [row(2, 1, 0, step=0), row(2, 2, 0, step=1), row(2, 3, 0, step=2), row(3, 0, 0, step=3)]
    assert tell(rule, rows).status == "true"
    assert tell(rule, [rows[0], row(2, 1, 0, step=1)]).status == "false"


def test_a_last_call_that_is_never_made_says_nothing(tell: Tell) -> None:
    """Calls of 4 over 9 positions leave one: what it would have flushed stays pending."""
    rule = cadence(periods=3, call=4, flush='"flush_partial"')
    assert tell(rule, [row(1, 1, 0)]).status == "false"
    rule = cadence(periods=3, call=4, flush='"flush_partial"', unfinished="true")
    assert tell(rule, [row(1, 1, 0)]).status == "true"
    assert tell(rule, [row(1, 1, 0, length=8)]).status == "false"


@pytest.mark.parametrize(
    ("threshold", "updates", "status"),
    [
        pytest.param(None, 1, "false", id="no-gate"),
        pytest.param(0.5, 1, "true", id="gate-closed-once"),
        pytest.param(0.5, 3, "false", id="more-than-were-presented"),
        pytest.param("unrecorded", 1, "true", id="nobody-knows"),
    ],
)
def test_under_a_gate_there_may_be_fewer(
    threshold: Any, updates: int, status: str, tell: Tell
) -> None:
    config: Row = {"step": -1} if threshold == "unrecorded" else {"step": -1, "gate": threshold}
    rule = cadence(threshold='"gate"')
    assert tell(rule, [config, row(updates, 1, 0)]).status == status


@pytest.mark.parametrize(
    ("config", "status", "reason"),
    [
        pytest.param({"C.fast": 4, "flush": False}, "true", "", id="recorded"),
        pytest.param({"C.fast": 4, "flush": "drop"}, "true", "", id="by-name"),
        pytest.param({"C.fast": 4, "flush": True}, "false", "", id="another-mode"),
        pytest.param({"C.fast": 4}, "not_applied", "flush is not recorded", id="no-mode"),
        pytest.param({"flush": False}, "not_applied", "C.fast is not recorded", id="no-period"),
        pytest.param({"C.fast": 4, "flush": "often"}, "not_applied", "'often' is no", id="unknown"),
    ],
)
def test_period_and_mode_from_the_configuration(
    config: Row, status: str, reason: str, tell: Tell
) -> None:
    rule = cadence(periods='"C.{level}"', flush='"flush"')
    told = tell(rule, [{"step": -1, **config}, row(2, 1, 0)])
    assert told.status == status
    assert reason in told.reason


def simulated(calls: list[int], period: int, flush: str) -> list[tuple[int, int, int, int]]:
    """Tokens, updates, flushed and pending of each call, one position after the other."""
    out = []
    held = 0
    for length in calls:
        tokens = updates = flushed = 0
        held = held if flush == "carry" else 0
        for _ in range(length):
            held += 1
            if held == period:
                tokens, updates, held = tokens + held, updates + 1, 0
        if flush == "flush_partial" and held:
            tokens, updates, flushed, held = tokens + held, updates + 1, held, 0
        out.append((tokens, updates, flushed, held))
    return out


@given(
    length=st.integers(1, 40), period=st.integers(1, 9), call=st.integers(1, 12),
    flush=st.sampled_from(["drop", "flush_partial", "carry"]), agg=st.sampled_from(["last", "sum"]),
)  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_cadence_agrees_with_a_simulated_buffer(
    length: int, period: int, call: int, flush: str, agg: str, tell: Tell
) -> None:
    lengths = [call] * (length // call) + ([length % call] if length % call else [])
    calls = simulated(lengths, period, flush)
    updates, flushed = (
        (sum(one[i] for one in calls) if agg == "sum" else calls[-1][i]) for i in (1, 2)
    )
    summed = agg == "sum" and flush != "carry"  # what is carried on is one amount
    pending = sum(one[3] for one in calls) if summed else calls[-1][3]
    rule = cadence(periods=period, call=call, flush=f'"{flush}"', agg=f'"{agg}"')
    assert tell(rule, [row(updates, pending, flushed, length)], cut=False).status == "true"
    assert tell(rule, [row(updates + 1, pending, flushed, length)], cut=False).status == "false"


def chunked(**params: Any) -> str:
    base = {
        "tokens": '"tokens"', "updates": '"updates"', "flushed": '"flushed"',
        "pending": '"pending"',
    }  # fmt: skip
    said = ", ".join(f"{k} = {v}" for k, v in {**base, **params}.items())
    return f'check = "chunked"\n{RECORD}params = {{ {said} }}'


def chunks(*rows: tuple[int, int, int, int]) -> list[Row]:
    names = ("tokens", "updates", "flushed", "pending")
    return [
        {"step": step, **{LEVEL + n: v for n, v in zip(names, row, strict=True)}}
        for step, row in enumerate(rows)
    ]


@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=4), period=st.integers(2, 6),
    flush=st.sampled_from(["drop", "flush_partial"]),
)  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_sums_over_calls_fit_the_period(
    lengths: list[int], period: int, flush: str, tell: Tell
) -> None:
    calls = simulated(lengths, period, flush)
    total = (*(sum(one[i] for one in calls) for i in range(3)), sum(one[3] for one in calls))
    rule = chunked(agg='"sum"', periods=period)
    assert tell(rule, chunks(total), cut=False).status == "true"
    tokens, updates, flushed, pending = total
    assert tell(rule, chunks((tokens + 1, updates, flushed, pending)), cut=False).status == "false"
    if updates:
        fewer = (tokens, updates - len(lengths) - 1, flushed, pending)
        assert tell(rule, chunks(fewer), cut=False).status == "false"


def test_a_sum_is_no_single_call(tell: Tell) -> None:
    """Two calls of nine with a period of four: 2 * (2 * 4 + 1), in six updates."""
    summed = chunks((18, 6, 2, 0))
    assert tell(chunked(agg='"sum"', periods=4), summed).status == "true"
    assert tell(chunked(agg='"last"', periods=4), summed).status == "false"


def test_a_summed_period_is_learned_from_rows_without_flush(tell: Tell) -> None:
    rows = chunks((18, 6, 2, 0), (16, 4, 0, 2), (18, 5, 2, 0), (18, 4, 2, 0))
    told = tell(chunked(agg='"sum"'), rows)
    assert (told.status, told.findings[0].where.row) == ("false", 4)


@pytest.mark.parametrize(
    ("params", "counts", "status"),
    [
        pytest.param("", (9, 3), "true", id="no-period"),
        pytest.param("", (2, 3), "false", id="more-updates-than-tokens"),
        pytest.param("periods = 4", (9, 3), "true", id="a-partial-chunk-at-the-end"),
        pytest.param("periods = 4", (13, 3), "false", id="more-tokens-than-they-take"),
        pytest.param("periods = 4", (8, 3), "false", id="two-partial-chunks-in-one-call"),
        pytest.param('periods = 4, agg = "sum"', (8, 3), "true", id="two-partial-chunks-in-two"),
        pytest.param("periods = 4", (0, 0), "true", id="nothing"),
        pytest.param("periods = 4", (4, 0), "false", id="tokens-without-update"),
    ],
)
def test_bounds_without_a_key_for_flushed_tokens(
    params: str, counts: tuple[int, int], status: str, tell: Tell
) -> None:
    said = ", ".join(one for one in ('tokens = "tokens", updates = "hits"', params) if one)
    rule = f'check = "chunk_bounds"\n{RECORD}params = {{ {said} }}'
    made = {"step": 0, LEVEL + "tokens": counts[0], LEVEL + "hits": counts[1]}
    assert tell(rule, [made]).status == status


def conserved(**params: Any) -> str:
    said = "".join(f", {k} = {v}" for k, v in params.items())
    return (
        f'check = "conserved"\n{RECORD}params = {{ tokens = "used", pending = "pending", '
        f'skipped = ["gated", "masked"], length = "seq_len"{said} }}'
    )


def kept(used: int, pending: int, gated: int, masked: int, step: int = 0) -> Row:
    counts = {"used": used, "pending": pending, "gated": gated, "masked": masked}
    return {"step": step, "seq_len": 9, **{LEVEL + k: v for k, v in counts.items()}}


@pytest.mark.parametrize(
    ("params", "rows", "status"),
    [
        pytest.param({}, [kept(4, 1, 4, 0)], "true", id="gated"),
        pytest.param({}, [kept(4, 1, 0, 4)], "true", id="masked"),
        pytest.param({}, [kept(4, 1, 0, 0)], "false", id="lost"),
        pytest.param({}, [kept(8, 1, 0, 0), kept(8, 1, 0, 0, 1)], "true", id="each-call-its-own"),
        pytest.param(
            {"carry": "true"}, [kept(8, 1, 0, 0), kept(8, 2, 0, 0, 1)], "true", id="carried"
        ),
        pytest.param(
            {"carry": "true"}, [kept(8, 1, 0, 0), kept(8, 1, 0, 0, 1)], "false", id="not-carried"
        ),
        pytest.param({"cleared": "true", "periods": 4}, [kept(8, 0, 0, 0)], "true", id="cleared"),
        pytest.param({"cleared": "true", "periods": 4}, [kept(5, 0, 0, 0)], "false", id="a-chunk"),
        pytest.param({"cleared": "true", "periods": 4}, [kept(9, 1, 0, 0)], "false", id="too-many"),
    ],
)
def test_positions_are_conserved(
    params: dict[str, Any], rows: list[Row], status: str, tell: Tell
) -> None:
    assert tell(conserved(**params), rows).status == status


SEEN = (
    f'check = "within_seen"\n{RECORD}'
    'params = { tokens = "used", batch = "batch", seen = "seen"MORE }'
)


@pytest.mark.parametrize(
    ("more", "used", "status"),
    [
        pytest.param("", [10, 10], "true", id="all"),
        pytest.param("", [8, 12], "true", id="carried-over"),
        pytest.param("", [10, 11], "false", id="one-too-many"),
        pytest.param(", overlap = 1", [10, 12], "true", id="overlap"),
        pytest.param(", overlap = 1", [11, 12], "false", id="past-the-overlap"),
        pytest.param(", share = 0.5", [4, 4], "false", id="too-few"),
    ],
)
def test_a_level_uses_what_was_seen(more: str, used: list[int], status: str, tell: Tell) -> None:
    rows = [
        {"step": step, "batch": 2, "seen": 20, LEVEL + "used": one} for step, one in enumerate(used)
    ]
    assert tell(SEEN.replace("MORE", more), rows).status == status
