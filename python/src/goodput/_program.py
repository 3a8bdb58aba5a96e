"""Where the program ``goodput`` is."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from goodput._errors import MissingProgram


def program() -> str:
    """The path of $GOODPUT_BIN, of the program in this wheel, or of one on the PATH."""
    asked = os.environ.get("GOODPUT_BIN")
    if asked:
        if _is_program(Path(asked)):
            return asked
        raise MissingProgram(f"GOODPUT_BIN names `{asked}`, which is not a program")
    folders = [
        Path(sysconfig.get_path("scripts")),
        Path(sysconfig.get_path("scripts", "posix_user")),
        Path(__file__).parents[1] / "bin",  # of `pip install --target`
    ]
    for folder in folders:
        if _is_program(folder / "goodput"):
            return str(folder / "goodput")
    found = shutil.which("goodput")
    if found is None:
        raise MissingProgram(
            "the program `goodput` was not found",
            "`pip install --force-reinstall goodput-bench` brings it; GOODPUT_BIN names another",
        )
    return found


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
