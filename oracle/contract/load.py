"""Reads a contract file: TOML, then its JSON Schema, then what a schema cannot say."""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from trueup.oracle.backends.base import Source
from trueup.oracle.bounds import Precision
from trueup.oracle.contract.arguments import read_args, read_call, read_launches
from trueup.oracle.contract.bus import check_slots, read_bus
from trueup.oracle.contract.limits import read_limits, read_tried
from trueup.oracle.contract.model import Contract
from trueup.oracle.errors import ContractError

_LARGEST = 1 << 20  # bytes; a contract is a page of text


def load_contract(path: Path | str) -> Contract:
    """Read and check one contract.

    Raises ContractError saying file, key, what was got, what is expected and how to fix it; when
    several things are wrong, all of them.
    """
    path = Path(path)
    data = _read(path)
    document = _parse(path, data)
    _validate(path, document)
    return _build(path, data, document)


def find_contracts(paths: Iterable[Path | str]) -> list[Path]:
    """List the contract files under `paths`: a file as it is, a directory searched for them.

    In a directory every `*.toml` with a `[contract]` table counts, sorted. Raises ContractError
    for a path that does not exist and for a directory without any.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.exists():
            raise ContractError(
                "no such file or directory",
                where=str(path),
                fix="give a contract file, or a directory that holds contracts",
            )
        if path.is_file():
            found.append(path)
            continue
        inside = sorted(p for p in path.rglob("*.toml") if p.is_file() and is_contract(p))
        if not inside:
            raise ContractError(
                "no contract in this directory",
                where=str(path),
                expected="at least one *.toml file with a [contract] table",
            )
        found += inside
    return list(dict.fromkeys(found))


def is_contract(path: Path) -> bool:
    """Whether a TOML file declares itself a contract: a cheap look at its text."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_LARGEST)
    except OSError:
        return False
    return any(line.strip().startswith(b"[contract]") for line in text.splitlines())


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > _LARGEST:
            raise ContractError(
                "too large for a contract",
                where=str(path),
                got=f"{size} bytes",
                expected=f"<= {_LARGEST}",
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise ContractError("no such contract", where=str(path)) from None
    except OSError as error:
        raise ContractError(f"cannot read it: {error.strerror}", where=str(path)) from None


def _parse(path: Path, data: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ContractError(
            "not UTF-8 text",
            where=str(path),
            got=f"byte {error.start} is 0x{data[error.start]:02x}",
        ) from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        raise ContractError(f"not valid TOML: {error}", where=str(path)) from None


@cache
def _schema() -> dict[str, Any]:
    text = files("trueup.oracle.contract").joinpath("contract.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _validate(path: Path, document: Mapping[str, Any]) -> None:
    from jsonschema import Draft202012Validator

    errors = sorted(
        Draft202012Validator(_schema()).iter_errors(document), key=lambda e: list(map(str, e.path))
    )
    if errors:
        lines = [_explain(error) for error in errors]
        raise ContractError(
            "; ".join(lines), where=str(path), fix="see the contract format in docs/contracts.md"
        )


def _key(parts: Iterable[Any]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text or "(top level)"


def _explain(error: Any) -> str:
    """One readable sentence for one schema violation."""
    where = _key(error.absolute_path)
    if error.validator == "additionalProperties":
        known = sorted(error.schema.get("properties", {}))
        stray = sorted(set(error.instance) - set(known))
        hints = []
        for name in stray:
            close = difflib.get_close_matches(name, known, n=1)
            hints.append(f"`{name}`" + (f" (did you mean `{close[0]}`?)" if close else ""))
        return f"{where}: unknown key {', '.join(hints)}, expected one of {', '.join(known)}"
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"{where}: missing key {', '.join(f'`{name}`' for name in missing)}"
    if error.validator == "enum":
        allowed = ", ".join(map(str, error.validator_value))
        return f"{where}: got {error.instance!r}, expected one of {allowed}"
    if error.validator == "type":
        return f"{where}: got {error.instance!r}, expected {error.validator_value}"
    if error.validator == "pattern":
        return f"{where}: got {error.instance!r}, expected the form {error.validator_value}"
    return f"{where}: {error.message}"


def _build(path: Path, data: bytes, document: Mapping[str, Any]) -> Contract:
    head: Mapping[str, Any] = document["contract"]
    axes = tuple(head["axes"])
    bus = read_bus(path, document.get("bus"))
    check_slots(path, bus, document["arg"])
    args = read_args(path, axes, document["arg"])
    on_bus = None if bus is None else bus.name
    python = head.get("python")
    source = _source(path, head)
    if (source is None) == (python is None):
        raise ContractError(
            "say where the code is, exactly once",
            where=f"{path}: contract",
            expected="one of source, cubin, ptx, python",
        )
    precision = head.get("precision", {})
    minimum = head.get("minimum", {})
    return Contract(
        id=head["id"],
        path=path,
        reference=head["reference"],
        reading=head.get("reading"),
        source=source,
        python=python,
        axes=axes,
        limits=(limits := read_limits(path, axes, head.get("limits", {}))),
        tried=read_tried(path, axes, limits, head.get("tried", {})),
        precision=Precision(
            storage=precision.get("storage", "f32"),
            multiply=precision.get("multiply", "f32"),
            accumulate=precision.get("accumulate", "f32"),
            compute=precision.get("compute"),
            stored=dict(precision.get("stored", {})),
            rounding=head.get("rounding", "nearest"),
            approximate=tuple(head.get("approximate", ())),
        ),
        determinism=head.get("determinism", "bitwise"),
        nan=head.get("nan", "propagate"),
        alias=_pairs(path, args, head.get("alias", [])),
        backends=_backends(path, head, source, python),
        minimum_cases=minimum.get("cases", 1),
        minimum_elements=minimum.get("elements", 1),
        args=args,
        launches=read_launches(
            path, axes, args, document.get("launch"), python is not None, on_bus
        ),
        call=read_call(path, args, document.get("call"), python is not None, on_bus),
        bus=bus,
        digest=hashlib.sha256(data + (bus.digest.encode() if bus else b"")).hexdigest(),
        text=data.decode("utf-8"),
    )


def _source(path: Path, head: Mapping[str, Any]) -> Source | None:
    named = [kind for kind in ("source", "cubin", "ptx") if kind in head]
    if len(named) > 1:
        raise ContractError(
            f"{' and '.join(named)} are both given", where=f"{path}: contract", expected="one"
        )
    if not named:
        return None
    file = path.parent / head[named[0]]
    if not file.is_file():
        raise ContractError(
            "no such file",
            where=f"{path}: contract.{named[0]}",
            got=head[named[0]],
            expected="a path relative to the contract's own file",
        )
    include = tuple((path.parent / part).resolve() for part in head.get("include", ()))
    for part in include:
        if not part.is_dir():
            raise ContractError(
                "no such directory", where=f"{path}: contract.include", got=str(part)
            )
    kinds: dict[str, Literal["cu", "cubin", "ptx"]] = {
        "source": "cu",
        "cubin": "cubin",
        "ptx": "ptx",
    }
    return Source(file, kinds[named[0]], include, dict(head.get("defines", {})))


def _pairs(path: Path, args: Any, pairs: Iterable[list[str]]) -> tuple[tuple[str, str], ...]:
    buffers = {arg.name for arg in args if arg.is_buffer}
    for pair in pairs:
        for name in pair:
            if name not in buffers:
                raise ContractError(
                    f"`{name}` is no buffer of this contract", where=f"{path}: contract.alias"
                )
    return tuple((first, second) for first, second in pairs)


def _backends(
    path: Path, head: Mapping[str, Any], source: Source | None, python: str | None
) -> tuple[str, ...]:
    if python is not None:
        possible: tuple[str, ...] = ("python",)
    elif source is not None and source.kind == "cu":
        possible = ("cuda", "host")
    else:
        possible = ("cuda",)
    declared = tuple(head.get("backends", possible))
    impossible = [name for name in declared if name not in possible]
    if impossible:
        raise ContractError(
            f"this kind of kernel cannot run on {', '.join(impossible)}",
            where=f"{path}: contract.backends",
            expected=", ".join(possible),
        )
    return declared
