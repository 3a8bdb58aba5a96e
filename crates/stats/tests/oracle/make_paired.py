"""Writes paired.json: what SciPy and plain definitions say about differences between runs.

    python make_paired.py > paired.json        (NumPy 2, SciPy 1.18)

Values are rounded so that they are the same in both languages, and ties are ties.
"""

import json
import math

import numpy as np
from scipy import optimize, stats

ALPHAS = [0.05, 0.0184, 0.002]


def differences():
    rng = np.random.default_rng(20261115)
    made = {
        "two": [0.031, 0.012],
        "two_opposite": [0.04, -0.04],
        "three": [0.01, -0.002, 0.03],
        "six_one_sided": [0.011, 0.023, 0.017, 0.031, 0.008, 0.026],
        "outlier": [0.01, 0.012, 0.009, 0.011, 0.013, -0.4],
        "ties": [0.01, 0.01, -0.01, 0.02, 0.02, -0.03, 0.03, 0.03],
        "ties_of_three_sizes": [-0.5, 0.5, 0.5, -1.0, 1.0, 1.0, 1.0, 2.0, -2.0, 2.0, 2.0],
        "zeros": [0.0, 0.0, 0.013, -0.002, 0.021, 0.007, 0.005],
        "zeros_and_ties": [0.0, 0.01, -0.01, 0.01, 0.02, 0.0, 0.02, 0.05],
        "one_nonzero": [0.0, 0.0, 0.02],
        "far_from_zero": [1000.001, 1000.002, 1000.004, 1000.003],
    }
    for n, mean in [(8, 0.02), (12, 0.0), (16, 0.01), (20, -0.012)]:
        made[f"normal_{n}"] = np.round(rng.normal(mean, 0.02, n), 6).tolist()
    made["normal_60"] = np.round(rng.normal(0.004, 0.02, 60), 7).tolist()
    made["normal_150"] = np.round(rng.normal(0.002, 0.02, 150), 3).tolist()
    return made


def wilcoxon(values):
    left = np.array([v for v in values if v != 0.0])
    if len(left) == 0:
        return None
    if len(left) > 100:
        return stats.wilcoxon(left, method="asymptotic", correction=False).pvalue
    if len(np.unique(np.abs(left))) == len(left):
        return stats.wilcoxon(left, method="exact").pvalue
    # Its exact method knows no ties: all patterns of signs instead.
    assert len(left) <= 12
    return stats.wilcoxon(left, method=stats.PermutationMethod(n_resamples=np.inf)).pvalue


def one_sample():
    rows = []
    for name, values in differences().items():
        x = np.array(values)
        test = stats.ttest_1samp(x, 0.0)
        walsh = [(x[i] + x[j]) / 2 for i in range(len(x)) for j in range(i, len(x))]
        rows.append({
            "name": name,
            "values": values,
            "mean": x.mean(),
            "sd": x.std(ddof=1),
            "p": test.pvalue,
            "intervals": [[a, *test.confidence_interval(1 - a)] for a in ALPHAS],
            "wilcoxon_p": wilcoxon(values),
            "hodges_lehmann": np.median(walsh),
        })
    return rows


def welch():
    rng = np.random.default_rng(7)
    rows = []
    for n, m, shift, scale in [(2, 2, 0.1, 1), (3, 5, 0.05, 3), (6, 6, 0.0, 1), (5, 12, 0.3, 0.2), (40, 3, -0.1, 5)]:
        a = np.round(rng.normal(4.0, 0.1, n), 3)
        b = np.round(rng.normal(4.0 + shift, 0.1 * scale, m), 3)
        test = stats.ttest_ind(b, a, equal_var=False)
        rows.append({
            "reference": a.tolist(),
            "candidate": b.tolist(),
            "mean": b.mean() - a.mean(),
            "degrees": test.df,
            "p": test.pvalue,
            "intervals": [[alpha, *test.confidence_interval(1 - alpha)] for alpha in ALPHAS],
        })
    return rows


def student():
    degrees = [1, 1.37, 2, 3, 5, 7.25, 15, 63, 999, 9999, 99999, 1e6]
    chances = [[t, d, 2 * stats.t.sf(t, d)] for d in degrees for t in [0.01, 0.7, 1.9, 4.5, 30.0]]
    critical = [[a, d, stats.t.isf(a / 2, d)] for d in degrees for a in [0.9, 0.05, 0.0184, 0.0001, 1e-9]]
    return {"chances": chances, "critical": critical}


def crossing(information, z):
    """Any |B(t)| > z sqrt(t): the density on an even grid, by Simpson's rule."""
    grid = np.linspace(-1.0, 1.0, 2001)
    weights = np.ones(2001)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    weights *= (grid[1] - grid[0]) / 3.0
    limit = z * math.sqrt(information[0])
    at, density = grid * limit, stats.norm.pdf(grid * limit, 0, math.sqrt(information[0]))
    for before, now in zip(information, information[1:]):
        mass, limit = density * weights * limit, z * math.sqrt(now)
        to = grid * limit
        density = stats.norm.pdf(to[:, None], at[None, :], math.sqrt(now - before)) @ mass
        at = to
    return 1.0 - (density * weights).sum() * limit


def levels():
    rows = []
    for information in [[1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5], [6, 8], [4, 6, 10, 14], [6, 8, 12, 16], [0.5, 1, 2, 6], [100, 102], [1, 100], [30, 31, 60]]:
        for alpha in [0.05, 0.01]:
            far = stats.norm.isf(alpha / 2 / len(information)) + 0.01
            z = optimize.brentq(lambda z: crossing(information, z) - alpha, stats.norm.isf(alpha / 2), far, xtol=1e-11)
            rows.append([information, alpha, 2 * stats.norm.sf(z)])
    return rows


def power(size, n, alpha):
    limit, shift = stats.t.isf(alpha / 2, n - 1), size * math.sqrt(n)
    chance = float(stats.nct.sf(limit, n - 1, shift) + stats.nct.cdf(-limit, n - 1, shift))
    # Far out it has no answer.
    assert 0.0 <= chance <= 1.0 + 1e-9, (size, n, alpha)
    return chance


def blocks():
    powers = [[d, n, a, power(d, n, a)] for a in [0.05, 0.0185, 0.0037] for d, n in [(2.13, 4), (1.43, 6), (1.16, 8), (1.0, 10), (0.75, 16), (0.66, 20), (0.1, 500), (3.0, 3)]]
    find = [[d, a, next(n for n in range(2, 10001) if power(d, n, a) >= 0.8)] for a in [0.05, 0.0185, 0.0037] for d in [0.2, 0.5, 0.9, 1.72, 2.4, 3.0]]
    narrow = [[w, a, next(n for n in range(2, 10001) if stats.t.isf(a / 2, n - 1) / math.sqrt(n) <= w)] for a in [0.05, 0.0185, 0.0037] for w in [0.1, 0.33, 0.7, 1.5, 9.0]]
    return {"power": powers, "find": find, "narrow": narrow}


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return float(value) if isinstance(value, np.floating) else value


def main():
    lines = ["{"]
    out = {"paired": one_sample(), "unpaired": welch(), "levels": levels()}
    for name, rows in out.items():
        lines.append(f'"{name}": [\n' + ",\n".join(json.dumps(plain(row)) for row in rows) + "\n],")
    lines.append(f'"student": {json.dumps(plain(student()))},')
    lines.append(f'"blocks": {json.dumps(plain(blocks()))}\n}}')
    print("\n".join(lines))


main()
