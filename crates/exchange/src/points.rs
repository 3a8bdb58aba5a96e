//! The points of a sweep as CSV, one a line.

use std::io::Write;

use goodput_campaign::sweep::{
    Bounded, PointSpread, PointStanding, PointSummary, SweepSummary, Sweeps,
};
use serde::Serialize;
use serde_json::Value;

use crate::error::ExchangeError;
use crate::lines::{Field, write_csv};

/// The names of the columns; `docs/exports.md` says what they mean.
const NAMES: [&str; 66] = [
    "configuration",
    "folder",
    "number",
    "purpose",
    "axis",
    "level",
    "standing",
    "because",
    "verdict",
    "doubts",
    "complete",
    "window_s",
    "requests",
    "ok",
    "failed",
    "offered_rps",
    "scheduled_rps",
    "requests_per_s",
    "output_tokens_per_s",
    "total_tokens_per_s",
    "in_flight",
    "batch",
    "ttft_mean_ms",
    "ttft_p50_ms",
    "ttft_p50_low_ms",
    "ttft_p50_high_ms",
    "ttft_p90_ms",
    "ttft_p99_ms",
    "ttft_p99_low_ms",
    "ttft_p99_high_ms",
    "tpot_mean_ms",
    "tpot_p50_ms",
    "tpot_p50_low_ms",
    "tpot_p50_high_ms",
    "tpot_p90_ms",
    "tpot_p99_ms",
    "tpot_p99_low_ms",
    "tpot_p99_high_ms",
    "e2e_mean_ms",
    "e2e_p50_ms",
    "e2e_p50_low_ms",
    "e2e_p50_high_ms",
    "e2e_p90_ms",
    "e2e_p99_ms",
    "e2e_p99_low_ms",
    "e2e_p99_high_ms",
    "itl_mean_ms",
    "itl_p50_ms",
    "itl_p50_low_ms",
    "itl_p50_high_ms",
    "itl_p90_ms",
    "itl_p99_ms",
    "itl_p99_low_ms",
    "itl_p99_high_ms",
    "input_tokens_mean",
    "output_tokens_mean",
    "over_saturated",
    "steady",
    "attainment",
    "attainment_low",
    "attainment_high",
    "goodput_rps",
    "goodput_rps_low",
    "goodput_rps_high",
    "gpu_power_w",
    "joules_per_output_token",
];

/// The points of a sweep as a table.
pub fn sweep_csv(out: &mut dyn Write, sweep: &SweepSummary) -> Result<(), ExchangeError> {
    let mut lines = Vec::new();
    add_points(&mut lines, "", sweep);
    write_csv(out, &NAMES, lines.into_iter())
}

/// The points of every configuration.
pub fn sweeps_csv(out: &mut dyn Write, sweeps: &Sweeps) -> Result<(), ExchangeError> {
    let mut lines = Vec::new();
    for configuration in &sweeps.configurations {
        let values = configuration.values.iter();
        let name: Vec<_> = values.map(|(name, value)| format!("{name}={value}")).collect();
        if let Some(sweep) = &configuration.sweep {
            add_points(&mut lines, &name.join(" "), sweep);
        }
    }
    write_csv(out, &NAMES, lines.into_iter())
}

fn add_points(lines: &mut Vec<Vec<Field>>, configuration: &str, sweep: &SweepSummary) {
    lines.extend(sweep.points.iter().map(|point| point_fields(configuration, point)));
}

fn point_fields(configuration: &str, summary: &PointSummary) -> Vec<Field> {
    let (ask, figures) = (&summary.point.ask, &summary.point.figures);
    let text = |text: &str| Field::Text(text.to_owned());
    let (standing, because) = standing_fields(&summary.standing);
    let mut line = vec![
        text(configuration),
        text(&summary.folder),
        Field::Whole(ask.number.into()),
        json_word(&ask.purpose),
        json_word(&ask.level.axis()),
        Field::Number(ask.level.value()),
        text(standing),
        because,
        json_word(&figures.verdict),
        text(&figures.doubts.join(" ")),
        Field::Flag(figures.is_complete),
        Field::Number(figures.window_s),
        Field::Whole(figures.requests),
        Field::Whole(figures.ok),
        Field::Whole(figures.failed),
        figures.offered_rps.into(),
        figures.scheduled_rps.into(),
        figures.requests_per_s.into(),
        figures.output_tps.into(),
        figures.total_tps.into(),
        figures.in_flight.into(),
        figures.batch.into(),
    ];
    for metric in [figures.ttft_ms, figures.tpot_ms, figures.e2e_ms, figures.itl_ms] {
        line.extend(spread_fields(metric));
    }
    line.extend([
        figures.input_tokens.into(),
        figures.output_tokens.into(),
        figures.over_saturated.into(),
        figures.is_steady.into(),
    ]);
    line.extend(interval_fields(figures.attainment));
    line.extend(interval_fields(figures.goodput_rps));
    line.extend([figures.gpu_power_w.into(), figures.joules_per_output_token.into()]);
    line
}

/// Mean, median with its interval, 90th percentile, 99th with its interval.
fn spread_fields(metric: PointSpread) -> Vec<Field> {
    let p90: Field = metric.p90.map(|figure| figure.value).into();
    let mut fields = vec![metric.mean.into()];
    fields.extend(interval_fields(metric.p50));
    fields.push(p90);
    fields.extend(interval_fields(metric.p99));
    fields
}

fn interval_fields(figure: Option<Bounded>) -> [Field; 3] {
    [
        figure.map(|figure| figure.value).into(),
        figure.and_then(|figure| figure.low).into(),
        figure.and_then(|figure| figure.high).into(),
    ]
}

/// Whether it keeps the SLO, and why not.
fn standing_fields(standing: &PointStanding) -> (&'static str, Field) {
    match standing {
        PointStanding::Met => ("met", Field::Empty),
        PointStanding::Missed(why) => ("missed", json_word(why)),
        PointStanding::Unclear(why) => ("unclear", json_word(why)),
    }
}

/// The word that the summary's JSON has for it, and what it holds.
fn json_word(value: &impl Serialize) -> Field {
    Field::Text(match serde_json::to_value(value).unwrap_or_default() {
        Value::String(word) => word,
        Value::Object(fields) => {
            let words = fields.iter().map(|(name, value)| match value.as_str() {
                Some(value) => format!("{name}: {value}"),
                None => format!("{name}: {value}"),
            });
            words.collect::<Vec<_>>().join(", ")
        }
        _ => return Field::Empty,
    })
}
