//! What can be compared of a run.

use std::collections::BTreeMap;

use goodput_stats::Summary;
use serde::{Deserialize, Serialize};

use super::{Design, Quantity};

/// A figure of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The value.
    pub value: f64,
    /// Lower end of the run's own 95 % interval, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// Which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

/// How two values are set against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricScale {
    /// By their ratio: times and rates.
    Ratio,
    /// By their difference: shares, which may be zero.
    Difference,
}

/// A figure that can be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedMetric {
    /// In files: `ttft_p99`, `output_tokens_per_s`, `attainment`.
    pub name: String,
    /// For people: `p99 TTFT`.
    pub title: String,
    /// Of its values: `ms`, `/s`, `tok/s`, `J`; empty of a share.
    pub unit: &'static str,
    /// Which way is good.
    pub better: Better,
    /// How values are set against each other.
    pub scale: MetricScale,
}

/// Times with percentiles: name, and what it is called on pages.
const TIMES: [(&str, &str); 4] =
    [("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL"), ("e2e", "E2E")];

/// Rates and shares: name, title, unit.
const OTHERS: [(&str, &str, &str); 10] = [
    ("requests_per_s", "requests", "/s"),
    ("output_tokens_per_s", "output", "tok/s"),
    ("total_tokens_per_s", "input and output", "tok/s"),
    ("recounted_tokens_per_s", "output, recounted", "tok/s"),
    ("characters_per_s", "characters", "/s"),
    ("goodput_rps", "goodput", "/s"),
    ("goodput_tokens_per_s", "output of good requests", "tok/s"),
    ("attainment", "attainment", ""),
    ("error_share", "errors", ""),
    ("joules_per_output_token", "energy of an output token", "J"),
];

/// Behind a time: its mean, and how far its tail lies from its median.
const MEAN: &str = "_mean";
const TAIL_RATIO: &str = "_p99_over_p50";

/// Those of [`OTHERS`] that are better when lower.
const LOWER: [&str; 2] = ["error_share", "joules_per_output_token"];

/// What is tested where no gate says otherwise, as far as runs have it.
const FAMILY: [&str; 8] = [
    "ttft_p50",
    "ttft_p99",
    "tpot_p50",
    "tpot_p99",
    "output_tokens_per_s",
    "goodput_rps",
    "attainment",
    // Who turns work away is quick about the rest.
    "error_share",
];

/// The names that a design tests, as far as runs have them.
pub fn tested_metrics(design: &Design) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for gate in &design.gates {
        if !names.contains(&gate.metric) {
            names.push(gate.metric.clone());
        }
    }
    match design.quantity {
        _ if !names.is_empty() => names,
        _ if !design.family.is_empty() => design.family.clone(),
        Quantity::Goodput => vec!["goodput_rps".to_owned()],
        Quantity::Runs => FAMILY.map(str::to_owned).to_vec(),
    }
}

/// The metric of this name (`ttft_p99`); none if it does not exist.
pub fn find_metric(name: &str) -> Option<ComparedMetric> {
    if let Some((name, title, unit)) = OTHERS.iter().find(|other| other.0 == name) {
        return Some(ComparedMetric {
            name: (*name).to_owned(),
            title: (*title).to_owned(),
            unit,
            better: if LOWER.contains(name) { Better::Lower } else { Better::Higher },
            scale: if unit.is_empty() { MetricScale::Difference } else { MetricScale::Ratio },
        });
    }
    let of_time = |time: &str, title: &dyn Fn(&str) -> String, unit: &'static str| {
        let (_, known) = TIMES.iter().find(|known| known.0 == time)?;
        let (name, title) = (name.to_owned(), title(known));
        let (better, scale) = (Better::Lower, MetricScale::Ratio);
        Some(ComparedMetric { name, title, unit, better, scale })
    };
    if let Some(time) = name.strip_suffix(MEAN) {
        return of_time(time, &|known| format!("mean {known}"), "ms");
    }
    if let Some(time) = name.strip_suffix(TAIL_RATIO) {
        return of_time(time, &|known| format!("p99/p50 {known}"), "");
    }
    let (time, percent) = name.split_once("_p")?;
    let is_number = percent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value: f64 = percent.parse().ok().filter(|_| is_number)?;
    let is_percent = value > 0.0 && value < 100.0;
    is_percent.then(|| of_time(time, &|known| format!("p{percent} {known}"), "ms")).flatten()
}

/// Everything in a summary that can be compared, by name.
pub fn comparable_figures(summary: &Summary) -> BTreeMap<String, Figure> {
    let mut all = BTreeMap::new();
    let mut put = |name: String, value: Option<f64>, low: Option<f64>, high: Option<f64>| {
        let finite = |value: &f64| value.is_finite();
        if let Some(value) = value.filter(finite) {
            let figure = Figure { value, low: low.filter(finite), high: high.filter(finite) };
            all.insert(name, figure);
        }
    };
    for (name, _) in TIMES {
        let found = summary.metrics.get(name).into_iter().flat_map(|metric| &metric.percentiles);
        // How sure a percentile of one run is does not matter here: blocks tell. One beyond the time
        // limit has no value.
        for (percent, found) in found.filter(|(_, found)| !found.is_censored) {
            put(format!("{name}_p{percent}"), found.value, found.low, found.high);
        }
        let Some(metric) = summary.metrics.get(name) else { continue };
        put(format!("{name}{MEAN}"), metric.mean, None, None);
        let known = |percent: &str| {
            let found = metric.percentiles.get(percent).filter(|found| !found.is_censored);
            found.and_then(|found| found.value).filter(|value| *value > 0.0)
        };
        let ratio = known("99").zip(known("50")).map(|(p99, p50)| p99 / p50);
        put(format!("{name}{TAIL_RATIO}"), ratio, None, None);
    }
    let mut plain = |name: &str, value: Option<f64>| put(name.to_owned(), value, None, None);
    let rates = &summary.throughput;
    plain("requests_per_s", rates.requests_per_s);
    plain("output_tokens_per_s", rates.output_tokens_per_s);
    plain("total_tokens_per_s", rates.total_tokens_per_s);
    if let Some(recount) = &summary.recount {
        plain("recounted_tokens_per_s", recount.output_tps);
        let each = recount.characters as f64 / recount.output_tokens as f64;
        plain("characters_per_s", recount.output_tps.map(|rate| rate * each));
    }
    let energy = summary.gpu.as_ref().and_then(|gpu| gpu.energy.as_ref());
    plain("joules_per_output_token", energy.and_then(|energy| energy.joules_per.output_token));
    let requests = &summary.requests;
    plain(
        "error_share",
        (requests.scheduled > 0).then(|| requests.failed as f64 / requests.scheduled as f64),
    );
    if let Some(slo) = &summary.slo {
        plain("goodput_tokens_per_s", slo.goodput_output_tps);
        put("attainment".to_owned(), slo.attainment, slo.attainment_low, slo.attainment_high);
        put("goodput_rps".to_owned(), slo.goodput_rps, slo.goodput_rps_low, slo.goodput_rps_high);
    }
    all
}
