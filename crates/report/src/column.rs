//! The page of a column of numbers.

use goodput_stats::{Metric, NumberColumn, Quality};

use crate::run::latency;
use goodput_document::number::{cell_number, count};
use goodput_document::render;
use goodput_document::{Block, Detail, Document, Fact, Section};

/// Neighbors that correlate by more than this depend on each other.
const ALIKE: f64 = 0.5;
/// Standard deviation, as a share of the mean, below which that is nothing but noise.
const WIDE: f64 = 0.1;

/// The statistics of a column of numbers.
pub fn column_text(column: &NumberColumn) -> String {
    let [table, marks] = latency::metric_blocks(&column.metric);
    let found = Section::untitled().with(Block::Facts(column_facts(column)));
    let sections = vec![Section::untitled().with(Block::Gap).with(table).with(marks), found];
    render::text::render_page(&Document { sections, ..Document::default() }, Detail::Full)
}

fn column_facts(column: &NumberColumn) -> Vec<Fact> {
    let mut all = Vec::new();
    let mut field = |label: &str, text: String| all.push(Fact::new(label, text));
    let p99 = column.metric.percentiles.get("99");
    if let Some(n_eff) = p99.and_then(|percentile| percentile.n_eff) {
        let text = format!(
            "{} values say as much about p99 as {n_eff:.0} independent ones",
            count(column.metric.n)
        );
        field("Worth", text);
    }
    let is_plain = p99.is_some_and(|percentile| percentile.quality == Quality::Ok);
    if let Some(ratio) = column.metric.tail_ratio.filter(|_| is_plain) {
        field("Tail", format!("p99 is {ratio:.2} times p50"));
    }
    if let Some(found) = column.mser5 {
        let limit = if found.at_limit { ", its maximum: too few values for it" } else { "" };
        let text = match found.cut {
            0 => "MSER-5 would cut nothing".to_owned(),
            cut => format!("MSER-5 would cut the first {}{limit}", count(cut as u64)),
        };
        field("Warm-up", text);
    }
    if let Some(trend) = column.trend {
        let text = match trend.drift_share.filter(|_| trend.is_clear) {
            Some(share) => format!(
                "{:+.1} % from beginning to end (Mann–Kendall, p {})",
                share * 100.0,
                probability_text(trend.test.p)
            ),
            None => "none found".to_owned(),
        };
        field("Trend", text);
    }
    if let Some(shift) = column.shift.filter(|shift| shift.is_clear) {
        let text = format!(
            "most likely at value {} (Pettitt, p {})",
            count(shift.at_value),
            probability_text(shift.test.p)
        );
        field("Shift", text);
    }
    if let Some(lag1) = neighbor_correlation(&column.metric) {
        let text = format!(
            "alike (correlation {lag1:.2}): intervals of tails are too narrow. Rely on p50 and p90, or \
             measure longer"
        );
        field("Neighbors", text);
    }
    let text = column.two_modes.map_or("one found".to_owned(), |modes| {
        let (low, high) = (modes.low_share * 100.0, (1.0 - modes.low_share) * 100.0);
        format!(
            "two: {low:.0} % around {} and {high:.0} % around {}",
            cell_number(modes.low_median),
            cell_number(modes.high_median)
        )
    });
    field("Groups", text);
    all
}

/// The correlation of neighbors, where it is high and the values differ enough for it to matter: in a
/// queue one waits for the same reason as the next.
fn neighbor_correlation(metric: &Metric) -> Option<f64> {
    let (mean, std) = metric.mean.zip(metric.std)?;
    metric.lag1.filter(|lag1| *lag1 > ALIKE && std > WIDE * mean.abs())
}

/// Never rounded to nothing.
fn probability_text(p: f64) -> String {
    if p < 0.0001 { "below 0.0001".to_owned() } else { format!("{p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uneven but fixed noise between 0 and 1.
    fn noise(i: u32) -> f64 {
        f64::from(i.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24)
    }

    fn page(values: impl Iterator<Item = f64>) -> String {
        column_text(&NumberColumn::from_values(&values.collect::<Vec<_>>(), &[50.0, 99.0], false))
    }

    #[test]
    fn a_step_is_told_and_a_slow_wave_is_not() {
        let step = page((0..2_000).map(|i| noise(i) + if i < 1_000 { 10.0 } else { 12.0 }));
        // A mean is of 34 values, and the last one that begins before the step begins at 29 × 34.
        assert!(step.contains("Shift       most likely at value 986 "), "{step}");
        // Ten waves: each value is like the one before it, and nothing changes from beginning to end.
        let wave = page((0..2_000).map(|i| 10.0 + 4.0 * (f64::from(i) / 31.8).sin() + noise(i)));
        assert!(!wave.contains("Shift"), "{wave}");
        assert!(wave.contains("Trend       none found"), "{wave}");
        assert!(wave.contains("Neighbors   alike (correlation 0.9"), "{wave}");
        // The same within a tenth of the value is nothing but noise.
        let flat = page((0..2_000).map(|i| 1_000.0 + 4.0 * (f64::from(i) / 31.8).sin()));
        assert!(!flat.contains("Neighbors"), "{flat}");
    }

    #[test]
    fn mser5_asks_and_does_not_cut() {
        let page = page((0..400).map(|i| noise(i) + if i < 40 { 100.0 } else { 10.0 }));
        assert!(page.contains("MSER-5 would cut the first"), "{page}");
    }
}
