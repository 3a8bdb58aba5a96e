"""Writes curve.json: what kneed, SciPy and scikit-learn say of some curves, for src/curve/tests.rs.

    python -m venv VENV && VENV/bin/pip install numpy scipy scikit-learn kneed
    VENV/bin/python crates/campaign/tests/oracle/make.py

(NumPy 2.4, SciPy 1.17, scikit-learn 1.9, kneed 0.9.) Values are drawn with a fixed seed and rounded
to what is written, so the fixture stays the same until this file changes.
"""

import json
from pathlib import Path

import numpy as np
from kneed import KneeLocator
from scipy.optimize import least_squares
from sklearn.isotonic import IsotonicRegression


def pairs(x, y):
    return [[round(float(a), 6), round(float(b), 6)] for a, b in zip(x, y)]


def knees(rng):
    made = []
    grid = np.arange(1.0, 13.0)
    made.append(pairs(grid, np.minimum(grid, 7.0)))
    made.append(pairs(grid, 20.0 * grid / (4.0 + grid)))
    made.append(pairs(grid, grid))
    # Falls after its peak, as an overloaded server does.
    made.append(pairs(grid, np.where(grid < 8, grid, 16.0 - grid)))
    made.append(pairs([1, 2, 3, 4], [1, 2, 2.1, 2.1]))
    geometric = np.geomspace(1, 50, 12)
    made.append(pairs(geometric, np.minimum(geometric, 22.0) + rng.normal(0, 0.2, 12)))
    for n in (5, 6, 8, 15, 30):
        x = np.sort(rng.uniform(1, 60, n))
        made.append(pairs(x, np.minimum(x, 30.0) * (1 + rng.normal(0, 0.02, n))))
        made.append(pairs(x, 40 * (1 - np.exp(-x / 12)) + rng.normal(0, 1.5, n)))
    rows = []
    for curve in made:
        x, y = np.array(curve).T
        knee = KneeLocator(x, y, S=1.0, curve="concave", direction="increasing").knee if len(x) >= 5 else None
        # An end is no knee: there is nothing on one side of it.
        if knee is not None and knee in (x[0], x[-1]):
            continue
        rows.append({"curve": curve, "knee": None if knee is None else float(knee)})
    return rows


def law(n, gamma, alpha, beta):
    return gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1))


def usl(rng):
    rows = []
    for gamma, alpha, beta, noise in [
        (1.0, 0.05, 0.001, 0.0), (0.6, 0.1, 0.0004, 0.02), (3.0, 0.02, 0.0, 0.01), (0.8, 0.0, 0.002, 0.01),
        (2.5, 0.0, 0.0, 0.02), (12.0, 0.3, 0.01, 0.05), (0.05, 0.01, 0.00001, 0.03),
    ]:
        n = np.round(np.geomspace(1.5, 120, 9), 6)
        x = np.round(law(n, gamma, alpha, beta) * (1 + rng.normal(0, noise, len(n))), 6)
        seconds = np.round(rng.uniform(20, 300, len(n)), 3)
        sigma = np.sqrt(x / seconds)
        # The best of several starts, inside the bounds.
        best = min(
            (
                least_squares(
                    lambda p: (x - law(n, *p)) / sigma, start, bounds=([1e-9, 0, 0], np.inf),
                    x_scale=[max(start[0], 1e-3), 0.1, 0.001], xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=20000,
                )
                for start in ([gamma, alpha + 1e-3, beta + 1e-5], [x[0] / n[0], 0.1, 0.001], [x[0] / n[0], 1e-4, 1e-6])
            ),
            key=lambda fit: fit.cost,
        )
        rows.append({"n": n.tolist(), "x": x.tolist(), "seconds": seconds.tolist(), "law": best.x.tolist(),
                     "squares": 2 * best.cost})
    return rows


def falling(rng):
    rows = []
    for n in (1, 2, 5, 12, 40):
        share = np.round(np.clip(1.2 - np.linspace(0, 1, n) + rng.normal(0, 0.15, n), 0, 1), 6)
        weight = np.round(rng.uniform(10, 2000, n), 3)
        fit = IsotonicRegression(increasing=False).fit_transform(np.arange(n), share, sample_weight=weight)
        rows.append({"values": pairs(share, weight), "falling": fit.tolist()})
    return rows


if __name__ == "__main__":
    rng = np.random.default_rng(20261115)
    made = {"knees": knees(rng), "usl": usl(rng), "falling": falling(rng)}
    text = "{\n" + ",\n".join(f'"{key}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]"
                              for key, rows in made.items()) + "\n}\n"
    Path(__file__).with_name("curve.json").write_text(text)
