"""What a gate raises when it cannot judge: always what, where, got, expected and fix.

The border between the two ways to fail, in one place:

* *Judged and failed* (findings, exit code 1): at least one row or one complete list could be
  recognised. NaN tokens, duplicate keys, a cut-off last row, broken lines between good ones, an
  empty list, a CSV header alone, a stream cut off after some rows, a damaged group of parquet
  rows beside good ones: the file speaks, and what it says is not fit.
* *Unreadable* (`Unreadable`, exit code 2): no row could be recognised, so there is nothing to
  judge. A missing path, no permission, zero bytes, blanks only, UTF-16, text that is not JSON,
  a list cut off inside its first row, a stream without text or with more than the limits allow, a
  parquet footer that does not fit, CSV without a header or with another separator, a directory
  that holds no artifact of the profile, a URL that cannot be fetched.
"""

from __future__ import annotations


class GateError(Exception):
    """Base of every error of the gates."""

    def __init__(
        self, what: str, *, where: str = "", got: str = "", expected: str = "", fix: str = ""
    ) -> None:
        """Keep the parts for reports, and join them into one readable message."""
        where, got = (text.replace("\n", "\\n") for text in (where, got))  # a name may hold one
        self.what, self.where, self.got, self.expected, self.fix = what, where, got, expected, fix
        head = f"{where}: {what}" if where else what
        parts = [head]
        if got:
            parts.append(f"got {got}")
        if expected:
            parts.append(f"expected {expected}")
        text = ", ".join(parts)
        super().__init__(f"{text}\n  fix: {fix}" if fix else text)


class Unreadable(GateError):
    """The input holds nothing that could be judged."""


class ProfileError(GateError):
    """A profile is not well-formed, or names something that does not exist."""


class SettingsError(GateError):
    """A `trueup.toml` is not well-formed, or asks for something that is not to be had."""


class UnknownRule(GateError):
    """Nothing in the catalogue has this id or name."""
