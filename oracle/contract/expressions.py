"""Expressions as the oracle reads them: each refusal is a ContractError that names its place."""

from __future__ import annotations

from collections.abc import Mapping

import trueup.contracts.expressions as arithmetic
from trueup.contracts.expressions import ExpressionError
from trueup.oracle.errors import ContractError


class Expression(arithmetic.Expression):
    """One parsed expression; `names` are the axes and scalars it reads."""

    def value(self, sizes: Mapping[str, int], where: str = "expression") -> int:
        """Evaluate to an integer; a name that is missing or a fraction raises ContractError."""
        try:
            return self.evaluate(sizes)
        except ExpressionError as error:
            raise _placed(error, where) from None


def parse(text: str | int, names: frozenset[str], where: str) -> Expression:
    """Parse `text`, allowing only `names`; anything else raises ContractError naming `where`."""
    try:
        parsed = arithmetic.parse(text)
    except ExpressionError as error:
        raise _placed(error, where) from None
    unknown = sorted(parsed.names - names)
    if unknown:
        raise ContractError(
            f"`{text}` uses {', '.join(unknown)}, which no axis or scalar is called",
            where=where,
            expected="one of " + (", ".join(sorted(names)) or "no names at all"),
            fix="add the name to [contract] axes, or correct the spelling",
        )
    return Expression(parsed.text, parsed.tree, parsed.names)


def _placed(error: ExpressionError, where: str) -> ContractError:
    return ContractError(
        error.what, where=where, got=error.got, expected=error.expected, fix=error.fix
    )
