"""Keywords as flags of the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Union

PathLike = Union[str, "os.PathLike[str]"]
Value = Union[PathLike, int, float]
Flag = Union[Value, Sequence[Value], None]

# Flags whose values are `on` and `off`.
SWITCHES = ("canary", "metrics")


def words(flags: Mapping[str, Flag]) -> list[str]:
    """``num_requests=50`` is ``--num-requests=50``, ``from_=1`` is ``--from=1``.

    True is a bare flag; None and False leave it out; a list repeats it.
    """
    found: list[str] = []
    for name, flag in flags.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if isinstance(flag, bool) and name in SWITCHES:
            found.append(f"{option}={'on' if flag else 'off'}")
        elif flag is True:
            found.append(option)
        elif flag is not None and flag is not False:
            values = flag if isinstance(flag, (list, tuple)) else [flag]
            found += [f"{option}={_text(name, value)}" for value in values]
    return found


def _text(name: str, value: object) -> str:
    if isinstance(value, (str, Real)):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise TypeError(f"{name}: a flag takes text, a number, a path, or a list, not {value!r}")
