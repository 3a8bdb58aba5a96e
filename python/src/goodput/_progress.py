"""Lines of the program while it runs: on stderr, or in one place of a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

# Lines that a notebook shows at most.
LINES = 8


def printer() -> Callable[[str], None]:
    """What shows a line here."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is not None:
        return NotebookLines().show
    return lambda line: print(line, file=sys.stderr, flush=True)


class NotebookLines:
    """The newest lines, in an output that is updated in place."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._handle: Any = None

    def show(self, line: str) -> None:
        if not line:
            return
        self._lines = [*self._lines, line][-LINES:]
        data = {"text/plain": "\n".join(self._lines)}
        if self._handle is None:
            display = sys.modules["IPython"].display
            self._handle = display.display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
