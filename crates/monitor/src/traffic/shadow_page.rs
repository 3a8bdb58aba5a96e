//! The page of metrics of a shadow: both sides while they go on.

use goodput_campaign::compare::Comparison;
use goodput_campaign::shadow::ShadowReport;
use goodput_live::MirrorStanding;
use goodput_live::shadow::ShadowFigures;
use goodput_model::{BoundedHistogram, MetricsFormat, MetricsSheet, metrics_label};

use super::proxy;
use super::shadow::PairFigures;
use crate::metrics::{MetricsTally, new_sheet};

const SIDES: [&str; 2] = ["primary", "candidate"];

/// The page as it is now.
pub(super) fn shadow_metrics_page(
    figures: &ShadowFigures,
    pairs: PairFigures,
    format: MetricsFormat,
) -> String {
    let mut sheet = new_sheet(format, 1 << 15);
    proxy::write_proxy_metrics(&mut sheet, &figures.proxy);
    write_mirror(&mut sheet, figures);
    sheet.single(
        "goodput_shadow_pairs_total",
        "Requests with answers from both sides",
        figures.pair_count(),
    );
    sheet.single(
        "goodput_shadow_unpaired_total",
        "Requests that the candidate answered but that have no pair",
        figures.unpaired_count(),
    );
    sheet.single(
        "goodput_shadow_unjudged_total",
        "Requests without a pair because an answer could not be parsed",
        figures.inconclusive_count(),
    );
    sheet.single(
        "goodput_shadow_words_lost_total",
        "Answers of the candidate without a pair because the collector could not keep up",
        figures.lost_count(),
    );
    let PairFigures { sides, so_far: comparison } = pairs;
    write_failures(&mut sheet, &sides);
    if let Some(comparison) = &comparison {
        write_comparison(&mut sheet, comparison);
    }
    for (name, help, of) in TIMES {
        sheet.family(name, "histogram", help);
        for (side, tally) in SIDES.iter().zip(&sides) {
            sheet.histogram(name, &metrics_label("side", side), of(tally));
        }
    }
    sheet.finish()
}

type Time = (&'static str, &'static str, fn(&MetricsTally) -> &BoundedHistogram);

const TIMES: [Time; 3] = [
    ("goodput_shadow_ttft_seconds", "Time to the first token, of the pairs", |tally| {
        &tally.requests.ttft
    }),
    ("goodput_shadow_itl_seconds", "Gaps between the chunks of an answer, of the pairs", |tally| {
        &tally.requests.itl
    }),
    ("goodput_shadow_e2e_seconds", "Time to the last token, of the pairs", |tally| {
        &tally.requests.e2e
    }),
];

fn write_mirror(sheet: &mut MetricsSheet, figures: &ShadowFigures) {
    let tally = &figures.mirror;
    let counters = [
        (
            "goodput_shadow_passed_total",
            "Client requests to paths that can be mirrored",
            tally.passed(),
        ),
        ("goodput_shadow_chosen_total", "Requests that were chosen", tally.chosen()),
        ("goodput_shadow_mirrored_total", "Requests sent to the candidate", tally.sent()),
        ("goodput_shadow_candidate_ok_total", "Requests that the candidate completed", tally.ok()),
        (
            "goodput_shadow_candidate_failed_total",
            "Requests that failed on the candidate",
            tally.failed(),
        ),
        (
            "goodput_shadow_cut_total",
            "Requests that were abandoned because mirroring stopped",
            tally.cut(),
        ),
        (
            "goodput_shadow_pauses_total",
            "Times that mirroring paused because of failures",
            tally.pauses(),
        ),
        ("goodput_shadow_queued", "Requests waiting for the candidate", tally.queued()),
        ("goodput_shadow_held_bytes", "Bytes of request bodies held for it", tally.held_bytes()),
        ("goodput_shadow_in_flight", "Requests in flight at the candidate", tally.in_flight()),
    ];
    for (name, help, value) in counters {
        sheet.single(name, help, value);
    }
    let name = "goodput_shadow_dropped_total";
    sheet.family(name, "counter", "Chosen requests that were not sent, by reason");
    for (reason, count) in tally.dropped() {
        sheet.line(name, &metrics_label("reason", reason), count);
    }
    let (name, present) = ("goodput_shadow_state", tally.standing());
    sheet.family(name, "gauge", "1 for the state that mirroring is in, 0 for others");
    for (standing, word) in MirrorStanding::ALL {
        sheet.line(name, &metrics_label("state", word), u8::from(standing == present));
    }
}

/// What the pairs say together, as of the last look at them.
fn write_comparison(sheet: &mut MetricsSheet, comparison: &Comparison) {
    let change = "goodput_shadow_change";
    let help = "Change of a figure from the primary to the candidate so far: a proportion, for \
                error_share in points; with the ends of its interval";
    sheet.family(change, "gauge", help);
    for finding in &comparison.findings {
        let ends =
            [("estimate", Some(finding.change)), ("low", finding.low), ("high", finding.high)];
        for (end, value) in ends {
            if let Some(value) = value {
                let labels = [metrics_label("figure", &finding.metric), metrics_label("end", end)];
                sheet.line(change, &labels.join(","), value);
            }
        }
    }
    let tpot = "goodput_shadow_tpot_seconds";
    sheet.family(tpot, "gauge", "Time per output token after the first, so far, by quantile");
    for finding in &comparison.findings {
        let percent = finding.metric.strip_prefix("tpot_p").map(str::parse::<f64>);
        let Some(Ok(percent)) = percent else { continue };
        let quantile = ((percent * 1e4).round() / 1e6).to_string();
        for (side, value) in SIDES.iter().zip([finding.reference, finding.candidate]) {
            let labels = [metrics_label("side", side), metrics_label("quantile", &quantile)];
            sheet.line(tpot, &labels.join(","), value / 1e3);
        }
    }
    if let Some(report) = &comparison.shadow {
        write_counts(sheet, report);
    }
}

