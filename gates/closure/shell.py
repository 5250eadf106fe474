"""Reads a command line as a POSIX shell would, without running anything."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from trueup.gates.closure.words import hidden, placeholder, typeset

_MAX = 20_000  # characters
_ANGLE = re.compile(r"<[A-Za-z_][\w.-]*(?: [A-Za-z_][\w.-]*)*>")
_BRACES = re.compile(r"(?<![$\w}])\{[A-Za-z_]\w*\}|\{\{.*?\}\}")
_OPTIONS = re.compile(r"^\[(?:[A-Z_]+|\.\.\.|options|args)\]$")
_DOTS = re.compile(r"(?:^|=)\.\.\.$|…")
# In quotes <mask> may be meant; these words never are.
_FILL_IN = re.compile(
    r"<(?:your[\w -]*|path|file|files|dir|directory|folder|name|id|seed|run|checkpoint|ckpt|config|"
    r"value|number|output|input|user|host|commit|sha|hash|url|date|todo|tbd|fill[\w -]*|"
    r"insert[\w -]*|replace[\w -]*|some[\w -]+|the[\w -]+|path[\w -]+|"
    r"[\w-]*[ _-](?:path|dir|file|id|name|seed))>",
    re.IGNORECASE,
)
# A shell sets these itself, or every login does.
_ALWAYS = frozenset([
    "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "PATH", "SHELL", "TMPDIR", "HOSTNAME", "UID",
    "EUID", "RANDOM", "SECONDS", "LINENO", "IFS", "BASH", "BASHPID", "PPID", "OSTYPE", "HOSTTYPE",
    "REPLY", "PIPESTATUS", "?", "$", "!", "#", "-", "_", "0",
])  # fmt: skip
_DEFAULTS = re.compile(r"^\$\{[A-Za-z_]\w*:?[-=+]")
_SETS = ("for_statement", "c_style_for_statement", "select_statement", "variable_assignment")
_RUNS = ("command", "test_command", "declaration_command", "unset_command")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a command line. `kind` is a name in the catalogue."""

    kind: str
    got: str


def faults(line: str, env: Collection[str] = ()) -> list[Fault]:
    """Everything that keeps a command line from being run again as it stands."""
    found: list[Fault] = []
    if len(line) > _MAX:
        return [Fault("command_unparsable", f"{len(line)} characters, more than {_MAX}")]
    if (char := hidden(line)) is not None:
        found.append(Fault("command_characters", f"holds {char}"))
    root = _parse(line)
    if root is None:
        return [Fault("command_unparsable", "nested too deeply")]
    nodes = list(_nodes(root))
    found += _placeholders(line, nodes)
    if (typed := _typeset(nodes)) is not None:
        found.append(Fault("command_characters", typed))
    if root.has_error:
        if not found:
            found.append(Fault("command_unparsable", _error(line, nodes)))
        return found
    if not any(node.type in _RUNS for node in nodes):
        found.append(Fault("command_unparsable", "runs nothing"))
    undefined = _undefined(nodes, env)
    found += [Fault("command_variable", f"${name}") for name in dict.fromkeys(undefined)]
    for inner in _inner_lines(nodes):
        found += [one for one in faults(inner, env) if one not in found]
    return found


@functools.cache
def _parser() -> Any:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _parse(line: str) -> Any:
    """The tree; the text ends with a line break, as a shell reads it."""
    return _parser().parse(f"{line}\n".encode("utf-8", "surrogatepass")).root_node


def _nodes(root: Any) -> Iterator[Any]:
    """Every node in the order of the text, without recursion."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _text(node: Any) -> str:
    return str(node.text.decode("utf-8", "replace"))


def _error(line: str, nodes: list[Any]) -> str:
    """Where the shell would stop."""
    for node in nodes:
        if node.is_missing:
            return (
                f"ends without {node.type.replace('heredoc_end', 'the end of its here-document')}"
            )
        if node.type == "ERROR" and node.text:
            return f"cannot be read from {_text(node)[:40]!r} on"
    return f"cannot be read: {line[:40]!r}"


def _placeholders(line: str, nodes: list[Any]) -> list[Fault]:
    """Words that stand for something else, quoted or not."""
    found: list[str] = []
    quoted = [node for node in nodes if node.type in ("string", "raw_string", "ansi_c_string")]
    bare = _without(line, [*quoted, *(n for n in nodes if n.type in ("heredoc_body", "comment"))])
    found += _ANGLE.findall(bare)
    found += _BRACES.findall(bare)
    found += [word for word in bare.split() if _OPTIONS.match(word) or _DOTS.search(word)]
    for node in quoted:
        inner = _text(node)[1:-1]
        found += _FILL_IN.findall(inner) or ([inner] if inner.strip() in ("...", "…") else [])
    word = placeholder(line)
    if word is not None:
        found.append(word)
    return [Fault("command_placeholder", one) for one in dict.fromkeys(found)]


def _without(line: str, nodes: list[Any]) -> str:
    """The line with some of its parts blanked out."""
    raw = bytearray(line.encode("utf-8", "surrogatepass"))
    for node in nodes:
        end = min(node.end_byte, len(raw))
        raw[node.start_byte : end] = b"\x00" * (end - node.start_byte)
    return raw.decode("utf-8", "replace")


def _typeset(nodes: list[Any]) -> str | None:
    """Quotes and dashes that came through a word processor; in quotes they may be meant."""
    for node in nodes:
        if node.type == "word" and (found := typeset(_text(node))) is not None:
            return f"holds {found[0]} where a shell needs {found[1]}"
    return None


def _inner_lines(nodes: list[Any]) -> Iterator[str]:
    """What `bash -c '...'` is given: a command line of its own, one level down."""
    for node in nodes:
        if node.type != "command" or _text(node.children[0]) not in ("bash", "sh", "dash", "zsh"):
            continue
        words = node.children[1:]
        for flag, word in itertools.pairwise(words):
            if re.fullmatch(r"-[a-z]*c", _text(flag)) and word.type == "raw_string":
                yield _text(word)[1:-1]


def _undefined(nodes: list[Any], env: Collection[str]) -> list[str]:
    """Variables that nothing on the line gives a value.

    `SEED=3 python train.py --seed $SEED` gives $SEED no value: the shell expands it before.
    """
    known = {*_ALWAYS, *env}
    missing = []
    for node in nodes:
        sets = node.type in _SETS and not (
            node.type == "variable_assignment" and node.parent.type == "command"
        )
        if sets:
            known |= {_text(child) for child in node.children if child.type == "variable_name"}
        elif node.type == "command" and _text(node.children[0]) in ("read", "mapfile", "getopts"):
            known |= {_text(child) for child in node.children[1:]}
        elif node.type == "function_definition":
            known |= {*map(str, range(1, 10)), "@", "*"}
        elif node.type in ("simple_expansion", "expansion"):
            name = _variable(node)
            missing += [] if name is None or name in known else [name]
    return missing


def _variable(node: Any) -> str | None:
    """The variable an expansion reads; None if it brings a value for one that is not set."""
    if _DEFAULTS.match(_text(node)):
        return None
    for child in node.children:
        if child.type in ("variable_name", "special_variable_name"):
            return _text(child)
        if child.type == "subscript":
            return _text(child.children[0])
    return None
