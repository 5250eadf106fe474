"""Makes a bundle: copies beside the place first, the manifest last, then one rename.

Until that rename nothing stands under the bundle's name. What an interrupted run left beside it is
continued: each file already there is kept only if its digest is that of its source.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueup.gates.bundle.copying import Copied, Copier, locked
from trueup.gates.bundle.errors import BundleError, writing
from trueup.gates.bundle.manifest import NAME, SCHEMA
from trueup.gates.bundle.plan import Plan, plan_bundle, variant_of
from trueup.gates.evals.read import read_eval

Progress = Callable[[int, int], None]  # bytes done, bytes in all


@dataclass(frozen=True, slots=True)
class Bundle:
    """What was made."""

    path: Path
    files: int
    bytes: int
    kept: int  # files that an interrupted run had copied already
    was_there: bool  # the same bundle stood there before
    variants: dict[str, tuple[str, ...]]  # the kinds of results of each
    missing: tuple[str, ...]  # variants that the profile asks for, and that have no result
    left_out: int


def make_bundle(
    sources: Sequence[Path],
    out: Path,
    profile: str = "nl",
    *,
    also: Sequence[str] = (),
    progress: Progress | None = None,
) -> Bundle:
    """Bundle the artifacts of run directories under `out`. Raises `BundleError`.

    The same files give the same bundle, byte for byte.
    """
    plan = plan_bundle(sources, profile, also)
    out = Path(os.path.abspath(out))
    _apart(sources, out)
    if out.is_dir() and any(out.iterdir()):
        return _existing(plan, out, progress)
    if os.path.lexists(out) and (out.is_symlink() or not out.is_dir()):
        raise BundleError("is there already, and no directory", where=str(out))
    partial = out.parent / f".{out.name}.partial"
    with writing(out):
        partial.mkdir(parents=True, exist_ok=True)
    with locked(partial):
        copier = Copier(plan, partial, progress)
        _room(copier, out)
        copied = copier.copy()
        copier.prune()
        text, variants = manifest_text(plan, copied)
        copier.put(NAME, text)
        with writing(out):
            copier.settle()
            os.rename(partial, out)
    return _told(plan, out, copied, variants, was_there=False)


def manifest_text(plan: Plan, copied: dict[str, Copied]) -> tuple[bytes, dict[str, dict[str, Any]]]:
    """The manifest, and the results of each variant by kind."""
    variants = _variants(plan)
    files = [
        {
            "path": item.path,
            "sha256": copied[item.path].sha256,
            "size": copied[item.path].size,
            "kind": item.kind,
        }
        for item in plan.items
    ]
    data = {
        "schema": SCHEMA,
        "profile": plan.profile.id,
        "total": {"files": len(files), "bytes": sum(one.size for one in copied.values())},
        "variants": [{"name": name, "evals": evals} for name, evals in sorted(variants.items())],
        "files": files,
    }
    text = json.dumps(data, indent=1, ensure_ascii=True) + "\n"
    return text.encode("ascii"), variants


def _variants(plan: Plan) -> dict[str, dict[str, Any]]:
    """Name -> kind -> paths of results, all in order."""
    from trueup.gates.errors import Unreadable
    from trueup.gates.read.documents.read import load_document

    found: dict[str, dict[str, Any]] = {}
    for item in plan.items:
        if item.kind != "eval":
            continue
        try:
            document, _ = load_document(item.source, item.path, "eval")
        except Unreadable:
            continue  # the gate says so
        read = read_eval(document.data)
        name = variant_of(item.path, read.variant, plan.variants)
        if name is not None and read.kind is not None:
            found.setdefault(name, {}).setdefault(read.kind, []).append(item.path)
    return {name: dict(sorted(evals.items())) for name, evals in found.items()}


def _apart(sources: Sequence[Path], out: Path) -> None:
    """A bundle inside what it is made of would be part of the next one."""
    target = Path(os.path.realpath(out))
    for source in sources:
        root = Path(os.path.realpath(source))
        if target.is_relative_to(root) or root.is_relative_to(target):
            raise BundleError(
                "the bundle and the run directory lie in each other", where=str(out),
                got=str(source), fix="give a path outside the run directory",
            )  # fmt: skip


def _room(copier: Copier, out: Path) -> None:
    """Refuse before writing where there is no room for the rest."""
    needed, free = copier.missing_bytes(), shutil.disk_usage(copier.partial).free
    if needed > free:
        raise BundleError(
            "has no room for the bundle", where=str(out.parent), got=f"{free:,} bytes free",
            expected=f"{needed:,}", fix="free some space, then run the same command again",
        )  # fmt: skip


def _existing(plan: Plan, out: Path, progress: Progress | None) -> Bundle:
    """The same bundle may stand there already; anything else is left as it is."""
    copier = Copier(plan, out, progress)
    copied = copier.compare()
    if copied is not None:
        text, variants = manifest_text(plan, copied)
        here = out / NAME
        same = here.is_file() and here.stat().st_size == len(text) and here.read_bytes() == text
        if same and not copier.others():
            return _told(plan, out, copied, variants, was_there=True)
    raise BundleError(
        "is there already, and is not this bundle",
        where=str(out),
        fix="give another path, or remove it",
    )


def _told(
    plan: Plan,
    out: Path,
    copied: dict[str, Copied],
    variants: dict[str, dict[str, Any]],
    *,
    was_there: bool,
) -> Bundle:
    return Bundle(
        out, len(copied), sum(one.size for one in copied.values()),
        sum(one.kept for one in copied.values()), was_there,
        {name: tuple(evals) for name, evals in sorted(variants.items())},
        tuple(name for name in plan.variants if name not in variants), plan.left_out,
    )  # fmt: skip
