"""The figures of results, named as in ``summary.json`` (docs/summary.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

Verdict = Literal["valid", "suspect", "void"]
Quality = Literal["ok", "few", "rough", "not_estimable"]
SloState = Literal["met", "missed", "undecided", "reported"]
GoodputState = Literal["found", "at_least", "unreachable", "unclear"]
Outcome = Literal["better", "worse", "equivalent", "inconclusive", "no_verdict", "described"]

T = TypeVar("T")


def read(kind: type[T], data: Mapping[str, Any], **given: object) -> T:
    """A dataclass from the JSON with its names. What ``data`` lacks is None."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: data.get(name) for name in names} | given)


@dataclass(frozen=True)
class Caveat:
    """One reason to doubt a result."""

    code: str
    severity: Literal["info", "warn", "void"]
    message: str
    advice: str | None


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; None where it is not known."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Percentile(Estimate):
    """A percentile with its 95 % interval, and what its samples are worth."""

    n: int
    n_eff: float | None
    quality: Quality
    is_censored: bool
    high_is_censored: bool


@dataclass(frozen=True)
class Metric:
    """The distribution of one metric over the measured requests."""

    unit: str
    n: int
    censored: int
    mean: float | None
    mean_low: float | None
    mean_high: float | None
    std: float | None
    min: float | None
    max: float | None
    percentiles: Mapping[str, Percentile]

    def percentile(self, percent: float) -> Percentile:
        """One of the percentiles of the run; ``percentiles=[...]`` asks for others."""
        name = f"{percent:g}"
        if name not in self.percentiles:
            known = ", ".join(f"p{known}" for known in self.percentiles)
            raise LookupError(
                f"the run has no p{name}, only {known}: run it with percentiles=[...]"
            )
        return self.percentiles[name]

    @property
    def p50(self) -> Percentile:
        """The median."""
        return self.percentile(50)

    @property
    def p90(self) -> Percentile:
        """The 90th percentile."""
        return self.percentile(90)

    @property
    def p95(self) -> Percentile:
        """The 95th percentile."""
        return self.percentile(95)

    @property
    def p99(self) -> Percentile:
        """The 99th percentile."""
        return self.percentile(99)


def metric(data: Mapping[str, Any]) -> Metric:
    """A metric of ``summary.json``."""
    found = {
        percent: read(Percentile, one, n=data["n"]) for percent, one in data["percentiles"].items()
    }
    return read(Metric, data, percentiles=found)


@dataclass(frozen=True)
class Term:
    """One condition of an SLO."""

    term: str
    unit: str
    limit: float
    value: float | None
    low: float | None
    high: float | None
    state: SloState


@dataclass(frozen=True)
class Slo:
    """What came of the SLO of a run."""

    slo: str
    state: SloState
    attainment: Estimate
    goodput_rps: Estimate
    terms: tuple[Term, ...]


def slo(data: Mapping[str, Any]) -> Slo:
    """The SLO of ``summary.json``."""
    terms = tuple(read(Term, term) for term in data["terms"])
    attainment, rps = (estimate(data, name) for name in ("attainment", "goodput_rps"))
    return read(Slo, data, attainment=attainment, goodput_rps=rps, terms=terms)


def estimate(data: Mapping[str, Any], name: str) -> Estimate:
    """A figure with ``_low`` and ``_high`` next to it."""
    return Estimate(data.get(name), data.get(f"{name}_low"), data.get(f"{name}_high"))


@dataclass(frozen=True)
class Goodput:
    """The highest load that keeps the SLO (docs/sweep.md)."""

    state: GoodputState
    because: str
    slo: str
    axis: Literal["rate", "concurrency"]
    confirmed: float | None
    confirmed_rps: float | None
    rejected: float | None
    rejected_rps: float | None
    crossing: Estimate | None
    attainment: Estimate
    over_claim_risk: float | None


def goodput(data: Mapping[str, Any]) -> Goodput:
    """The goodput of a sweep's ``summary.json``."""
    crossing = read(Estimate, data["crossing"]) if data["crossing"] else None
    return read(Goodput, data, crossing=crossing, attainment=estimate(data, "attainment"))


@dataclass(frozen=True)
class Headline:
    """One figure over the runs of ``repeat=N``."""

    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    min: float
    max: float
    differs: bool


@dataclass(frozen=True)
class Finding:
    """One figure of a candidate against the baseline. ``side`` is its place in ``sides``."""

    metric: str
    side: int
    level: int
    n: int
    reference: float
    candidate: float
    change: float
    low: float | None
    high: float | None
    p: float | None
    margin: float
    is_tested: bool
    outcome: Outcome
