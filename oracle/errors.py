"""What the oracle raises when it cannot judge: each says what, where, got, expected and the fix."""

from __future__ import annotations


class OracleError(Exception):
    """The oracle could not judge; a command that meets one exits with code 2."""

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        got: str | None = None,
        expected: str | None = None,
        fix: str | None = None,
    ) -> None:
        """Keep the parts, so that every face of trueup can lay them out in its own way."""
        self.what, self.where, self.got, self.expected, self.fix = what, where, got, expected, fix
        super().__init__(self.message())

    def message(self) -> str:
        """One paragraph: where, what, got, expected, fix, each only if known."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        parts = [
            f"got {self.got}" if self.got is not None else "",
            f"expected {self.expected}" if self.expected is not None else "",
        ]
        detail = ", ".join(part for part in parts if part)
        lines = [f"{head}: {detail}" if detail else head]
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class ContractError(OracleError):
    """A contract is missing, malformed, or contradicts its kernel or its reference."""


class CompileError(OracleError):
    """A kernel's source does not compile; `what` is the compiler's first error at its line."""


class BackendUnavailable(OracleError):
    """This machine cannot run the backend asked for: no compiler, no driver, no package."""
