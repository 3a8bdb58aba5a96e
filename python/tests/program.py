"""A program in place of `goodput` that leaves what a test says."""

import contextlib
import json
import os
import stat
import sys
import tempfile
from pathlib import Path
from unittest import mock

SCRIPT = """#!{python} -S
import os, signal, sys
facts = {facts!r}
for argument in sys.argv:
    if argument.startswith("--output=") and facts["csv"]:
        if "--format=csv" not in sys.argv:
            print("error: built without `parquet`: this build cannot write it", file=sys.stderr)
            sys.exit(2)
        open(argument[len("--output="):], "w").write(facts["csv"])
        sys.exit(0)
sys.stderr.write(facts["stderr"])
sys.stdout.write(facts["stdout"])
sys.stdout.flush()
if facts["code"] < 0:
    os.kill(os.getpid(), -facts["code"])
sys.exit(facts["code"])
"""


@contextlib.contextmanager
def program(code=0, stderr="", summary=None, csv=""):
    """Calls go to a program with this exit code, these lines, this summary, and this table."""
    stdout = "" if summary is None else json.dumps(summary)
    facts = {"code": code, "stderr": stderr, "stdout": stdout, "csv": csv}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "goodput"
        path.write_text(SCRIPT.format(python=sys.executable, facts=facts))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        with mock.patch.dict(os.environ, GOODPUT_BIN=str(path)):
            yield


def sweep(state="found", confirmed=12.0):
    """The summary of a sweep with as much in it as is read."""
    return {
        "schema": "goodput.sweep/1",
        "verdict": "valid",
        "caveats": [],
        "goodput": {
            "state": state,
            "because": "over the limit at 16",
            "slo": "p99 ttft < 500ms",
            "axis": "rate",
            "confirmed": confirmed,
            "rejected": 16.0,
            "confirmed_rps": confirmed,
            "rejected_rps": 16.0,
            "attainment": 0.99,
            "attainment_low": 0.97,
            "attainment_high": None,
            "crossing": {"value": 13.0, "low": 11.0, "high": 15.0},
            "runs": 2,
            "requests": 2000,
            "over_claim_risk": 0.1,
        },
    }


def comparison(outcome, verdict="valid"):
    """The summary of a comparison with one finding."""
    finding = {
        "metric": "ttft_p99",
        "side": 1,
        "level": 0,
        "n": 8,
        "reference": 100.0,
        "candidate": 120.0,
        "change": 0.2,
        "low": 0.1,
        "high": 0.3,
        "p": 0.001,
        "margin": 0.03,
        "is_tested": True,
        "outcome": outcome,
        "a field of a later version": 1,
    }
    return {
        "schema": "goodput.comparison/1",
        "verdict": verdict,
        "caveats": [],
        "outcome": outcome,
        "sides": [{"name": "A"}, {"name": "B"}],
        "findings": [finding],
    }
