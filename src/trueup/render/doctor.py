"""A diagnosis as a table."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueup import __version__
from trueup.render.clean import printable
from trueup.render.console import print_block

if TYPE_CHECKING:
    from trueup.diagnosis import Diagnosis


def show_diagnosis(diagnosis: Diagnosis, out: Console) -> None:
    """Print what is there, and what to do about what is not."""
    head = f"trueup {__version__}, Python {platform.python_version()}, {platform.platform()}"
    out.print(Text(head), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("what", "here", "detail", "to get it"):
        table.add_column(name, overflow="fold")
    for rows in (diagnosis.backends, diagnosis.machine):
        for row in rows:
            here = Text("yes", style="green") if row.ok else Text("no", style="yellow")
            fix = "" if row.ok else printable(row.fix)
            table.add_row(Text(printable(row.name)), here, Text(printable(row.detail)), Text(fix))
        table.add_section()
    print_block(out, table)
    if diagnosis.able:
        line = f"kernels can be verified on: {', '.join(diagnosis.able)}"
    else:
        line = "no .cu, cubin or PTX kernel can be verified here"
    out.print(Text(line), soft_wrap=True)
