"""Rules on the variants of a bundle: all are there, each measured in full, and each for itself."""

from __future__ import annotations

from trueup.gates.bundle.listed import flaw, of_manifest
from trueup.gates.bundle.manifest import Manifest, Variant
from trueup.gates.documents.model import Answer, Flaw, Pointer, Subject
from trueup.gates.evals.read import eval_of
from trueup.gates.evals.results import Eval
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule


@of_manifest
def bundle_variants(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """Every variant that is asked for is there, once."""
    wanted: list[str] = rule.params["variants"]
    names = [variant.name for variant in manifest.variants]
    there = ", ".join(names) or "none"
    flaws = [
        flaw(subject, ("variants",), f"no variant {name}; there: {there}")
        for name in wanted
        if name not in names
    ]
    flaws += [
        flaw(subject, variant.pointer, f"the variant {show(variant.name)} again")
        for index, variant in enumerate(manifest.variants)
        if variant.name in names[:index]
    ]
    return Answer(len(wanted), tuple(flaws))


@of_manifest
def bundle_evals(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """Each variant has a result of each kind that is asked for, and it is what it is listed as."""
    wanted: list[str] = rule.params["kinds"]
    if not manifest.variants:
        return Answer(0, (), "the manifest lists no variant")
    listed = {entry.path for entry in manifest.entries}
    read = _results(subject)
    flaws: list[Flaw] = []
    for variant in manifest.variants:
        missing = [kind for kind in wanted if not variant.evals.get(kind)]
        if missing:
            got = f"the variant {variant.name} has no {', '.join(missing)}"
            flaws.append(flaw(subject, variant.pointer, got))
        for kind, places in variant.evals.items():
            for path, pointer in places:
                found = _odd(variant, kind, path, listed, read)
                if found is not None:
                    got, is_sure = found
                    where = subject.document.where(*pointer)
                    flaws.append(Flaw(where, got, "false" if is_sure else "undetermined"))
    return Answer(len(manifest.variants) * len(wanted), tuple(flaws))


def _results(subject: Subject) -> dict[str, Eval]:
    """The results that were read, by their path in the bundle."""
    base = subject.path.resolve().parent
    return {
        one.path.resolve().relative_to(base).as_posix(): eval_of(one)
        for one in subject.run.subjects
        if one.kind == "eval" and one.path.resolve().is_relative_to(base)
    }


def _odd(
    variant: Variant, kind: str, path: str, listed: set[str], read: dict[str, Eval]
) -> tuple[str, bool] | None:
    """What is wrong with one result, and whether that is sure."""
    if path not in listed:
        return f"{show(path)} is not among the files", True
    if path not in read:
        return f"{show(path)} was not read as an evaluation", False
    one = read[path]
    if one.kind != kind:
        return f"{show(path)} is of the kind {one.kind or 'unknown'}", True
    if one.variant is not None and one.variant != variant.name:
        return f"{show(path)} is of the variant {show(one.variant)}", True
    return None


@of_manifest
def bundle_apart(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """No two variants share a result, or the checkpoint that was measured."""
    if len(manifest.variants) < 2:
        return Answer(0, (), "there are not two variants")
    digests = {entry.path: entry.sha256 for entry in manifest.entries}
    read = _results(subject)
    first: dict[tuple[str, str], str] = {}
    flaws: list[Flaw] = []
    seen = 0
    for variant in manifest.variants:
        for what, name, pointer in _own(variant, digests, read):
            seen += 1
            other = first.setdefault((what, name), variant.name)
            if other != variant.name:
                got = f"the {what} {show(name)} is also that of {other}"
                flaws.append(flaw(subject, pointer, got))
    return Answer(seen, tuple(flaws), "" if seen else "no variant has results that were read")


def _own(
    variant: Variant, digests: dict[str, str | None], read: dict[str, Eval]
) -> list[tuple[str, str, Pointer]]:
    """What must be a variant's alone: its files of results, and the checkpoints they name."""
    found: list[tuple[str, str, Pointer]] = []
    named: dict[str, Pointer] = {}
    for places in variant.evals.values():
        for path, pointer in places:
            digest = digests.get(path)
            if digest is not None:
                found.append(("result", digest, pointer))
            measured = read[path].checkpoints[-1:] if path in read else ()
            named.update({one.sha256: variant.pointer for one in measured if one.sha256})
    return found + [("checkpoint", digest, pointer) for digest, pointer in named.items()]