/// Lengths, ends and likeness of answers.
fn write_counts(sheet: &mut MetricsSheet, report: &ShadowReport) {
    let tokens = "goodput_shadow_output_tokens";
    sheet.family(tokens, "gauge", "Mean output tokens per answer so far");
    for (side, mean) in SIDES.iter().zip(report.output_tokens.into_iter().flatten()) {
        sheet.line(tokens, &metrics_label("side", side), mean);
    }
    let finish = "goodput_shadow_finish_total";
    sheet.family(finish, "counter", "Good answers of the pairs by finish reason");
    for count in &report.finishes {
        for (side, value) in SIDES.iter().zip(count.counts) {
            let labels = [metrics_label("side", side), metrics_label("reason", &count.name)];
            sheet.line(finish, &labels.join(","), value);
        }
    }
    let Some(likeness) = &report.likeness else { return };
    let alike = [
        ("goodput_shadow_likened_total", "Pairs whose answers were compared", likeness.pairs),
        ("goodput_shadow_same_total", "Pairs whose answers are byte-identical", likeness.exact),
    ];
    for (name, help, value) in alike {
        sheet.single(name, help, value);
    }
    let medians = [
        (
            "goodput_shadow_prefix_share",
            "Median share of the longer answer up to which both are identical",
            likeness.prefix_share,
        ),
        (
            "goodput_shadow_length_ratio",
            "Median of the candidate's length over the primary's, in characters",
            likeness.length_ratio,
        ),
    ];
    for (name, help, value) in medians {
        sheet.family(name, "gauge", help);
        if let Some(value) = value {
            sheet.line(name, "", value);
        }
    }
}

fn write_failures(sheet: &mut MetricsSheet, sides: &[MetricsTally; 2]) {
    let name = "goodput_shadow_requests_failed_total";
    sheet.family(name, "counter", "Requests of the pairs that failed, by class of error");
    for (side, tally) in SIDES.iter().zip(sides) {
        for (class, count) in &tally.requests.failed {
            let labels = [metrics_label("side", side), metrics_label("class", &class.to_string())];
            sheet.line(name, &labels.join(","), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use goodput_campaign::compare::{FigureOutcome, Finding};
    use goodput_campaign::shadow::{Count, LikenessSummary};

    use super::*;

    fn finding(metric: &str, [reference, candidate]: [f64; 2]) -> Finding {
        Finding {
            metric: metric.to_owned(),
            side: 1,
            level: 0,
            n: 8,
            reference,
            candidate,
            change: candidate / reference - 1.0,
            low: Some(0.25),
            high: None,
            confidence: 0.95,
            p: None,
            wilcoxon_p: None,
            hodges_lehmann: None,
            sd: None,
            is_tested: true,
            margin: 0.03,
            outcome: FigureOutcome::Worse,
            further_blocks: None,
            is_doubtful: false,
        }
    }

    #[test]
    fn the_last_comparison_is_on_the_page() {
        let report = ShadowReport {
            output_tokens: Some([10.0, 12.5]),
            finishes: vec![Count { name: "stop".to_owned(), counts: [3, 2] }],
            likeness: Some(LikenessSummary {
                pairs: 4,
                exact: 1,
                prefix_share: Some(0.5),
                length_ratio: Some(2.0),
                characters: [1.0, 2.0],
            }),
            ..ShadowReport::default()
        };
        let comparison = Comparison {
            findings: vec![finding("tpot_p99", [20.0, 30.0]), finding("ttft_p50", [80.0, 120.0])],
            shadow: Some(report),
            ..Comparison::default()
        };
        let mut sheet = new_sheet(MetricsFormat::Text, 0);
        write_comparison(&mut sheet, &comparison);
        let page = sheet.finish();
        for line in [
            r#"goodput_shadow_change{figure="ttft_p50",end="estimate"} 0.5"#,
            r#"goodput_shadow_change{figure="tpot_p99",end="low"} 0.25"#,
            r#"goodput_shadow_tpot_seconds{side="primary",quantile="0.99"} 0.02"#,
            r#"goodput_shadow_tpot_seconds{side="candidate",quantile="0.99"} 0.03"#,
            r#"goodput_shadow_output_tokens{side="candidate"} 12.5"#,
            r#"goodput_shadow_finish_total{side="primary",reason="stop"} 3"#,
            "goodput_shadow_likened_total 4",
            "goodput_shadow_same_total 1",
            "goodput_shadow_prefix_share 0.5",
            "goodput_shadow_length_ratio 2",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}: {page}");
        }
        assert!(!page.contains("high") && !page.contains(r#"quantile="0.5""#), "{page}");
    }
}
