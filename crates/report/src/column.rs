//! The page of a column of numbers.

use std::fmt::{Error, Write};

use goodput_stats::{Column, Quality};

use crate::latency;
use crate::number::{cell, count};
use crate::text::field;

/// What a column of numbers says.
pub fn column_text(column: &Column) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, column);
    page
}

fn write_page(page: &mut String, column: &Column) -> Result<(), Error> {
    latency::one(page, &column.metric)?;
    writeln!(page)?;
    let p99 = column.metric.percentiles.get("99");
    if let Some(n_eff) = p99.and_then(|percentile| percentile.n_eff) {
        let text = format!(
            "{} values say as much about p99 as {n_eff:.0} independent ones",
            count(column.metric.n)
        );
        field(page, "Worth", &text);
    }
    let is_plain = p99.is_some_and(|percentile| percentile.quality == Quality::Ok);
    if let Some(ratio) = column.metric.tail_ratio.filter(|_| is_plain) {
        field(page, "Tail", &format!("p99 is {ratio:.2} times p50"));
    }
    if let Some(found) = column.mser5 {
        let limit = if found.at_limit { ", the most it may: too short for it" } else { "" };
        let text = format!("MSER-5 cuts the first {} values{limit}", count(found.cut as u64));
        field(page, "Warm-up", &text);
    }
    if let Some(trend) = column.trend {
        let drift =
            trend.drift_share.map_or("–".to_owned(), |share| format!("{:+.1} %", share * 100.0));
        field(
            page,
            "Trend",
            &format!("{drift} from begin to end (Mann–Kendall, p {})", chance(trend.test.p)),
        );
    }
    if let Some(shift) = column.shift.filter(|shift| shift.test.p < 0.05) {
        let text = format!(
            "most likely at value {} (Pettitt, p {})",
            count(shift.at_value),
            chance(shift.test.p)
        );
        field(page, "Shift", &text);
    }
    let text = column.two_modes.map_or("one, as far as can be told".to_owned(), |modes| {
        let (low, high) = (modes.low_share * 100.0, (1.0 - modes.low_share) * 100.0);
        format!(
            "two: {low:.0} % around {} and {high:.0} % around {}",
            cell(modes.low_median),
            cell(modes.high_median)
        )
    });
    field(page, "Groups", &text);
    Ok(())
}

/// Never rounded to nothing.
fn chance(p: f64) -> String {
    if p < 0.0001 { "below 0.0001".to_owned() } else { format!("{p:.4}") }
}
