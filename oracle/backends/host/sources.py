"""The source tree of one kernel: the `.cu`, the headers it includes, and what to rewrite in them.

g++ sees copies under neutral names (`trueup-source-0`, …), so that a build depends on contents
alone and every message can be led back to the user's file, whichever checkout it lies in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trueup.oracle.errors import CompileError, ContractError

TOKEN = "trueup-source-"
_TOKEN = re.compile(r"(?:[^\s:'\"]*/)?trueup-source-(\d+)")
_INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)([<"])([^>"\n]+)[>"]', re.MULTILINE)
_COMPUTED_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[A-Za-z_]", re.MULTILINE)
_OPAQUE = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
_ALIGNMENT = r"(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)"
_EXTERN_SHARED = re.compile(
    rf"\bextern\b((?:{_ALIGNMENT}|[^;(){{}}\[\]=])*?)\b(\w+)\s*\[[^\]]*\]\s*;"
)
_KERNEL = re.compile(
    r"__global__\b\s*(?:(?:__\w+__|static|inline|void|__launch_bounds__|__maxnreg__|"
    r"__cluster_dims__)\b\s*(?:\((?:[^()]|\([^()]*\))*\)\s*)?)*(\w+)\s*\("
)


@dataclass(frozen=True)
class SourceTree:
    """The files of one source, the `.cu` first, as g++ shall see them.

    `paths` are the user's, `texts` the rewritten contents. `complete` is False where an `#include`
    is computed by a macro, so that not every file it needs is known.
    """

    paths: tuple[Path, ...]
    texts: tuple[str, ...]
    complete: bool

    def localise(self, text: str) -> str:
        """Put the user's paths back where the neutral names stand."""
        return _TOKEN.sub(lambda found: str(self.paths[int(found[1])]), text)

    def is_source(self, name: str) -> bool:
        """Tell whether a compiler's file name is one of this tree."""
        return _TOKEN.fullmatch(name) is not None

    def kernels(self) -> tuple[str, ...]:
        """List the names of the `__global__` functions, as far as they are not made by macros."""
        found = [name for text in self.texts for name in _KERNEL.findall(_blank(text))]
        return tuple(dict.fromkeys(found))

    def identifiers(self) -> set[str]:
        """Collect every identifier outside comments and strings."""
        return {name for text in self.texts for name in re.findall(r"[A-Za-z_]\w*", _blank(text))}

    def shared_names(self) -> set[str]:
        """Collect the names declared on lines with `__shared__`."""
        names: set[str] = set()
        for text in self.texts:
            for found in re.finditer(r"\b__shared__\b([^;]*);", _blank(text)):
                names.update(re.findall(r"[A-Za-z_]\w*", found[1]))
        return names

    def asks_for_headers(self) -> bool:
        """Tell whether what is compiled depends on which headers exist."""
        return any("__has_include" in text for text in self.texts)

    def makes_kernels_by_macro(self) -> bool:
        """Tell whether a macro's body holds `__global__`, so that `kernels` may miss some."""
        joined = (text.replace("\\\n", " ") for text in self.texts)
        return any(re.search(r"#\s*define\b.*__global__", text) for text in joined)


def read_tree(path: Path, include: tuple[Path, ...], provided: Path) -> SourceTree:
    """Read the source and, in turn, every header it includes that is not in `provided`."""
    paths = [path]
    raw = [_read(path)]
    complete = True
    texts: list[str] = []
    for index, current in enumerate(paths):
        text = raw[index]
        complete = complete and not _COMPUTED_INCLUDE.search(text)
        for found in _INCLUDE.finditer(text):
            header = _find(found[3], found[2] == '"', current.parent, include, provided)
            if header is not None and header not in paths:
                paths.append(header)
                raw.append(_read(header))
        texts.append(_rewrite(_redirect(text, current, paths, include, provided), current))
    return SourceTree(tuple(paths), tuple(texts), complete)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ContractError(
            f"cannot read the kernel's source: {error.strerror}",
            where=str(path),
            fix="give `source` a path that exists, relative to the contract's file",
        ) from error


