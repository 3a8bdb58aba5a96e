"""Looks at the results of a fleet, with arithmetic of its own."""

import csv
import json
import math
import pathlib
import sys


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def need(is_so, words):
    if not is_so:
        print(f"look: {words}", file=sys.stderr)
        sys.exit(1)


def same(one, many):
    """The same requests, scheduled at the same instants, with prompts of the same length."""
    key = lambda row: (int(row["index"]), row["scheduled_ms"], row["planned_input_tokens"], row["body_bytes"])
    left, right = sorted(map(key, rows(one))), sorted(map(key, rows(many)))
    need(left == right, f"{len(left)} and {len(right)} requests; the first that differ: "
         f"{next(((a, b) for a, b in zip(left, right) if a != b), None)}")
    print(f"look: {len(right)} requests, all instants equal")


def union(merged, *parts):
    whole = sorted(tuple(sorted(row.items())) for row in drop_worker(rows(merged)))
    pieces = sorted(tuple(sorted(row.items())) for part in parts for row in drop_worker(rows(part)))
    need(whole == pieces, f"{len(whole)} rows merged, {len(pieces)} in the parts")


def drop_worker(found):
    return [{name: value for name, value in row.items() if name not in ("worker", "connection")} for row in found]


def percentiles(summary, *parts):
    """Order statistics over all measured samples of all parts: the smallest value with at least that share below or at it."""
    metrics = json.load(open(summary))["metrics"]
    checked = 0
    for name, column in (("ttft", "ttft_ms"), ("e2e", "e2e_ms"), ("tpot", "tpot_ms")):
        found = [row for part in parts for row in rows(part) if row["phase"] == "measured"]
        values = sorted(float(row[column]) for row in found if row[column])
        for share, entry in metrics[name]["percentiles"].items():
            if entry["value"] is None:
                continue
            rank = max(1, math.ceil(float(share) / 100 * len(values) - 1e-9))
            need(values[rank - 1] == entry["value"], f"{name} p{share}: {values[rank - 1]} and {entry['value']}")
            checked += 1
    need(checked >= 6, f"only {checked} percentiles")
    print(f"look: {checked} percentiles equal")


def clients(summary, *wanted):
    found = json.load(open(summary))
    shards = found["run"]["shards"]
    for word in wanted:
        name, value = word.split("=")
        if name == "there":
            need(sum(shard["is_there"] for shard in shards) == int(value), f"{shards}")
        elif name == "missing":
            need(not shards[int(value)]["is_there"], f"{shards}")
        elif name == "cut":
            need(shards[int(value)].get("cut_s") is not None, f"{shards[int(value)]}")
        elif name == "sick":
            shard = shards[int(value)]
            need(shard["verdict"] != "valid" or shard.get("cut_s") is not None or not shard["is_there"], f"{shard}")
        elif name == "late_ms":
            late = [shard["late_ms"] for shard in shards if shard["is_there"]]
            need(all(one is not None and one <= float(value) for one in late), f"late by {late} ms")
        elif name == "offset_s":
            rank, seconds = value.split(":")
            off = shards[int(rank)]["clock"]["offset_ns"] / 1e9
            need(abs(off - float(seconds)) < 0.5, f"{name} of rank {rank}: {off}")
        elif name == "held_ms":
            rank, least = value.split(":")
            clock = shards[int(rank)]["clock"]
            print(f"look: offset {clock['offset_ns'] / 1e6:.1f} ms, stated error {clock['error_ns'] / 1e6:.1f} ms")
            need(abs(clock["offset_ns"]) <= clock["error_ns"] and clock["error_ns"] >= float(least) * 1e6, f"{clock}")
        elif name == "verdict":
            need(found["verdict"] == value, f"{found['verdict']}: {found['caveats']}")
        else:
            need(False, f"what is {word}?")


def poisson(summary):
    gaps = json.load(open(summary))["load"]["due_gaps"]
    need(gaps["p"] > 0.001, f"{gaps}")
    print(f"look: {gaps['n']} gaps, Kolmogorov-Smirnov p {gaps['p']:.3f}")


def slower(near, far):
    """There and back is part of a TTFT."""
    near, far = (json.load(open(path))["metrics"]["ttft"]["percentiles"]["50"]["value"] for path in (near, far))
    need(far - near >= 49.0, f"TTFT p50 {near} and {far} ms")
    print(f"look: TTFT p50 {near:.1f} ms near, {far:.1f} ms far")


def sweep(folder, ranks):
    found = list(pathlib.Path(folder).rglob("summary.json"))
    merged = [json.load(open(path)) for path in found if path.parent.parent.name != "shards"]
    points = [one for one in merged if "run" in one]
    need(len(points) >= 2, f"{found}")
    for point in points:
        need(len(point["run"]["shards"]) == int(ranks) and all(shard["is_there"] for shard in point["run"]["shards"]), f"{point['run']}")
    print(f"look: {len(points)} points of {ranks} ranks")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
