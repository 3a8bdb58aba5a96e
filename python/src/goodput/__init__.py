"""goodput: how much load an LLM endpoint carries within an SLO.

>>> import goodput
>>> run = goodput.run("mock", rate=20, duration="10s", slo="p99 ttft < 500ms")
>>> run.verdict, run.ttft.p99.value, run.requests("pandas")
"""

from importlib.metadata import PackageNotFoundError as _NotInstalled
from importlib.metadata import version as _version

from goodput._errors import (
    GoodputError,
    InternalError,
    Interrupted,
    MissingExtra,
    MissingProgram,
    SloMissed,
    TargetError,
    UsageError,
    VoidResult,
)
from goodput._figures import (
    Caveat,
    Estimate,
    Finding,
    Goodput,
    Headline,
    Metric,
    Percentile,
    Slo,
    Term,
)
from goodput._results import Comparison, Configuration, Repeats, Result, Run, Sweep, Sweeps
from goodput._verbs import compare, run, sweep
from goodput._verbs import open as open

try:
    __version__ = _version("goodput-bench")
except _NotInstalled:  # a source tree on the path
    __version__ = "unknown"

# Without `open`: `from goodput import *` must not replace the built-in one.
__all__ = [
    "Caveat",
    "Comparison",
    "Configuration",
    "Estimate",
    "Finding",
    "Goodput",
    "GoodputError",
    "Headline",
    "InternalError",
    "Interrupted",
    "Metric",
    "MissingExtra",
    "MissingProgram",
    "Percentile",
    "Repeats",
    "Result",
    "Run",
    "Slo",
    "SloMissed",
    "Sweep",
    "Sweeps",
    "TargetError",
    "Term",
    "UsageError",
    "VoidResult",
    "compare",
    "run",
    "sweep",
]
