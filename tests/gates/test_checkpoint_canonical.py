"""The canonical text of a configuration, by the vectors of RFC 8785."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.gates.checkpoint.canonical import NotCanonical, canonical, canonical_digest

# RFC 8785, appendix B: the bits of a double, and its text.
NUMBERS = """
0000000000000000 0
8000000000000000 0
0000000000000001 5e-324
8000000000000001 -5e-324
7fefffffffffffff 1.7976931348623157e+308
ffefffffffffffff -1.7976931348623157e+308
4340000000000000 9007199254740992
c340000000000000 -9007199254740992
4430000000000000 295147905179352830000
44b52d02c7e14af5 9.999999999999997e+22
44b52d02c7e14af6 1e+23
44b52d02c7e14af7 1.0000000000000001e+23
444b1ae4d6e2ef4e 999999999999999700000
444b1ae4d6e2ef4f 999999999999999900000
444b1ae4d6e2ef50 1e+21
3eb0c6f7a0b5ed8c 9.999999999999997e-7
3eb0c6f7a0b5ed8d 0.000001
41b3de4355555553 333333333.3333332
41b3de4355555554 333333333.33333325
41b3de4355555555 333333333.3333333
41b3de4355555556 333333333.3333334
41b3de4355555557 333333333.33333343
becbf647612f3696 -0.0000033333333333333333
43143ff3c1cb0959 1424953923781206.2
"""


@pytest.mark.parametrize("line", NUMBERS.split("\n")[1:-1])
def test_numbers_are_those_of_the_rfc(line: str) -> None:
    bits, text = line.split()
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(value) == text


def test_the_sample_of_the_rfc() -> None:
    """RFC 8785, section 3.2.2 and 3.2.3: input and canonical text."""
    value = json.loads(
        '{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
        ' "string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/",'
        ' "literals": [null, true, false]}'
    )
    assert canonical(value) == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf_16() -> None:
    """RFC 8785, section 3.2.3: a character past U+FFFF comes before U+FB33."""
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    assert list(json.loads(canonical(dict.fromkeys(keys)))) == [
        "\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33",
    ]  # fmt: skip


def test_integers_keep_all_digits() -> None:
    assert canonical([2**53 + 1, -(2**70), 1, 1.0]) == f"[{2**53 + 1},{-(2**70)},1,1]"


def test_the_digest_is_over_utf_8() -> None:
    assert canonical_digest({"å": 1}) == hashlib.sha256('{"å":1}'.encode()).hexdigest()


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", {1: 2}, {"a": {2}}, b"x", 1j])
def test_what_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(value=JSON)
def test_the_text_is_json_of_the_same_value(value: Any) -> None:
    """Doubles past 2^53 are written as whole numbers, so the text is read back as doubles."""
    read = json.loads(canonical(value), parse_int=float)
    assert read == json.loads(json.dumps(value), parse_int=float)
    assert canonical(json.loads(canonical(value))) == canonical(value)


@given(value=JSON)
def test_the_order_of_keys_does_not_matter(value: Any) -> None:
    def turned(one: Any) -> Any:
        if isinstance(one, dict):
            return {key: turned(one[key]) for key in reversed(one)}
        return [turned(inner) for inner in one] if isinstance(one, list) else one

    assert canonical(turned(value)) == canonical(value)
