"""Results: what ``goodput report`` reads, typed."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, overload

from goodput import _figures as figures
from goodput._calls import report
from goodput._errors import GoodputError, UsageError
from goodput._figures import Caveat, Finding, Goodput, Headline, Metric, Outcome, Slo, Verdict
from goodput._tables import Format, load

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]


class Result:
    """A result: its summary, and the folder that it lies in.

    It is a path: ``goodput.compare(run_a, run_b)`` takes results as it takes folders.
    """

    def __init__(self, summary: Mapping[str, Any], folder: Path | None) -> None:
        self.summary = summary
        self._folder = folder

    @property
    def folder(self) -> Path:
        """The folder (or file) of the result."""
        if self._folder is None:
            raise UsageError("this result lies in no folder", 'out="..." keeps one')
        return self._folder

    @property
    def verdict(self) -> Verdict:
        """Whether to believe it. A file of another tool has none: KeyError."""
        verdict: Verdict = self.summary["verdict"]
        return verdict

    @property
    def is_void(self) -> bool:
        """Whether its figures must not be used."""
        return self.verdict == "void"

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """Reasons to doubt it, most severe first."""
        return tuple(figures.read(Caveat, one) for one in self.summary.get("caveats", ()))

    def report_text(self, verbose: bool = False) -> str:
        """The page that the command prints."""
        return report(self.folder, *(["--verbose"] if verbose else []))

    def report_html(self) -> str:
        """The page for a browser: one file that makes no network requests."""
        return report(self.folder, "--format=html")

    def _repr_html_(self) -> str | None:
        try:
            page = html.escape(self.report_html())
        except GoodputError:
            return None  # its folder is gone, or it is a file of another tool
        # Its scripts may run, but not reach the notebook.
        style = "width:100%;height:640px;border:1px solid #ccc;background:#fff"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def __fspath__(self) -> str:
        return os.fspath(self.folder)

    def __repr__(self) -> str:
        facts = [self.summary.get("verdict"), *self._facts(), self._folder]
        return f"<goodput.{type(self).__name__}: {', '.join(str(fact) for fact in facts if fact)}>"

    def _facts(self) -> list[str]:
        return []

    def reason(self, is_void: bool) -> tuple[str, str | None]:
        """Why it is not good, and what to do about it."""
        for caveat in self.caveats if is_void else ():
            if caveat.severity == "void":
                return caveat.message, caveat.advice
        return ", ".join(self._facts()) or "the report says why", None

    def _table(self, file: str, format: Format) -> Any:
        """One of the tables of ``goodput report --format parquet``."""
        with TemporaryDirectory() as scratch:
            to = Path(scratch)
            try:
                report(self.folder, "--format=parquet", f"--output={to}")
            except UsageError as error:
                if "built without `parquet`" not in error.message or file != "requests":
                    raise
                return self._csv(format)
            return load(to / f"{file}.parquet", format)

    def _csv(self, format: Format) -> Any:
        with TemporaryDirectory() as scratch:
            to = Path(scratch) / "table.csv"
            report(self.folder, "--format=csv", f"--output={to}")
            return load(to, format)


class Run(Result):
    """One load level, measured once."""

    @property
    def metrics(self) -> dict[str, Metric]:
        """Every distribution, by its name in docs/metrics.md."""
        return {name: figures.metric(one) for name, one in self.summary["metrics"].items()}

    def _metric(self, name: str) -> Metric:
        return figures.metric(self.summary["metrics"][name])

    @property
    def ttft(self) -> Metric:
        """Time to the first token, from the scheduled instant."""
        return self._metric("ttft")

    @property
    def itl(self) -> Metric:
        """Time between two successive tokens."""
        return self._metric("itl")

    @property
    def tpot(self) -> Metric:
        """Mean time between tokens of one answer."""
        return self._metric("tpot")

    @property
    def e2e(self) -> Metric:
        """Time to the end of the answer, from the scheduled instant."""
        return self._metric("e2e")

    @property
    def max_gap(self) -> Metric:
        """The longest gap of an answer."""
        return self._metric("max_gap")

    @property
    def requests_per_s(self) -> float | None:
        """Completed requests per second of the window."""
        rate: float | None = self.summary["throughput"]["requests_per_s"]
        return rate

    @property
    def output_tokens_per_s(self) -> float | None:
        """Output tokens per second of the window."""
        rate: float | None = self.summary["throughput"]["output_tokens_per_s"]
        return rate

    @property
    def slo(self) -> Slo | None:
        """The SLO and what came of it; None without one."""
        slo = self.summary["slo"]
        return figures.slo(slo) if slo else None

    @property
    def slo_met(self) -> bool | None:
        """Whether the SLO was met; None without one, and where that is undecided."""
        slo = self.slo
        return {"met": True, "missed": False}.get(slo.state) if slo else None

    @property
    def plan(self) -> Path:
        """The plan that ``goodput.run(plan=...)`` repeats."""
        return self.folder / "plan.toml"

    @overload
    def requests(self, format: Literal["arrow"] = ...) -> pyarrow.Table: ...
    @overload
    def requests(self, format: Literal["pandas"]) -> pandas.DataFrame: ...
    @overload
    def requests(self, format: Literal["polars"]) -> polars.DataFrame: ...
    def requests(self, format: Format = "arrow") -> Any:
        """A row for each request (docs/exports.md has the columns)."""
        return self._table("requests", format)

    @overload
    def chunks(self, format: Literal["arrow"] = ...) -> pyarrow.Table: ...
    @overload
    def chunks(self, format: Literal["pandas"]) -> pandas.DataFrame: ...
    @overload
    def chunks(self, format: Literal["polars"]) -> polars.DataFrame: ...
    def chunks(self, format: Format = "arrow") -> Any:
        """A row for each chunk of each answer."""
        return self._table("chunks", format)

    def _facts(self) -> list[str]:
        slo, rate = self.slo, self.requests_per_s
        found = [] if rate is None else [f"{rate:.3g} req/s"]
        if slo:
            alike = [term.term for term in slo.terms if term.state == slo.state]
            found.append(f"SLO {slo.state}: {', '.join(alike) or slo.slo}")
        return found


class Repeats(Result):
    """Several runs of one plan."""

    @property
    def headlines(self) -> dict[str, Headline]:
        """The main figures over the runs."""
        found = self.summary["headlines"].items()
        return {name: figures.read(Headline, one) for name, one in found}


class _Swept(Result):
    @overload
    def points(self, format: Literal["arrow"] = ...) -> pyarrow.Table: ...
    @overload
    def points(self, format: Literal["pandas"]) -> pandas.DataFrame: ...
    @overload
    def points(self, format: Literal["polars"]) -> polars.DataFrame: ...
    def points(self, format: Format = "arrow") -> Any:
        """A row for each point, in the order measured (docs/exports.md has the columns)."""
        return self._csv(format)


class Sweep(_Swept):
    """Rising load on one target."""

    @property
    def goodput(self) -> Goodput | None:
        """The highest load that keeps the SLO; None if none was searched for."""
        found = self.summary["goodput"]
        return figures.goodput(found) if found else None

    @property
    def slo_met(self) -> bool | None:
        """Whether some load keeps the SLO; None where that is unclear."""
        states = {"found": True, "at_least": True, "unreachable": False}
        return states.get(self.goodput.state) if self.goodput else None

    def _facts(self) -> list[str]:
        found = self.goodput
        if found is None:
            return []
        rps = found.confirmed_rps
        because = f": {found.because}" if found.because else ""
        return [found.state + (because if rps is None else f" {rps:.3g} req/s")]


@dataclass(frozen=True)
class Configuration:
    """One of the settings of ``vary=...``, and its sweep or why there is none."""

    values: Mapping[str, str]
    sweep: Sweep | None
    failed: str | None


class Sweeps(_Swept):
    """A sweep for each value of ``vary=...``."""

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """Each configuration, in the order measured."""

        def one(data: Mapping[str, Any]) -> Configuration:
            folder = self.folder / data["folder"]
            sweep = Sweep(data["sweep"], folder) if data["sweep"] else None
            return Configuration(data["values"], sweep, data["failed"])

        return tuple(one(data) for data in self.summary["configurations"])

    @property
    def best(self) -> Configuration | None:
        """The best one, where intervals tell them apart or one has an answer."""
        place = self.summary["best"]
        return None if place is None else self.configurations[place]


class Comparison(Result):
    """The same load on several targets, or what saved runs say against each other."""

    @property
    def outcome(self) -> Outcome:
        """The whole in one word: the worst of the gates, or of the tested figures."""
        outcome: Outcome = self.summary["outcome"]
        return outcome

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of what was compared; the first is the baseline."""
        return tuple(side["name"] for side in self.summary["sides"])

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every figure, with its change and interval."""
        return tuple(figures.read(Finding, one) for one in self.summary["findings"])

    def _facts(self) -> list[str]:
        return [self.outcome]


KINDS: dict[str, type[Result]] = {
    "goodput.summary/1": Run,
    "goodput.repeats/1": Repeats,
    "goodput.sweep/1": Sweep,
    "goodput.sweeps/1": Sweeps,
    "goodput.comparison/1": Comparison,
}


def typed(summary: Mapping[str, Any], folder: Path | None) -> Result:
    """The result of this summary. Files of other tools are a plain ``Result``."""
    return KINDS.get(summary["schema"], Result)(summary, folder)
