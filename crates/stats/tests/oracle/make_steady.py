"""Writes steady.json: what NumPy, SciPy and plain definitions say about some series.

    python make_steady.py > steady.json        (NumPy 2, SciPy 1.18)

Every statistic is computed straight from its definition, by brute force, in another language than
the code it checks. Series are rounded to three digits so that they are the same in both.
"""

import json
import math

import numpy as np
from scipy import stats


def series():
    rng = np.random.default_rng(20261115)
    noise = lambda n, scale=1.0: rng.normal(0.0, scale, n)
    made = {
        "constant": np.full(60, 7.25),
        "white": 100.0 + noise(120),
        "ties": rng.integers(0, 6, 100).astype(float),
        "slope": 50.0 + 0.2 * np.arange(90) + noise(90, 2.0),
        "falling": 50.0 - 0.05 * np.arange(200) + noise(200, 2.0),
        "step_down": np.where(np.arange(100) < 25, 90.0, 30.0) + noise(100, 3.0),
        "step_late": np.where(np.arange(150) < 110, 20.0, 26.0) + noise(150, 1.5),
        "cold_start": 40.0 + 80.0 * np.exp(-np.arange(180) / 12.0) + noise(180, 2.0),
        "far_from_zero": 1e6 + 10.0 * np.exp(-np.arange(77) / 6.0) + noise(77, 0.5),
        "short": np.array([3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 8.0, 7.0, 9.0, 9.0, 11.0]),
    }
    for name, phi in [("ar_half", 0.5), ("ar_strong", 0.9), ("ar_negative", -0.6)]:
        values = [0.0]
        for step in noise(159):
            values.append(phi * values[-1] + step)
        made[name] = 30.0 + np.array(values)
    return {name: np.round(values, 3) for name, values in made.items()}


def mser(values):
    batches = len(values) // 5
    means = values[: batches * 5].reshape(batches, 5).mean(axis=1)
    score = [((means[d:] - means[d:].mean()) ** 2).sum() / (batches - d) ** 2 for d in range(batches // 2 + 1)]
    # Rounding must not choose between equals.
    least = min(score)
    cut = next(d for d, s in enumerate(score) if s <= least * (1 + 1e-9) + 1e-18)
    return {"cut": 5 * cut, "batches": batches, "at_limit": batches >= 2 and cut == batches // 2}


def hamed_rao(values):
    n = len(values)
    ranks = stats.rankdata(values)
    moved = ranks - ranks.mean()
    power = (moved**2).sum()
    if power == 0.0:
        return 1.0
    limit = stats.norm.ppf(0.975) / math.sqrt(n)
    total = 0.0
    for lag in range(1, n):
        r = (moved[:-lag] * moved[lag:]).sum() / power
        if abs(r) > limit:
            total += (n - lag) * (n - lag - 1) * (n - lag - 2) * r
    return 1.0 + 2.0 * total / (n * (n - 1) * (n - 2))


def mann_kendall(values):
    n = len(values)
    s = int(sum(np.sign(values[j] - values[i]) for i in range(n) for j in range(i + 1, n)))
    counts = np.unique(values, return_counts=True)[1].astype(float)
    term = lambda m: m * (m - 1) * (2 * m + 5)
    variance = (term(n) - sum(term(m) for m in counts)) / 18.0
    slope = stats.theilslopes(values, np.arange(n)).slope
    factor = hamed_rao(values - slope * np.arange(n))
    spread = math.sqrt(variance * max(factor, 1.0))
    z = 0.0 if s == 0 or spread == 0.0 else (s - np.sign(s)) / spread
    return {"s": s, "variance": variance, "factor": factor, "z": float(z), "p": float(2 * stats.norm.sf(abs(z)))}


def pettitt(values):
    n = len(values)
    u = [sum(np.sign(a - b) for a in values[:t] for b in values[t:]) for t in range(1, n)]
    k = max(abs(x) for x in u)
    at = next(t + 1 for t, x in enumerate(u) if abs(x) == k) if k > 0 else 0
    return {"k": float(k), "at": at, "p": min(1.0, 2.0 * math.exp(-6.0 * k * k / (n**3 + n**2)))}


def least_squares(values):
    if np.ptp(values) == 0.0:
        return {"value": 0.0, "low": 0.0, "high": 0.0}
    fit = stats.linregress(np.arange(len(values)), values)
    half = stats.t.ppf(0.975, len(values) - 2) * fit.stderr
    return {"value": fit.slope, "low": fit.slope - half, "high": fit.slope + half}


def main():
    out = {}
    for name, values in series().items():
        out[name] = {
            "values": values.tolist(),
            "mser": mser(values),
            "mann_kendall": mann_kendall(values),
            "theil_sen": float(stats.theilslopes(values, np.arange(len(values))).slope),
            "pettitt": pettitt(values),
            "least_squares": {k: float(v) for k, v in least_squares(values).items()},
        }
    lines = [f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in out.items()]
    print("{\n" + ",\n".join(lines) + "\n}")


main()
