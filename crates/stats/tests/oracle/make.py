"""Writes estimate.json: what NumPy and SciPy say about samples, for src/estimate/tests/oracle.rs.

    python -m venv VENV && VENV/bin/pip install numpy scipy
    VENV/bin/python crates/stats/tests/oracle/make.py

Values are drawn with a fixed seed and written with all their digits, so the fixture stays the
same until this file changes.
"""

import json
import math
from pathlib import Path

import numpy as np
from scipy import special, stats

BATCHES = 20
PERCENTS = [1.0, 50.0, 90.0, 95.0, 99.0, 99.9]
QUANTILES = [0.05, 0.5, 0.9, 0.95, 0.99, 0.999]


def binomial_ranks(n, q):
    """Ranks of the order statistics that enclose quantile q with 95 %, by trying all of them."""
    ranks = np.arange(1, n + 1)
    below = stats.binom.cdf(ranks - 1, n, q)
    low, high = ranks[below <= 0.025], ranks[below >= 0.975]
    if len(low) == 0 or len(high) == 0:
        return None
    return [int(low.max()), int(high.min())]


def early_stopping(n, q):
    """Largest t with n >= h_min(t) + t, counted up from 0; the rank is n - t + 1."""
    best, t, h = None, 0, 1
    while True:
        while special.betainc(h, t + 1, q) >= 0.01:
            h += 1
        if n < h + t:
            break
        best, t = t, t + 1
    return n - best + 1 if best else None


def ratio(sizes, sums):
    """A ratio over batches and its variance."""
    filled = sizes > 0
    sizes, sums = sizes[filled], sums[filled]
    k, n = len(sizes), sizes.sum()
    r = sums.sum() / n
    variance = k / (k - 1) * np.sum((sizes / n) ** 2 * (sums / sizes - r) ** 2)
    return r, variance, k


def effective(values, batch, at):
    """n_eff of the quantile that lies at this value, and the number of batches behind it."""
    beyond = values > at
    if not beyond.any():
        beyond = values >= at
    sizes = np.bincount(batch, minlength=BATCHES)
    p, variance, k = ratio(sizes, np.bincount(batch, weights=beyond, minlength=BATCHES))
    n = len(values)
    factor = variance * n / (p * (1 - p)) if 0 < p < 1 else 1.0
    # One time in ten shares of independent values vary more than this.
    by_chance = stats.chi2.ppf(0.9, k - 1) / (k - 1)
    return (float(n / factor) if factor > by_chance else float(n)), k


def quantile(values, percent):
    """Nearest rank. The probability as a decimal: 99.9 / 100 is more than 0.999 in binary, and 0.999
    of 1000 values would be all of them."""
    return float(np.quantile(values, float(f"{percent / 100:.6f}"), method="inverted_cdf"))


def interval(values, n_eff, batches, q):
    """Binomial ranks of the deflated n_eff, stretched over all values."""
    least = math.ceil(math.log(0.025) / math.log(max(q, 1 - q)))
    narrow = (stats.norm.ppf(0.975) / stats.t.ppf(0.975, batches - 1)) ** 2
    if n_eff < least:
        # The lower end alone: the middle of what the value of that rank stands for.
        m = max(math.floor(n_eff * narrow), 1)
        low = max((rank for rank in range(m + 1) if stats.binom.cdf(rank - 1, m, q) <= 0.025), default=0)
        if low == 0:
            return [None, None]
        rank = min(max(math.floor((low - 0.5) * len(values) / m), 1), len(values))
        return [float(np.sort(values)[rank - 1]), None]
    m = max(math.floor(n_eff * narrow), least)
    low, high = binomial_ranks(m, q)
    ordered, n = np.sort(values), len(values)
    low, high = max((low * n) // m, 1), min(-((-high * n) // m), n)
    return [float(ordered[low - 1]), float(ordered[high - 1])]


def sample(name, values, batch):
    """A sample with everything about it."""
    sizes = np.bincount(batch, minlength=BATCHES)
    mean, variance, k = ratio(sizes, np.bincount(batch, weights=values, minlength=BATCHES))
    variance = max(variance, np.var(values, ddof=1) / len(values))
    half = stats.t.ppf(0.975, k - 1) * math.sqrt(variance)
    percentiles = []
    for percent in PERCENTS:
        at = quantile(values, percent)
        n_eff, batches = effective(values, batch, at)
        rank = early_stopping(len(values), percent / 100)
        percentiles.append({
            "percent": percent,
            "value": at,
            "n_eff": n_eff,
            "interval": interval(values, n_eff, batches, percent / 100),
            "early_stopping": float(np.sort(values)[rank - 1]) if rank else None,
        })
    return {
        "name": name,
        "values": values.tolist(),
        "sizes": sizes.tolist(),
        "mean": float(mean),
        "mean_interval": [float(mean - half), float(mean + half)],
        "std": float(np.std(values, ddof=1)),
        "percentiles": percentiles,
    }


def samples():
    rng = np.random.default_rng(20261115)
    even = lambda n: np.arange(n) * BATCHES // n
    independent = rng.lognormal(4.6, 0.5, 1000)
    # What went before makes up most of each value.
    walk = np.zeros(700)
    for i in range(1, len(walk)):
        walk[i] = 0.9 * walk[i - 1] + rng.normal()
    # Whole milliseconds, many of them equal; batches of unequal size, two of them empty.
    ties = np.round(rng.gamma(2.0, 5.0, 500))
    uneven = np.sort(rng.choice([b for b in range(BATCHES) if b not in (3, 19)], 500))
    return [
        sample("independent", independent, even(1000)),
        sample("autoregressive", np.round(50 + walk, 3), even(700)),
        sample("ties in uneven batches", ties, uneven),
        sample("growing", np.arange(1.0, 401.0), even(400)),
    ]


def main():
    sizes = [1, 5, 6, 36, 72, 367, 368, 1000, 3688, 10_000, 123_457]
    fixture = {
        "binomial_ranks": [[n, q, binomial_ranks(n, q)] for n in sizes for q in QUANTILES],
        "binomial_cdf": [
            [k, n, q, float(stats.binom.cdf(k, n, q))]
            for n, q in [(50, 0.5), (1000, 0.99), (10**6, 0.5), (10**7, 0.999)]
            for k in [int(n * q + s * math.sqrt(n * q * (1 - q))) for s in (-3, -1, 0, 1, 3)]
        ],
        "early_stopping": [
            [n, q, early_stopping(n, q)]
            for n in [7, 10, 11, 63, 64, 662, 1000, 6636, 20_000]
            for q in QUANTILES[1:]
        ],
        "student": [[p, d, float(stats.t.ppf(p, d))] for p in (0.9, 0.975, 0.995)
                    for d in (1, 2, 9, 19, 29, 200, 10_000)],
        "normal": [[p, float(stats.norm.ppf(p))] for p in (0.001, 0.5, 0.95, 0.975, 0.99, 0.999)],
        "samples": samples(),
    }
    path = Path(__file__).with_name("estimate.json")
    path.write_text(json.dumps(fixture, separators=(",", ":")) + "\n")


main()
