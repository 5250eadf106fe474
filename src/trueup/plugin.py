"""The pytest plugin: contracts become tests, one for each lane and backend, marked `fidelity`.

Every pytest run of everyone who installed trueup loads this module, so it imports nothing heavy;
what collects and runs contracts is imported when the first contract is met.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trueup.stash import hung

if TYPE_CHECKING:
    from trueup.fidelity import ContractFile

_BACKENDS = ("auto", "cuda", "host", "python", "all")
_LOOKED_AT = 1 << 20  # bytes; a contract is a page of text
_COUNTS = ("cases", "elements", "launches")
_seen = pytest.StashKey[dict[str, Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; `--trueup-contracts shipped` names the kernels that ship with trueup."""
    group = parser.getgroup("trueup", "kernels against their equations")
    group.addoption(
        "--trueup-backend",
        action="append",
        choices=_BACKENDS,
        metavar="NAME",
        help="where kernels run: auto (cuda if a device answers, else host), cuda, host, python, "
        "or all that a contract allows; may be given several times",
    )
    group.addoption(
        "--trueup-contracts",
        action="append",
        default=[],
        metavar="PATH",
        help="collect the contracts of this file or directory as well; `shipped` means trueup's "
        "own kernels; may be given several times",
    )
    parser.addini(
        "trueup_contracts",
        "files and directories with contracts to collect, relative to the root directory",
        type="args",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and add the contracts asked for to what is collected."""
    config.addinivalue_line("markers", "fidelity: holds a kernel or rule to its reference")
    config.stash[_seen] = {}
    config.pluginmanager.register(Summary(), "trueup-summary")
    asked = [(path, config.invocation_params.dir) for path in config.getoption("trueup_contracts")]
    asked += [(path, config.rootpath) for path in config.getini("trueup_contracts")]
    for path, base in asked:
        absolute = str(_contracts(path, base))
        if absolute not in config.args:
            config.args.append(absolute)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ContractFile | None:
    """Collect a TOML file that declares a contract; every other file is left alone."""
    if file_path.suffix != ".toml" or not _mentions_contract(file_path):
        return None
    from trueup.fidelity import ContractFile
    from trueup.oracle.contract import is_contract

    if not is_contract(file_path):
        return None
    # An editable install shows the same file in two places; it is one contract all the same.
    seen = parent.config.stash[_seen]
    if seen.setdefault(os.path.realpath(file_path), file_path) != file_path:
        return None
    collector: ContractFile = ContractFile.from_parent(parent, path=file_path)
    return collector


class Summary:
    """Adds up what the lanes counted, from their reports, wherever they ran."""

    def __init__(self) -> None:
        """Start from nothing."""
        self.contracts: set[str] = set()
        self.backends: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.status = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read a lane's counts off its report."""
        known = dict(report.user_properties)
        if report.when != "call" or "trueup_contract" not in known:
            return
        self.contracts.add(str(known["trueup_contract"]))
        self.backends.add(str(known["trueup_backend"]))
        self.counts.update({name: int(str(known[f"trueup_{name}"])) for name in _COUNTS})

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Keep the exit status, for a process that has to leave early."""
        self.status = int(exitstatus)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Leave at once where a kernel still holds the device: an orderly exit would wait."""
        if config.stash.get(hung, False):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say in one line what was checked, and what kind of evidence it is."""
        if not self.contracts:
            return
        from trueup.render.counts import checked

        cases, elements, launches = (self.counts[name] for name in _COUNTS)
        line = checked(len(self.contracts), cases, elements, launches, self.backends)
        terminalreporter.write_line(f"trueup: {line}")


def _contracts(path: str, base: Path) -> Path:
    """Give the place that an option or ini entry names."""
    if path == "shipped":
        from trueup.shipped import shipped_kernels

        return shipped_kernels()
    return (base / path).absolute()


def _mentions_contract(path: Path) -> bool:
    """Look cheaply: most TOML files are no contracts, and need none of trueup's imports."""
    try:
        with path.open("rb") as stream:
            return b"[contract]" in stream.read(_LOOKED_AT)
    except OSError:
        return False
