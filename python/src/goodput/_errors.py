"""Failures, by the exit code of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from goodput._results import Result


class Failure(BaseException):
    """What happened, what to do about it, and the result, where one was written all the same."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str | None = None, result: Result | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.result = result

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class GoodputError(Failure, Exception):
    """Every failure except Ctrl-C."""


class InternalError(GoodputError):
    """Exit code 1: a bug, or a system that refused something basic."""


class UsageError(GoodputError):
    """Exit code 2: wrong usage or bad input."""

    exit_code = 2


class TargetError(GoodputError):
    """Exit code 3: the target cannot be reached, or is not what it should be."""

    exit_code = 3


class SloMissed(GoodputError):
    """Exit code 4, with ``check=True``: the SLO was missed, or a candidate is worse."""

    exit_code = 4


class VoidResult(GoodputError):
    """Exit code 5, with ``check=True``: void, or too few samples to decide what was asked."""

    exit_code = 5


class Interrupted(Failure, KeyboardInterrupt):
    """Exit code 130: stopped before its end; ``result`` is the partial report.

    It is a KeyboardInterrupt, so that ``except Exception`` does not swallow Ctrl-C.
    """

    exit_code = 130


class MissingProgram(GoodputError):
    """The program ``goodput`` was not found."""


class MissingExtra(GoodputError, ImportError):
    """A package is missing that this call needs; the hint names the extra that brings it."""


ERRORS = {kind.exit_code: kind for kind in (UsageError, TargetError, SloMissed, VoidResult)}
