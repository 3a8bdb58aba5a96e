"""One call of the program."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile

from goodput._program import program

# Seconds between two looks at what the program says.
EVERY = 0.25

Show = Callable[[str], None]


@dataclass(frozen=True)
class Ended:
    """What a call left: its exit code, its data, and the lines for people."""

    code: int
    stdout: str
    lines: Sequence[str]
    is_interrupted: bool

    def after(self, prefix: str) -> str | None:
        """The rest of the last line that begins with this."""
        found = (line[len(prefix) :] for line in reversed(self.lines) if line.startswith(prefix))
        return next(found, None)

    def error(self) -> str | None:
        """The message of the program; its further lines are indented."""
        begins = [place for place, line in enumerate(self.lines) if line.startswith("error: ")]
        if not begins:
            return None
        message = [self.lines[begins[-1]][len("error: ") :]]
        for line in self.lines[begins[-1] + 1 :]:
            if not line.startswith("  ") or line.startswith("  tip: "):
                break
            message.append(line.strip())
        return "\n".join(message)


def call(words: Sequence[str], show: Show | None = None) -> Ended:
    """Runs the program until it ends. Ctrl-C goes to the program once; its report is awaited."""
    environment = {**os.environ, "NO_COLOR": "1", "GOODPUT_PARENT": str(os.getpid())}
    # Files, not pipes: a command that the program leaves behind would hold a pipe open.
    with TemporaryFile() as out, TemporaryFile() as err:
        process = subprocess.Popen(
            [program(), *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
            # Terminals and notebooks send Ctrl-C to a whole group, which would double it.
            start_new_session=True,
        )
        notes = Notes(err.fileno(), show)
        try:
            is_interrupted = _wait(process, notes)
        except BaseException:
            process.terminate()
            raise
        notes.read()
        stdout = _rest(out.fileno(), 0).decode(errors="replace")
        return Ended(process.returncode, stdout, notes.lines, is_interrupted)


def _wait(process: subprocess.Popen[bytes], notes: Notes) -> bool:
    """Whether Ctrl-C was pressed before the program ended."""
    is_interrupted = False
    while process.poll() is None:
        try:
            notes.read()
            process.wait(EVERY)
        except subprocess.TimeoutExpired:
            pass
        except KeyboardInterrupt:
            is_interrupted = True
            process.send_signal(signal.SIGINT)
    return is_interrupted


class Notes:
    """The lines that the program writes to a file, shown as they come."""

    def __init__(self, file: int, show: Show | None) -> None:
        self.lines: list[str] = []
        self._file = file
        self._show = show
        self._offset = 0

    def read(self) -> None:
        """Takes the whole lines that are new."""
        data = _rest(self._file, self._offset)
        end = data.rfind(b"\n") + 1
        self._offset += end
        for line in data[:end].decode(errors="replace").splitlines():
            self.lines.append(line)
            # What follows an error is part of the exception.
            if line.startswith("error: "):
                self._show = None
            if self._show is not None:
                self._show(line)


def _rest(file: int, offset: int) -> bytes:
    """What a file holds from here on. Its position belongs to the program that writes to it."""
    return os.pread(file, os.fstat(file).st_size - offset, offset)
