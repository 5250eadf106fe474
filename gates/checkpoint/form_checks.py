"""Rules on a sidecar by itself: its keys, commit, libraries, random states."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any

from trueup.gates.checkpoint.files import is_sidecar
from trueup.gates.documents.common import has_no_keys
from trueup.gates.documents.model import Answer, CheckDocument, DocumentCheck, Subject
from trueup.gates.documents.paths import get, parse_path, select
from trueup.gates.documents.schema import breaks, built_in_schema
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule

NOT_ONE = "the configuration of a checkpoint, not its sidecar"
_HEX40 = re.compile(r"[0-9a-f]{40}\Z")
_VERSION = re.compile(r"v?[0-9]+(?:\.[0-9]+)*(?:[-+._]?[A-Za-z0-9]+)*\Z")


def on_sidecars(check: CheckDocument) -> CheckDocument:
    """A check that passes over configurations."""

    def run(subject: Subject, rule: Rule) -> Answer:
        return check(subject, rule) if is_sidecar(subject) else Answer(0, reason=NOT_ONE)

    return run


def fits_schema(subject: Subject, rule: Rule) -> Answer:
    """The sidecar fits its schema."""
    found = breaks(subject.document.data, rule.params["schema"])
    return Answer(1, tuple(subject.flaw(str(one), *one.pointer) for one in found))


def knows_keys(subject: Subject, rule: Rule) -> Answer:
    """Every key is one of the schema, which says what it means."""
    data, known = subject.document.data, built_in_schema(rule.params["schema"])["properties"]
    flaws = []
    for key in data if isinstance(data, dict) else ():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=2)
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            flaws.append(subject.flaw(f"the key {show(key)}{meant}", key))
    return Answer(1, tuple(flaws))


def states_keys(subject: Subject, rule: Rule) -> Answer:
    """Each of the keys is there and not null; of `a|b`, one is enough."""
    flaws = []
    for keys in rule.params["keys"]:
        found = [
            value for key in keys.split("|")
            for _, value in select(subject.document.data, parse_path(key, rule.id))
        ]  # fmt: skip
        if all(value is None for value in found):
            first, *others = keys.split("|")
            got = "null" if found else "absent"
            flaws.append(subject.flaw(", and so is ".join([got, *others]), first))
    return Answer(len(rule.params["keys"]), tuple(flaws))


def commit_is_whole(subject: Subject, rule: Rule) -> Answer:
    """A commit is written out: 40 lower-case hexadecimal digits."""
    read, flaws = 0, []
    for key in rule.params["keys"]:
        value = get(subject.document.data, key)
        if value is None:
            continue
        read += 1
        why = _not_a_commit(value)
        if why is not None:
            flaws.append(subject.flaw(f"{show(value)}: {why}", key))
    return Answer(read, tuple(flaws), f"states none of {', '.join(rule.params['keys'])}")


def _not_a_commit(value: Any) -> str | None:
    if not isinstance(value, str):
        return "no text; digits need quotes in YAML"
    if _HEX40.match(value):
        return "stands for no commit" if len(set(value)) == 1 else None
    if re.fullmatch(r"[0-9a-fA-F]{40}\s*", value):
        return "capitals or blanks"
    if re.fullmatch(r"[0-9a-f]{4,39}", value):
        return f"abbreviated to {len(value)} digits"
    if re.match(r"[0-9a-f]{7,40}\W", value):
        return "the code was not what was committed"
    return "no commit, but a name that may move"


def library_versions(subject: Subject, rule: Rule) -> Answer:
    """Each library that is asked for has a version."""
    flaws, libraries = [], get(subject.document.data, "libraries")
    wanted = list(rule.params["names"])
    if _on_gpu(subject):
        wanted += rule.params.get("with_gpu", [])
    for name in wanted:
        version = get(libraries, name)
        if version is None:
            flaws.append(subject.flaw(f"no version of {name}", "libraries", name))
        elif not isinstance(version, str) or not _VERSION.match(version):
            flaws.append(subject.flaw(f"{show(version)} is no version", "libraries", name))
    return Answer(len(wanted), tuple(flaws))


def rng_states(subject: Subject, rule: Rule) -> Answer:
    """A state of each generator is there. It is never decoded: some are pickles."""
    flaws, states = [], get(subject.document.data, "rng_states")
    wanted = list(rule.params["names"])
    if _on_gpu(subject):
        wanted += rule.params.get("with_gpu", [])
    for name in wanted:
        state = get(states, name)
        if state is None:
            flaws.append(subject.flaw(f"no state of {name}", "rng_states", name))
        elif not _holds_anything(state):
            flaws.append(subject.flaw(f"an empty state of {name}", "rng_states", name))
    return Answer(len(wanted), tuple(flaws))


def _holds_anything(state: Any) -> bool:
    """Whether there is a number or a text of some length somewhere in a state."""
    waiting = [state]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str):
            if value.strip():
                return True
        elif value is not None and not isinstance(value, bool):
            return True
    return False


def _on_gpu(subject: Subject) -> bool:
    """Whether the sidecar or the telemetry says that the run was made on a GPU."""
    device = get(subject.document.data, "device") or subject.run.config_rows().get("device")
    return isinstance(device, str) and device.startswith(("cuda", "gpu"))


def names_problem(*keys: str) -> Callable[[Any], str | None]:
    """A check of parameters: each of `keys`, where given, is a list of names."""

    def problem(params: Any) -> str | None:
        for key in keys:
            value = params.get(key)
            if value is not None and not (
                value and all(isinstance(one, str) and one for one in value)
            ):
                return f"{key} is {value!r}, expected a list of names"
        return None

    return problem


def check(
    name: str, summary: str, run: CheckDocument, on: tuple[str, ...] = ("metadata",), **params: Any
) -> DocumentCheck:
    """A check; `params` maps parameters to types, and a leading underscore says `optional`."""
    known = {key.lstrip("_"): kinds for key, kinds in params.items()}
    lists = [key for key, kinds in known.items() if kinds == (list,)]
    return DocumentCheck(
        name, on, summary, run, known,
        optional=tuple(key[1:] for key in params if key.startswith("_")),
        problem=names_problem(*lists),
    )  # fmt: skip


CHECKS: tuple[DocumentCheck, ...] = (
    check("sidecar_schema", "the sidecar fits a JSON Schema of the gates, or a table",
          on_sidecars(fits_schema), schema=(str, dict)),
    check("sidecar_keys", "every key of the sidecar is one of the `schema`",
          on_sidecars(knows_keys), schema=(str,)),
    check("sidecar_lacks", "no key of the sidecar, at any depth, matches the expression `pattern`",
          on_sidecars(has_no_keys), pattern=(str,)),
    check("sidecar_states", "each of `keys` is there; of `a|b`, one is enough",
          on_sidecars(states_keys), keys=(list,)),
    check("commit_form", "the commits at `keys` are 40 lower-case hexadecimal digits",
          on_sidecars(commit_is_whole), keys=(list,)),
    check("library_versions", "`libraries` has a version of each of `names` and, on a GPU, of "
          "those in `with_gpu`",
          on_sidecars(library_versions), names=(list,), _with_gpu=(list,)),
    check("rng_states", "`rng_states` has a state of each of `names` and, on a GPU, of `with_gpu`",
          on_sidecars(rng_states), names=(list,), _with_gpu=(list,)),
)  # fmt: skip
