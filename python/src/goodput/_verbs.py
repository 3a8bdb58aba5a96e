"""The verbs: ``run``, ``sweep``, ``compare``, ``open``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast, overload

from goodput import _calls, _flags, _progress
from goodput._errors import SloMissed, UsageError, VoidResult
from goodput._flags import Flag, PathLike
from goodput._process import call
from goodput._results import Comparison, Repeats, Result, Run, Sweep, Sweeps, typed


@overload
def run(
    target: str | None = ...,
    *,
    repeat: None = ...,
    check: bool = ...,
    quiet: bool = ...,
    **flags: Flag,
) -> Run: ...
@overload
def run(
    target: str | None = ...,
    *,
    repeat: int,
    check: bool = ...,
    quiet: bool = ...,
    **flags: Flag,
) -> Repeats: ...
def run(
    target: str | None = None,
    *,
    repeat: int | None = None,
    check: bool = False,
    quiet: bool = False,
    **flags: Flag,
) -> Run | Repeats:
    """Measures one load level; ``repeat=N`` measures it N times.

    Keywords are the flags of ``goodput run`` with underscores: ``num_requests=50`` is
    ``--num-requests 50``, ``stream=True`` a bare ``--stream``; a list repeats a flag, and None and
    False leave it out. With ``check``, a missed SLO and a void result are exceptions. With
    ``quiet``, progress is not shown.
    """
    result = _measure("run", _given(target), {"repeat": repeat, **flags}, check, quiet)
    return cast("Run | Repeats", result)


@overload
def sweep(
    target: str | None = ...,
    *,
    vary: None = ...,
    check: bool = ...,
    quiet: bool = ...,
    **flags: Flag,
) -> Sweep: ...
@overload
def sweep(
    target: str | None = ...,
    *,
    vary: str | Sequence[str],
    check: bool = ...,
    quiet: bool = ...,
    **flags: Flag,
) -> Sweeps: ...
def sweep(
    target: str | None = None,
    *,
    vary: str | Sequence[str] | None = None,
    check: bool = False,
    quiet: bool = False,
    **flags: Flag,
) -> Sweep | Sweeps:
    """Finds the highest load that keeps the SLO; ``vary="isl=512,2048"`` does so for each value.

    Keywords are the flags of ``goodput sweep``, as in ``run``; ``from_=1`` is ``--from 1``.
    """
    result = _measure("sweep", _given(target), {"vary": vary, **flags}, check, quiet)
    return cast("Sweep | Sweeps", result)


def compare(
    *targets: PathLike, check: bool = False, quiet: bool = False, **flags: Flag
) -> Comparison:
    """Compares targets under the same load, or saved results.

    Keywords are the flags of ``goodput compare``, as in ``run``. With ``check``, a worse candidate
    or a gate that fails is ``SloMissed``, and what is inconclusive ``VoidResult``.
    """
    return cast("Comparison", _measure("compare", targets, flags, check, quiet))


def open(path: PathLike) -> Result:
    """Reads a result that was saved, by whatever it holds; of another tool's file, the figures."""
    printed = _calls.parsed(_calls.report(path, "--json"))
    folder = Path(path).absolute()
    if isinstance(printed, list):
        if len(printed) != 1 or "schema" not in printed[0]:
            raise UsageError(f"`{folder}` holds {len(printed)} results", "name one of them")
        return typed(printed[0], folder)
    return typed(printed, folder.parent if folder.name == "summary.json" else folder)


def _given(target: str | None) -> Sequence[PathLike]:
    return [] if target is None else [target]


def _measure(
    verb: str, targets: Sequence[PathLike], flags: Mapping[str, Flag], check: bool, quiet: bool
) -> Result:
    words = [verb, *[os.fspath(target) for target in targets], *_flags.words(flags), "--json"]
    ended = call(words, None if quiet else _progress.printer())
    summary, folder = _calls.parsed(ended.stdout), ended.after("run folder: ")
    result = None
    if isinstance(summary, dict) and "schema" in summary:
        result = typed(summary, Path(folder).absolute() if folder else None)
    is_judged = result is not None and ended.code in (SloMissed.exit_code, VoidResult.exit_code)
    if ended.is_interrupted or not (ended.code == 0 or (is_judged and not check)):
        raise _calls.failure(ended, result)
    if result is None:
        raise UsageError(f"`goodput {' '.join(words)}` measures nothing", "call the command")
    return result
