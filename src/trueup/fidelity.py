"""What the pytest plugin collects: a contract file, and its lanes as test items."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trueup.errors import refusals
from trueup.oracle.contract import Contract, load_contract
from trueup.oracle.errors import BackendUnavailable, OracleError
from trueup.oracle.verdict import LaneVerdict, Outcome
from trueup.oracle.verify import OpenSession, applicable_lanes, minimums, open_session
from trueup.render.clean import printable
from trueup.render.findings import Origin, alike, finding_text
from trueup.stash import hung

_OPEN_AT_ONCE = 2  # sessions keep their bounds in memory, and lanes of a contract run in a row

_Sessions = OrderedDict[tuple[Path, str], OpenSession | OracleError]
_sessions = pytest.StashKey[_Sessions]()


class LaneFailure(Exception):
    """A lane that did not pass; its text is what the command line would print."""


class ContractFile(pytest.File):
    """One contract: its lanes on each backend asked for."""

    def collect(self) -> Iterator[pytest.Item]:
        """Load the contract and list its lanes; nothing is compiled yet."""
        contract = load_contract(self.path)
        for backend, reason in _backends(contract, self.config.getoption("trueup_backend")):
            if reason is not None:
                yield LaneItem.make(self, contract, backend, None, reason)
                continue
            for lane in applicable_lanes(contract, backend):
                yield LaneItem.make(self, contract, backend, lane, None)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a malformed contract as our message alone."""
        if isinstance(excinfo.value, refusals()):
            return printable(excinfo.value)
        return super().repr_failure(excinfo)


class LaneItem(pytest.Item):
    """One lane of one contract on one backend."""

    contract: Contract
    backend: str
    lane: str | None
    reason: str | None

    @classmethod
    def make(
        cls,
        parent: ContractFile,
        contract: Contract,
        backend: str,
        lane: str | None,
        reason: str | None,
    ) -> LaneItem:
        """Make an item; `reason` says why it is there only to be counted as skipped."""
        where = backend if lane is None else f"{backend}-{lane}"
        item: LaneItem = cls.from_parent(parent, name=f"{contract.id}[{where}]")
        item.contract, item.backend, item.lane, item.reason = contract, backend, lane, reason
        item.add_marker("fidelity")
        return item

    def runtest(self) -> None:
        """Run the lane; anything but PASS and SKIPPED fails."""
        if self.lane is None:
            pytest.skip(self.reason or "")
        session = _open(self)
        verdict = session.run(self.lane)
        if getattr(session.backend, "hung", False):
            self.config.stash[hung] = True
        self._count(verdict)
        short = minimums(self.contract, [verdict])
        if verdict.verdict is Outcome.SKIPPED:
            pytest.skip(verdict.reason or "no reason given")
        if verdict.verdict is Outcome.PASS and not short:
            return
        origin = Origin(self._shown_path(), self.backend, self.lane)
        texts = [] if verdict.reason is None else [f"{verdict.verdict}: {verdict.reason}"]
        texts += [finding_text(one, origin, also) for one, also in alike(verdict.findings)]
        texts += [finding_text(finding) for finding in short]
        raise LaneFailure("\n\n".join(texts) or str(verdict.verdict))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show what was found, without a traceback; a fault of trueup itself keeps its own."""
        if isinstance(excinfo.value, (LaneFailure, *refusals())):
            return printable(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Say where the item comes from."""
        return self.path, None, self.name

    def _count(self, verdict: LaneVerdict) -> None:
        """Leave the counts in the report, which travels between processes and into JUnit."""
        self.user_properties += [
            ("trueup_contract", self.contract.id),
            ("trueup_backend", self.backend),
            ("trueup_verdict", str(verdict.verdict)),
            ("trueup_cases", verdict.cases),
            ("trueup_elements", verdict.elements),
            ("trueup_launches", verdict.launches),
        ]

    def _shown_path(self) -> str:
        """Give the contract's path as someone in the directory of the call would type it."""
        base = self.config.invocation_params.dir
        return str(self.path.relative_to(base) if self.path.is_relative_to(base) else self.path)


def _backends(contract: Contract, asked: list[str] | None) -> list[tuple[str, str | None]]:
    """Pair each backend to run on with None, and each that cannot be with the reason."""
    from trueup.oracle.backends.choose import choose

    found: dict[str, str | None] = {}
    for name in asked or ["auto"]:
        if name == "auto":
            try:
                found.setdefault(choose("auto", contract.backends).name, None)
            except BackendUnavailable:
                # Its items fail with the message of opening it: no compiler is no pass.
                found.setdefault(contract.backends[-1], None)
        elif name == "all":
            for each in contract.backends:
                found.setdefault(each, _unavailable(contract, each))
        elif name in contract.backends:
            found[name] = None
        else:
            found.setdefault(name, f"the contract runs on {', '.join(contract.backends)} only")
    return list(found.items())


def _unavailable(contract: Contract, backend: str) -> str | None:
    """Say why one of all backends is left out; one asked for by name is not."""
    from trueup.oracle.backends.choose import choose

    try:
        choose(backend, contract.backends)
    except BackendUnavailable as error:
        return error.message()
    return None


def _open(item: LaneItem) -> OpenSession:
    """Give the session of an item's contract, which its lanes share; an error is kept as well."""
    cache = item.config.stash.setdefault(_sessions, OrderedDict())
    key = (item.path, item.backend)
    if key not in cache:
        try:
            cache[key] = open_session(item.contract, item.backend)
        except OracleError as error:
            cache[key] = error
        while len(cache) > _OPEN_AT_ONCE:
            cache.popitem(last=False)
    cache.move_to_end(key)
    opened = cache[key]
    if isinstance(opened, OracleError):
        raise opened
    return opened
