"""The fingerprint of a layout: the programme's golden vectors, its witnesses, its properties."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.reference.errors import BadInputs
from trueup.reference.isv import layout as isv
from trueup.reference.isv.layout import Layout, Slot, Tensor

FINGERPRINT = "LAYOUT_FINGERPRINT"
L0 = Layout((Slot(0, 1, "HEALTH"), Slot(1, 2, FINGERPRINT)), (Tensor("w_s1", 8), Tensor("b_s1", 2)))
L0_HEX = (
    "537c4845414c54487c307c310a537c4c41594f55545f46494e4745525052494e547c317c320a"
    "507c775f73317c307c380a507c625f73317c317c320a547c337c327c3235367c300a"
)


def fnv_by_numpy(data: bytes) -> int:
    """The same hash in wrapping 64-bit arithmetic, another way to get the modulus."""
    state = np.uint64(0xCBF29CE484222325)
    with np.errstate(over="ignore"):
        for byte in data:
            state = np.uint64(state ^ np.uint64(byte)) * np.uint64(0x100000001B3)
    return int(state)


def witness(k: int) -> Layout:
    return Layout((Slot(0, 1, f"S{k}"), Slot(1, 2, FINGERPRINT)))


def fixture_87() -> Layout:
    named = {
        43: ("GAMMA_DIR_EFF", 1), 44: ("GAMMA_MAG_EFF", 1), 45: ("GAMMA_ORD_EFF", 1),
        46: ("GAMMA_URG_EFF", 1), 49: ("PLAN_THRESHOLD", 1), 50: ("Q_QUANTILE", 8),
        63: ("REWARD_TRAIL_EMA", 1), 64: ("REWARD_MICRO_EMA", 1), 68: ("REWARD_BONUS_EMA", 1),
    }  # fmt: skip
    slots, at = [], 0
    while at < 85:
        name, length = named.get(at, (f"RESERVED_{at:02d}", 1))
        slots.append(Slot(at, length, name))
        at += length
    return Layout((*slots, Slot(85, 2, FINGERPRINT)))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0xCBF29CE484222325),
        (b"a", 0xAF63DC4C8601EC8C),
        (b"foobar", 0x85944171F73967E8),
    ],
)
def test_fnv_has_its_published_values(data: bytes, value: int) -> None:
    assert isv.fnv1a_64(data) == value


@pytest.mark.parametrize(
    ("layout", "length", "value"),
    [
        pytest.param(L0, 72, 0xF190210CB100D7DA, id="L0"),
        pytest.param(replace(L0, tensors=()), 50, 0x3D414B290E5B8364, id="no-tensors"),
        pytest.param(
            replace(L0, slots=(Slot(0, 1, "HEALTI"), L0.slots[1])), 72, 0x39634DFF9374A211,
            id="renamed",
        ),
        pytest.param(
            replace(L0, tensors=L0.tensors[::-1]), 72, 0x9F79F5F60895D15C, id="swapped-tensors"
        ),
        pytest.param(
            replace(L0, tensors=(Tensor("w_s1", 9), L0.tensors[1])), 72, 0x735A334A35309D39,
            id="larger-tensor",
        ),
        pytest.param(
            replace(L0, slots=(L0.slots[0], Slot(1, 1, "TAU_EFF"), Slot(2, 2, FINGERPRINT))),
            86, 0x1128D94079CDAD9B, id="appended-slot",
        ),
        pytest.param(replace(L0, align_bytes=512), 72, 0x982202F0685EAB81, id="align-512"),
        pytest.param(fixture_87(), 1536, 0xC5299961CF48BC03, id="fixture-87"),
    ],
)  # fmt: skip
def test_layouts_of_the_programme(layout: Layout, length: int, value: int) -> None:
    assert len(isv.canonical_bytes(layout)) == length
    assert isv.fingerprint(layout) == value


def test_canonical_bytes_of_l0_are_the_printed_ones() -> None:
    assert isv.canonical_bytes(L0).hex() == L0_HEX


@pytest.mark.parametrize(
    ("k", "value", "lane", "kind"),
    [
        (424, 0x82A6E9647FAE6D67, 0, "signalling"),
        (35, 0x7F9CC1F2C8C28F2B, 1, "signalling"),
        (104, 0x0FE6827AFFD339FE, 0, "quiet"),
        (64, 0x7FDEEBA1607D1675, 1, "quiet"),
        (222, 0x40489FB38009F507, 0, "subnormal"),
        (20, 0x005D88C2DB9FC73D, 1, "subnormal"),
        (137243, 0xFFBA7696FF95B303, 0, "signalling"),
        (137243, 0xFFBA7696FF95B303, 1, "signalling"),
    ],
)
def test_lane_witnesses_have_their_class(k: int, value: int, lane: int, kind: str) -> None:
    assert isv.fingerprint(witness(k)) == value
    bits = isv.to_lanes(value)[lane]
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    classes = {
        "signalling": exponent == 0xFF and 0 < fraction < 0x400000,
        "quiet": exponent == 0xFF and fraction >= 0x400000,
        "subnormal": exponent == 0 and fraction > 0,
    }
    assert classes[kind]


@given(st.integers(0, 2**64 - 1))
def test_lanes_are_the_little_endian_bytes_of_the_value(value: int) -> None:
    lanes = isv.to_lanes(value)
    assert struct.pack("<2I", *lanes) == value.to_bytes(8, "little")
    assert isv.from_lanes(*lanes) == value
    assert isv.hexadecimal(value) == "0x" + format(value, "x").rjust(16, "0")


@given(st.binary(max_size=200))
def test_fnv_equals_wrapping_arithmetic(data: bytes) -> None:
    assert isv.fnv1a_64(data) == fnv_by_numpy(data)


@pytest.mark.parametrize(
    ("numels", "align", "offsets", "total"),
    [
        ([8192, 64, 512, 8], 256, [0, 32768, 33024, 35072], 35328),
        ([1, 64, 65, 0, 3], 256, [0, 256, 512, 1024, 1024], 1280),
        ([], 256, [], 0),
        ([1], 4, [0], 4),
    ],
)
def test_padded_offsets(numels: list[int], align: int, offsets: list[int], total: int) -> None:
    assert isv.padded_offsets(numels, align) == (offsets, total)


def test_gradient_buffer_has_the_tile_padding() -> None:
    assert isv.gradient_floats(L0.tensors, 1536) == 8 + 2 + 1536


slot_names = st.from_regex(r"[A-Z][A-Z0-9_]{0,5}", fullmatch=True)
tensor_names = st.from_regex(r"[A-Za-z][A-Za-z0-9_.]{0,5}", fullmatch=True)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    at, slots = 0, []
    for name in draw(st.lists(slot_names, max_size=6, unique=True)):
        length = draw(st.integers(1, 12))
        slots.append(Slot(at, length, name))
        at += length
    sizes = st.integers(0, 2000)
    names = draw(st.lists(tensor_names, max_size=6, unique=True))
    tensors = tuple(Tensor(name, draw(sizes)) for name in names)
    pad, align = draw(st.integers(0, 3)), draw(st.sampled_from([4, 16, 256, 512]))
    return Layout((*slots, Slot(at, 2, FINGERPRINT)), tensors, align, pad)


def parsed(data: bytes) -> Layout:
    """Reads a canonical string back: that this is possible is what injective means."""
    slots, tensors = [], []
    *lines, trailer = data.decode("ascii").splitlines()
    for line in lines:
        mark, name, first, second = line.split("|")
        if mark == "S":
            slots.append(Slot(int(first), int(second), name))
        else:
            assert int(first) == len(tensors)
            tensors.append(Tensor(name, int(second)))
    _, total, count, align, pad = trailer.split("|")
    assert (int(total), int(count)) == (max(s.end for s in slots), len(tensors))
    return Layout(tuple(slots), tuple(tensors), int(align), int(pad))


@given(layouts())
def test_canonical_map_is_injective(layout: Layout) -> None:
    assert parsed(isv.canonical_bytes(layout)) == layout


def single_edits(layout: Layout) -> list[Layout]:
    """Every rename, resize, re-index, drop, append and swap by one step, and the two sizes."""
    out: list[Layout] = []
    for i, slot in enumerate(layout.slots):
        rest = (*layout.slots[:i], *layout.slots[i + 1 :])
        out.append(replace(layout, slots=rest))
        for edited in (
            replace(slot, name=slot.name + "X"),
            replace(slot, length=slot.length + 1),
            replace(slot, index=slot.index + 1),
        ):
            out.append(replace(layout, slots=(*rest, edited)))
    out.append(replace(layout, slots=(*layout.slots, Slot(layout.total, 1, "NEW"))))
    for i, tensor in enumerate(layout.tensors):
        before, after = layout.tensors[:i], layout.tensors[i + 1 :]
        out.append(replace(layout, tensors=(*before, *after)))
        for renewed in (
            replace(tensor, name=tensor.name + "x"),
            replace(tensor, numel=tensor.numel + 1),
        ):
            out.append(replace(layout, tensors=(*before, renewed, *after)))
        if after:
            out.append(replace(layout, tensors=(*before, after[0], tensor, *after[1:])))
    out.append(replace(layout, tensors=(*layout.tensors, Tensor("new", 0))))
    out.append(replace(layout, align_bytes=layout.align_bytes * 2))
    out.append(replace(layout, tile_pad_floats=layout.tile_pad_floats + 1))
    return out


@pytest.mark.parametrize("layout", [L0, fixture_87()], ids=["L0", "fixture-87"])
def test_every_single_edit_changes_the_fingerprint(layout: Layout) -> None:
    edited = single_edits(layout)
    values = [isv.fingerprint(one) for one in edited]
    assert len(set(values)) == len(edited)
    assert isv.fingerprint(layout) not in values


def test_random_edits_never_collide() -> None:
    """10,000 different layouts, 10,000 fingerprints; equal layouts are counted once."""
    rng = random.Random(20261130)
    base = replace(fixture_87(), tensors=tuple(Tensor(f"t{k}", 8 * k) for k in range(20)))
    seen: dict[bytes, int] = {}
    layout = base
    while len(seen) < 10_000:
        layout = rng.choice(single_edits(layout)) if rng.random() < 0.7 else base
        if len(layout.slots) < 4 or len(layout.tensors) < 2:
            layout = base
        text = isv.canonical_bytes(layout)
        seen[text] = isv.fnv1a_64(text)
        if len(seen) % 50 == 0:
            for other in single_edits(layout):
                other_text = isv.canonical_bytes(other)
                seen.setdefault(other_text, isv.fnv1a_64(other_text))
    assert len(set(seen.values())) == len(seen)


def test_order_of_slots_in_the_list_does_not_matter() -> None:
    assert isv.fingerprint(replace(L0, slots=L0.slots[::-1])) == isv.fingerprint(L0)


@pytest.mark.parametrize(
    "layout",
    [
        Layout((Slot(0, 1, "a"),)),
        Layout((Slot(0, 1, "A|0|1\nS|B"),)),
        Layout((Slot(0, 0, "A"),)),
        Layout((Slot(-1, 1, "A"),)),
        Layout((Slot(True, 1, "A"),)),
        Layout(L0.slots, (Tensor("1w", 1),)),
        Layout(L0.slots, (Tensor("w", -1),)),
        Layout(L0.slots, (), 0),
        Layout(L0.slots, (), 256, -1),
        Layout((Slot(0, 1, "Ａ"),)),
    ],
)
def test_what_would_break_injectivity_is_refused(layout: Layout) -> None:
    with pytest.raises(BadInputs):
        isv.canonical_bytes(layout)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_lanes_take_64_bits_only(value: int) -> None:
    with pytest.raises(BadInputs):
        isv.to_lanes(value)
    with pytest.raises(BadInputs):
        isv.from_lanes(value, 0)


def test_wrong_hashes_differ_on_the_golden_vectors() -> None:
    """The mutants of the programme: each differs from the right value on L0."""
    data = isv.canonical_bytes(L0)
    right = isv.fingerprint(L0)

    def fnv(text: bytes, basis: int = 0xCBF29CE484222325, multiply_first: bool = False) -> int:
        h = basis
        for byte in text:
            h = (h * 0x100000001B3 % 2**64) ^ byte if multiply_first else (
                (h ^ byte) * 0x100000001B3 % 2**64
            )  # fmt: skip
        return h

    slots_only = b"".join(line for line in data.splitlines(True) if line[:1] != b"P")
    no_index = b"".join(b"|".join(x.split(b"|")[:2]) + b"\n" for x in data.splitlines())
    by_name = b"".join(sorted(data.splitlines(True)))
    bare = data.replace(b"|", b"")
    mutants = {
        "FNV-1": fnv(data, multiply_first=True),
        "32-bit basis": fnv(data, basis=0x811C9DC5),
        "slots only": fnv(slots_only),
        "names without indices": fnv(no_index),
        "sorted by name": fnv(by_name),
        "no separators": fnv(bare),
        "names cut to 4": fnv(data.replace(b"HEALTH", b"HEAL")),
    }
    assert fnv(data) == right
    assert right not in mutants.values()
    assert isv.from_lanes(*isv.to_lanes(right)[::-1]) != right  # lanes in the other order


def test_without_separators_two_layouts_would_be_one() -> None:
    tail = Slot(11, 2, FINGERPRINT)
    one, other = Layout((Slot(10, 1, "A"), tail)), Layout((Slot(0, 1, "A1"), tail))
    texts = [isv.canonical_bytes(layout) for layout in (one, other)]
    assert texts[0].replace(b"|", b"") == texts[1].replace(b"|", b"")
    assert isv.fingerprint(one) != isv.fingerprint(other)
