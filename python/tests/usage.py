"""Uses of the module for the type checker: `mypy --strict` must take each line as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import goodput


def figures() -> tuple[Optional[float], str, int]:
    run: goodput.Run = goodput.run("mock", rate=20, duration="10s", slo=["errors < 1%"], check=True)
    quality: str = run.ttft.p99.quality
    wrong: str = run.ttft.p99.n  # type: ignore[assignment]
    met: Optional[bool] = run.slo_met
    folder: Path = run.folder
    print(wrong, met, folder, [caveat.advice for caveat in run.caveats])
    return run.ttft.p99.value, quality, run.e2e.n


def kinds() -> None:
    repeats: goodput.Repeats = goodput.run("mock", rate=20, repeat=3)
    sweep: goodput.Sweep = goodput.sweep("mock", from_=1, to=50)
    sweeps: goodput.Sweeps = goodput.sweep("mock", vary="isl=512,2048")
    comparison: goodput.Comparison = goodput.compare(Path("a"), sweep, margin="3%")
    goodput.run("mock", rate={"a": 1})  # type: ignore[call-overload]
    if sweep.goodput is not None and sweep.goodput.crossing is not None:
        print(sweep.goodput.crossing.low, repeats.headlines["ttft_p50"].mean)
    print(sweeps.configurations[0].values, comparison.findings[0].change)


def frames(run: goodput.Run) -> int:
    rows: int = run.requests().num_rows
    run.requests("excel")  # type: ignore[call-overload]
    return rows + run.requests("polars").height + len(run.requests("pandas"))


def results(path: str) -> Optional[goodput.Result]:
    try:
        result = goodput.open(path)
    except goodput.GoodputError as error:
        print(error.exit_code, error.message, error.hint)
        return error.result
    if isinstance(result, goodput.Run):
        print(result.itl.p50.high)
    return result
