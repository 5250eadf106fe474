"""No bare numbers as indices into the bus: a slot moves, and the number stays."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = re.compile(rb"\[\s*-?\d")
_INDEXED = {
    "cuda": "(subscript_expression argument: (_) @base "
    "indices: (subscript_argument_list (number_literal) @index)) @whole",
    "rust": "(index_expression (_) @base (integer_literal) @index) @whole",
}


def check(unit: Unit) -> Iterator[Hit]:
    """Whole-number literals as indices into declared arrays."""
    names = unit.config.table("indices").get("names", ("isv",))
    if unit.kind == "python":
        for node in ast.walk(unit.tree) if unit.tree is not None else ():
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                base = ast.unparse(node.value).rpartition(".")[2]
                if base in names and type(node.slice.value) is int:
                    at = unit.offset(node.lineno, node.col_offset)
                    yield Hit("bare_index", at, ast.unparse(node)[:60])
        return
    for at, found in unit.matches(_INDEXED[unit.kind]):
        base = re.split(r"\.|->|::", unit.text(found["base"]))[-1].strip("()*& ")
        if base in names:
            yield Hit("bare_index", at, unit.text(found["whole"])[:60])
