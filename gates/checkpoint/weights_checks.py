"""Rules on safetensors files: their tensors, and what their metadata says of the run."""

from __future__ import annotations

from typing import Any

from trueup.gates.checkpoint.feature_checks import logged_texts
from trueup.gates.checkpoint.files import config_of, sidecar_of
from trueup.gates.checkpoint.form_checks import check
from trueup.gates.documents.model import Answer, DocumentCheck, Subject
from trueup.gates.documents.paths import get, parse_path, select
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule

_WEIGHTS = ("weights",)
# safetensors names, by what torch and numpy call them
_DTYPES = {
    "float64": "F64", "double": "F64", "float32": "F32", "float": "F32", "bfloat16": "BF16",
    "float16": "F16", "half": "F16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip
_FLOATS = frozenset({*_DTYPES.values(), "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4", "F6_E2M3",
                     "F6_E3M2"})  # fmt: skip


def holds_tensors(subject: Subject, rule: Rule) -> Answer:
    """There is at least one tensor, and one element in it."""
    tensors = subject.document.data["tensors"]
    if not tensors and subject.document.data["refused"]:
        return Answer(0, reason="the fields of its tensors are not fit to be read")
    if not tensors:
        return Answer(1, (subject.flaw("0 tensors"),))
    empty = [name for name, one in tensors.items() if 0 in one["shape"]]
    flaws = tuple(subject.flaw(f"shape {tensors[name]['shape']}", name) for name in empty[:200])
    return Answer(len(tensors), flaws)


def dtype_of_config(subject: Subject, rule: Rule) -> Answer:
    """Tensors have the dtype that sidecar or configuration state, or one of `also`."""
    sidecar = sidecar_of(subject)
    config = config_of(sidecar) if sidecar is not None else None
    stated = [get(sidecar.document.data, "dtype")] if sidecar is not None else []
    for way in rule.params.get("config", []):
        stated += [value for _, value in select(config.data if config else None, parse_path(way))]
    words = [one.removeprefix("torch.") for one in stated if isinstance(one, str)]
    if not words:
        return Answer(0, reason="neither sidecar nor configuration states a dtype")
    wanted = _DTYPES.get(words[0])
    if wanted is None:
        return Answer(1, (subject.flaw(f"{show(words[0])} is no dtype that is known"),))
    floats = {
        name: one["dtype"] for name, one in subject.document.data["tensors"].items()
        if one["dtype"] in _FLOATS
    }  # fmt: skip
    allowed = {wanted, *rule.params.get("also", [])}
    flaws = [
        subject.flaw(f"{dtype}, but {words[0]} is stated", name)
        for name, dtype in floats.items()
        if dtype not in allowed
    ]
    if floats and not flaws and wanted not in floats.values():
        flaws.append(subject.flaw(f"{words[0]} is stated, but no tensor is {wanted}"))
    return Answer(len(floats), tuple(flaws[:200]), "no tensor is of floating point")


def metadata_agrees(subject: Subject, rule: Rule) -> Answer:
    """What `__metadata__` says under `keys` is what the sidecar says, as text."""
    metadata, sidecar = subject.document.data["metadata"] or {}, sidecar_of(subject)
    read, flaws = 0, []
    for key in rule.params["keys"]:
        stated = get(sidecar.document.data, key) if sidecar is not None else None
        if key not in metadata or stated is None:
            continue
        read += 1
        if metadata[key] != _as_text(stated):
            name = sidecar.path.name if sidecar is not None else ""
            got = f"{show(metadata[key])}, but {name} says {show(stated)}"
            flaws.append(subject.flaw(got, "__metadata__", key))
    return Answer(read, tuple(flaws), "no key stands in __metadata__ and in the sidecar")


def _as_text(value: Any) -> str:
    """How a value is written into `__metadata__`, which holds texts only."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def metadata_states(subject: Subject, rule: Rule) -> Answer:
    """`__metadata__` has a text under each of `keys`."""
    metadata = subject.document.data["metadata"] or {}
    flaws = tuple(
        subject.flaw(f"{key}: {'empty' if key in metadata else 'absent'}", "__metadata__", key)
        for key in rule.params["keys"]
        if not metadata.get(key, "").strip()
    )
    return Answer(len(rule.params["keys"]), flaws)


def fingerprint_in_metadata(subject: Subject, rule: Rule) -> Answer:
    """The fingerprint in `__metadata__` is that of sidecar and telemetry."""
    key = rule.params["key"]
    own, sidecar = (subject.document.data["metadata"] or {}).get(key), sidecar_of(subject)
    stated = get(sidecar.document.data, key) if sidecar is not None else None
    others = logged_texts(subject, key)
    if stated is not None and sidecar is not None:
        others.insert(0, (sidecar.path.name, stated))
    if own is None:
        if stated is None:
            return Answer(0, reason=f"neither __metadata__ nor the sidecar has {key}")
        got = f"absent, but {others[0][0]} says {show(stated)}"
        return Answer(1, (subject.flaw(got, "__metadata__", key),))
    flaws = tuple(
        subject.flaw(f"{show(own)}, but {where} says {show(value)}", "__metadata__", key)
        for where, value in others
        if value != own
    )
    return Answer(len(others), flaws, f"neither sidecar nor telemetry has {key}")


CHECKS: tuple[DocumentCheck, ...] = (
    check("holds_tensors", "there is a tensor, and none is without elements", holds_tensors,
          _WEIGHTS),
    check("dtype_of_config", "tensors of floating point have the dtype of the sidecar, or of one "
          "of the ways `config` into the configuration; others only where they are in `also`",
          dtype_of_config, _WEIGHTS, _config=(list,), _also=(list,)),
    check("metadata_states", "`__metadata__` has a text under each of `keys`",
          metadata_states, _WEIGHTS, keys=(list,)),
    check("metadata_agrees", "`__metadata__` and sidecar say the same under `keys`",
          metadata_agrees, _WEIGHTS, keys=(list,)),
    check("fingerprint_in_metadata", "the fingerprint at `key` of `__metadata__` is that of the "
          "sidecar and of telemetry", fingerprint_in_metadata, _WEIGHTS, key=(str,)),
)  # fmt: skip
