"""Command lines: what could be run again as it stands, and what could not."""

from __future__ import annotations

import pytest

from trueup.gates.closure.shell import faults

FIT = [
    "python train.py --lr 1e-3 > out.log 2>&1",
    "python train.py 'x=[1,2]' +a.b=3 \"$HOME/data\"",
    "X=1; rm -rf $X",
    "export A=1 && cmd $A",
    "for i in 1 2; do echo $i; done",
    "while read -r line; do echo $line; done < f",
    "echo ${X:-3} ${Y=4} ${Z+5}",
    "f() { echo $1; }; f a",
    "cat <<'EOF'\nhi $Y\nEOF",
    "(cd sub && make) || exit 1",
    "[[ -f x ]] && y",
    "go test ./...",
    "cmd <config.yaml >out",
    "cp a.{txt,md} b",
    "find . -exec ls {} \\;",
    "awk '{print}' x",
    "tokenize '<mask>' \"<bos>\"",
    "mktemp -t runXXXXXX",
    "torchrun --nproc 2 train.py \\\n  --steps 3",
    "d=$(date); echo $d",
    "arr=(1 2); echo ${arr[0]} ${#arr[@]}",
    "bash -lc 'X=1; echo $X'",
    "echo 'café – “quoted”'",
]


@pytest.mark.parametrize("line", FIT)
def test_line_is_fit_to_be_run_again(line: str) -> None:
    assert faults(line) == []


@pytest.mark.parametrize(
    ("line", "kind", "got"),
    [
        ("cmd 'unterminated", "command_unparsable", "cannot be read from"),
        ('cmd "unterminated', "command_unparsable", "cannot be read from"),
        ("if true; then", "command_unparsable", "ends without fi"),
        ("cat <<EOF\nhi", "command_unparsable", "here-document"),
        ("cmd $(sub", "command_unparsable", ""),
        ("cmd )", "command_unparsable", ""),
        ("", "command_unparsable", "runs nothing"),
        ("# only a comment", "command_unparsable", "runs nothing"),
        ("FOO=bar", "command_unparsable", "runs nothing"),
        ("(" * 3000, "command_unparsable", ""),
        ("x" * 20_001, "command_unparsable", "20001 characters"),
        ("python train.py <path>", "command_placeholder", "<path>"),
        ("cmd <config> out", "command_placeholder", "<config>"),
        ("cmd --in=<run dir>", "command_placeholder", "<run dir>"),
        ("cmd '<your-token>'", "command_placeholder", "<your-token>"),
        ('cmd "<PATH>"', "command_placeholder", "<PATH>"),
        ("python train.py ...", "command_placeholder", "..."),
        ("python train.py --x=...", "command_placeholder", "--x=..."),
        ("python train.py …", "command_placeholder", "…"),
        ("cmd '…'", "command_placeholder", "…"),
        ("cmd {seed}", "command_placeholder", "{seed}"),
        ("cmd {{ seed }}", "command_placeholder", "{{ seed }}"),
        ("cmd [OPTIONS]", "command_placeholder", "[OPTIONS]"),
        ("cmd TODO", "command_placeholder", "TODO"),
        ("cmd --seed XXX", "command_placeholder", "XXX"),
        ("cmd ???", "command_placeholder", "???"),
        ("rm -rf $X", "command_variable", "$X"),
        ("rm -rf ${X}/*", "command_variable", "$X"),
        ("rm -rf ${X:?}", "command_variable", "$X"),
        ('cmd "$X"', "command_variable", "$X"),
        ("X=3 cmd $X", "command_variable", "$X"),
        ("echo $X; X=3", "command_variable", "$X"),
        ("cat <<EOF\n$Y\nEOF", "command_variable", "$Y"),
        ("cmd $(sub $Z)", "command_variable", "$Z"),
        ("echo $1", "command_variable", "$1"),
        ("bash -c 'echo $X'", "command_variable", "$X"),
        ("echo ${#arr[@]}", "command_variable", "$arr"),
        ("python train.py –lr 3", "command_characters", "EN DASH"),
        ("echo “a”", "command_characters", "LEFT DOUBLE QUOTATION MARK"),
        ("a\u200bb", "command_characters", "ZERO WIDTH SPACE"),
        ("a\u00a0b", "command_characters", "NO-BREAK SPACE"),
        ("a \u202eb", "command_characters", "RIGHT-TO-LEFT OVERRIDE"),
        ("a\x00b", "command_characters", "U+0000"),
        ("a\x1b[31m", "command_characters", "U+001B"),
    ],
)
def test_line_is_not_fit(line: str, kind: str, got: str) -> None:
    found = faults(line)
    assert [one for one in found if one.kind == kind and got in one.got], found


def test_a_value_that_the_ticket_lists_is_known() -> None:
    assert [one.got for one in faults("cmd $X $Y", {"X": "1"})] == ["$Y"]


def test_one_fault_is_told_once() -> None:
    assert [one.got for one in faults("cmd $X $X ${X}")] == ["$X"]