def _find(
    name: str, quoted: bool, beside: Path, include: tuple[Path, ...], provided: Path
) -> Path | None:
    if (provided / name).is_file():
        return None
    for folder in ((beside,) if quoted else ()) + include:
        candidate = folder / name
        if candidate.is_file():
            return Path(os.path.normpath(candidate))
    return None


def _redirect(
    text: str, current: Path, paths: list[Path], include: tuple[Path, ...], provided: Path
) -> str:
    """Make every `#include` of a file of the tree name its copy."""

    def replace(found: re.Match[str]) -> str:
        header = _find(found[3], found[2] == '"', current.parent, include, provided)
        return found[0] if header is None else f'{found[1]}"{TOKEN}{paths.index(header)}"'

    return _INCLUDE.sub(replace, text)


def _blank(text: str) -> str:
    """Blank comments and literals, keeping every position and line."""
    return _OPAQUE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _rewrite(text: str, path: Path) -> str:
    """Turn what no macro can express into C++ that says the same."""
    plain = _blank(text)
    pieces: list[str] = []
    end = 0
    for start, stop, replacement in sorted(_edits(plain)):
        lines = "\n" * (text.count("\n", start, stop) - replacement.count("\n"))
        pieces += [text[end:start], replacement, lines]
        end = stop
    rewritten = "".join([*pieces, text[end:]])
    left = re.search(r"\bextern\b[^;{}()=]*\b__shared__\b|\b__shared__\b\s*\bextern\b", plain)
    still = left and not any(start <= left.start() < stop for start, stop, _ in _edits(plain))
    if left and still:
        line = plain.count("\n", 0, left.start()) + 1
        raise CompileError(
            "cannot tell what this declares",
            where=f"{path}:{line}",
            expected="`extern __shared__ TYPE NAME[];`, one name to a declaration",
        )
    return rewritten


def _edits(plain: str) -> Iterator[tuple[int, int, str]]:
    for found in _EXTERN_SHARED.finditer(plain):
        if re.search(r"\b__shared__\b", found[1]):
            yield found.start(), found.end(), _dynamic(found, _in_function(plain, found.start()))
    for found in re.finditer(rf"\b__shared__(\s+)({_ALIGNMENT})", plain):
        if found[2].startswith("alignas") and not _declared_extern(plain, found.start()):
            yield found.start(), found.end(), f"{found[2]}{found[1]}__shared__"
    for found in re.finditer(r"\bstatic\s+(?=__shared__\b)", plain):
        yield found.start(), found.end(), ""
    for found in re.finditer(r"(?<!\()\b__noinline__\b", plain):
        yield found.start(), found.end(), "__attribute__((noinline))"


def _declared_extern(plain: str, at: int) -> bool:
    head = plain[:at]
    return "extern" in head[max(head.rfind(mark) for mark in ";{}") + 1 :]


def _dynamic(found: re.Match[str], in_function: bool) -> str:
    """Declare dynamic shared memory as a pointer to where the launch puts it."""
    kind = re.sub(_ALIGNMENT, " ", found[1])
    kind = " ".join(re.sub(r"\b__shared__\b", " ", kind).split())
    name = found[2]
    if in_function:
        return f"{kind}* {name} = reinterpret_cast<{kind}*>(::cuhost::dynamic_base);"
    return f"static {kind}* {name} = ({kind}*)::cuhost::track_dynamic((void**)&{name});"


def _in_function(plain: str, at: int) -> bool:
    """Tell whether a position lies in braces other than those of namespaces and linkage blocks."""
    kinds: list[bool] = []
    for brace in re.finditer(r"[{}]", plain[:at]):
        if brace[0] == "}":
            if kinds:
                kinds.pop()
            continue
        head = plain[: brace.start()]
        head = head[max(head.rfind(mark) for mark in ";{}") + 1 :]
        kinds.append(not re.search(r"\bnamespace\b|\bextern\s*$", head))
    return any(kinds)
