"""Finds out, in words a user can act on, whether the entries asked for are kernels at all."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from trueup.oracle.backends.host.sources import SourceTree
from trueup.oracle.errors import ContractError


def base_name(entry: str) -> str:
    """Return the function's own name in `space::kernel<float, 4>`."""
    return re.split(r"<", entry, maxsplit=1)[0].strip().split("::")[-1].strip()


def check_entries(tree: SourceTree, entries: Sequence[str]) -> None:
    """Raise ContractError for an entry that cannot be in the source, before any compilation."""
    kernels = tree.kernels()
    for entry in entries:
        name = base_name(entry)
        if name in kernels:
            continue
        if tree.makes_kernels_by_macro():
            # Perhaps pasted together by a macro: the compiler will tell.
            continue
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise _missing(tree, entry, "is no name of a kernel")
        known = name in tree.identifiers()
        raise _missing(tree, entry, "is no __global__ function" if known else "is not in it")


def refused_entry(tree: SourceTree, entry: str, output: str) -> ContractError:
    """Explain an entry at which the compiler failed."""
    first = re.search(r"error: (.*)", output)
    said = tree.localise(first[1]) if first else "no message"
    if re.search(r"was not declared|has not been declared|is not a member", said):
        return _missing(tree, entry, "is not in it")
    if re.search(r"overloaded function|no match", said):
        given = "do the template arguments fit?" if "<" in entry else "are they missing?"
        return _missing(tree, entry, f"does not name one kernel; template arguments: {given}")
    return _missing(tree, entry, f"does not name a kernel ({said})")


def _missing(tree: SourceTree, entry: str, why: str) -> ContractError:
    kernels = tree.kernels()
    close = difflib.get_close_matches(base_name(entry), kernels, n=3, cutoff=0.5)
    fix = f"did you mean {' or '.join(close)}?" if close else "name one of its kernels"
    listed = ", ".join(kernels) if kernels else "no __global__ function"
    return ContractError(
        f"the entry `{entry}` {why}",
        where=str(tree.paths[0]),
        expected=f"one of the kernels there: {listed}",
        fix=fix,
    )
