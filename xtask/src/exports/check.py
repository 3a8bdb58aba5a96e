"""Exports of one run (see mod.rs), read by programs of others.

Figures are computed anew from the tables by numpy, and held against the summary and against the
files in other tools' shapes.
"""

import json
import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

SUMMARY = json.load(open("run/summary.json"))


def close(found, expected, what, within=1e-6):
    ok = math.isclose(found, expected, rel_tol=within, abs_tol=within)
    assert ok, f"{what}: {found} is not {expected}"


def table(name):
    """A table as four programs read it: as many rows, and the same sums."""
    path = f"tables/{name}.parquet"
    arrow = pq.read_table(path)
    frame = pd.read_parquet(path)
    quick = pl.read_parquet(path)
    rows = duckdb.sql(f"select count(*) from '{path}'").fetchall()[0][0]
    assert arrow.num_rows == len(frame) == quick.height == rows, name
    for field in arrow.schema:
        assert field.type in (pa.string(), pa.int64(), pa.float64(), pa.bool_()), field
        if field.type == pa.float64() and arrow.num_rows:
            here = frame[field.name].sum()
            other = duckdb.sql(f'select coalesce(sum("{field.name}"), 0) from \'{path}\'')
            close(other.fetchall()[0][0], here, field.name)
            close(quick[field.name].sum() or 0.0, here, field.name)
    facts = pq.ParquetFile(path).metadata.metadata
    assert facts[b"goodput.schema"] == f"goodput.{name}/1".encode(), facts
    assert facts[b"goodput.model"] == b"mock", facts
    return frame


requests, chunks, server = table("requests"), table("chunks"), table("server")

# The lines of CSV are the rows of Parquet.
lines = pd.read_csv("requests.csv")
assert list(lines.columns) == list(requests.columns)
assert len(lines) == len(requests) == 220
for name in ["index", "ttft_ms", "e2e_ms", "done_ms", "output_tokens"]:
    np.testing.assert_array_equal(lines[name].astype(float), requests[name].astype(float))

# What the summary counts.
measured = requests[requests.phase == "measured"]
good = measured[measured.ok]
counted = SUMMARY["requests"]
assert (len(measured), len(good)) == (counted["scheduled"], counted["ok"])
assert (requests.phase == "warmup").sum() == counted["warmup"] == 20
assert 0 < len(measured) - len(good) == counted["errors"]["http_500"]
assert measured.slo_kept.eq(True).sum() == SUMMARY["slo"]["good"]
for metric in ["ttft", "tpot", "e2e", "max_gap"]:
    values = measured[f"{metric}_ms"].dropna()
    stated = SUMMARY["metrics"][metric]
    assert len(values) == stated["n"], metric
    for percent in ["50", "90", "99"]:
        rank = np.percentile(values, float(percent), method="inverted_cdf")
        close(rank, stated["percentiles"][percent]["value"], f"{metric} p{percent}")
assert set(chunks.request) <= set(requests["index"])
assert chunks.groupby("request").size().max() == requests.chunks.max()

# vLLM's figures from our instants, by its definitions.
vllm = json.load(open("vllm.json"))
ttft = (good.first_byte_ms - good.dispatched_ms).to_numpy()
latency = (good.done_ms - good.dispatched_ms).to_numpy()
tpot = (latency - ttft) / (good.output_tokens.to_numpy() - 1)
ended = measured.done_ms.where(measured.ok, measured.ended_ms).max()
close(vllm["duration"], (ended - measured.scheduled_ms.min()) / 1e3, "duration")
for name, values in {"ttft": ttft, "e2el": latency, "tpot": tpot}.items():
    close(vllm[f"mean_{name}_ms"], np.mean(values), name)
    close(vllm[f"median_{name}_ms"], np.median(values), name)
    close(vllm[f"std_{name}_ms"], np.std(values), name)
    close(vllm[f"p99_{name}_ms"], np.percentile(values, 99), name)
itls = np.array([gap for gaps in vllm["itls"] for gap in gaps]) * 1e3
close(vllm["mean_itl_ms"], np.mean(itls), "itl")
close(vllm["p99_itl_ms"], np.percentile(itls, 99), "itl")
close(vllm["request_throughput"], len(good) / vllm["duration"], "request_throughput")
close(vllm["output_throughput"], good.output_tokens.sum() / vllm["duration"], "output_throughput")
lists = ["input_lens", "output_lens", "ttfts", "itls", "start_times", "latencies", "errors"]
assert {len(vllm[name]) for name in lists} == {vllm["num_prompts"]} == {len(measured)}

# SGLang's, whose first token is text and whose end is that of the stream.
sglang = [json.loads(line) for line in open("sglang.jsonl")]
assert len(sglang) == 1
ttft = (good.first_token_ms - good.dispatched_ms).to_numpy()
close(sglang[0]["p99_ttft_ms"], np.percentile(ttft, 99), "ttft")
close(sglang[0]["mean_e2e_latency_ms"], np.mean(latency), "e2e_latency")

# AIPerf's, whose end is the last token.
aiperf = json.load(open("aiperf.json"))
latency = (good.last_token_ms - good.dispatched_ms).to_numpy()
close(aiperf["request_latency"]["p75"], np.percentile(latency, 75), "request_latency")
close(aiperf["time_to_first_token"]["std"], np.std(ttft), "time_to_first_token")
itl = (latency - ttft) / (good.output_tokens.to_numpy() - 1)
close(aiperf["inter_token_latency"]["avg"], np.mean(itl), "inter_token_latency")
assert aiperf["error_request_count"]["avg"] == len(measured) - len(good)
