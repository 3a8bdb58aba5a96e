"""Calls whose failures are exceptions."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

from goodput._errors import ERRORS, Failure, InternalError, Interrupted, SloMissed
from goodput._flags import PathLike
from goodput._process import Ended, call

if TYPE_CHECKING:
    from goodput._results import Result


def report(path: PathLike, *flags: str) -> str:
    """What ``goodput report`` prints about a result."""
    ended = call(["report", *flags, "--", os.fspath(path)])
    if ended.is_interrupted or ended.code != 0:
        raise failure(ended)
    return ended.stdout


def failure(ended: Ended, result: Result | None = None) -> Failure:
    """The exception of an exit code."""
    if ended.is_interrupted or ended.code in (Interrupted.exit_code, -signal.SIGINT):
        return Interrupted("interrupted", None, result)
    if ended.code < 0:
        return InternalError(f"goodput was ended by signal {-ended.code}", None, result)
    kind = ERRORS.get(ended.code, InternalError)
    message, hint = ended.error(), ended.after("hint: ")
    similar = ended.after("  tip: a similar argument exists: ")
    if similar is not None:
        hint = f"did you mean {similar}?"
    if message is None and result is not None:
        message, hint = result.reason(is_void=kind is not SloMissed)
    return kind(message or f"goodput ended with exit code {ended.code}", hint, result)


def parsed(text: str) -> Any:
    """The JSON that the program printed; None if it printed something else."""
    try:
        return json.loads(text)
    except ValueError:
        return None
