//! The SLO explorer: limits by hand, and what they would mean for the requests that were measured.
//!
//! The page holds counts, no samples. Whatever limit can be chosen is an edge between counts, so what
//! is shown for it is exact. Without a script the table stands at the limits that were asked for.

#[cfg(test)]
pub(crate) mod tests;

use goodput_stats::{LimitTally, LoadGrid, SloCounts, SloLimits, SloStart, StatedAnswer};

use goodput_document::markup::{Html, escape_text, fill_template};
use goodput_document::number::{amount, count, percent};

/// The explorer over these points, loads ascending, each with its load and the name of that: those
/// of one load are counted together. While the limits stand as they were asked for, it gives the
/// page's own answer. Nothing if nothing was counted.
pub(crate) fn write_explorer(
    html: &mut Html,
    points: &[LoadGrid<'_>],
    gpus: Option<u32>,
    asked: SloLimits,
    answer: Option<&StatedAnswer>,
) {
    let Some(counts) = SloCounts::new(points, gpus, asked, answer) else { return };
    let text = |stops: &[f64], at: usize| stops.get(at).copied().map_or(String::new(), limit_text);
    let last = |stops: &[f64]| stops.len().saturating_sub(1).to_string();
    let rows = Html::from_fn(|html| {
        for load in &counts.points {
            let kept = counts.tally_at_start(load);
            html.element("tr", &[], |html| write_row(html, &load.label, &kept));
        }
    });
    let SloStart { ttft, tpot, percent } = counts.start;
    let with = [
        ("ttft", &*text(&counts.ttft, ttft)),
        ("ttft-place", &ttft.to_string()),
        ("ttft-last", &last(&counts.ttft)),
        ("tpot", &text(&counts.tpot, tpot)),
        ("tpot-place", &tpot.to_string()),
        ("tpot-last", &last(&counts.tpot)),
        ("percent", &number_text(percent)),
        ("gpus", &counts.gpus.unwrap_or(1).to_string()),
        ("says", &escape_text(&explorer_sentence(&counts))),
        ("rows", &rows.into_string()),
    ];
    html.trusted(&fill_template(include_str!("explorer/explorer.html"), &with))
        .script_data("slo-data", &counts);
}

/// One load. The script writes the same cells again.
fn write_row(html: &mut Html, label: &str, kept: &LimitTally) {
    html.text_element("th", &[("scope", "row")], label);
    html.text_element("td", &[], &count(kept.requests));
    let share = kept.good_share();
    let width = format!("--share:{share:.4}");
    html.text_element("td", &[("class", "slo-share"), ("style", &width)], &percent(share));
    let (class, word) = if kept.is_enough { ("good", "yes") } else { ("bad", "no") };
    html.text_element("td", &[("class", class)], word);
    html.text_element("td", &[], &amount(kept.good_rps()));
    html.text_element("td", &[], &amount(kept.good_tps()));
    html.text_element("td", &[], "–");
}

/// What the table says, in a sentence. The script says it in the same words.
fn explorer_sentence(counts: &SloCounts) -> String {
    let [ttft, tpot] = [(&counts.ttft, counts.start.ttft), (&counts.tpot, counts.start.tpot)]
        .map(|(stops, at)| stops.get(at).copied().map_or("–".to_owned(), limit_text));
    let wanted = number_text(counts.start.percent);
    let all: Vec<(&str, LimitTally)> = counts
        .points
        .iter()
        .map(|load| (load.label.as_str(), counts.tally_at_start(load)))
        .collect();
    let begin = format!("TTFT below {ttft} and TPOT below {tpot} for at least {wanted} %: ");
    let figures = |kept: &LimitTally| {
        format!(
            "{} good req/s and {} good output tok/s",
            amount(kept.good_rps()),
            amount(kept.good_tps())
        )
    };
    if let Some(told) = &counts.answer {
        let there = told.row.and_then(|row| all.get(row));
        let there = there.map_or(String::new(), |(_, kept)| format!("; {}", figures(kept)));
        return format!("As asked: {}{there}.", told.text);
    }
    if let [(_, kept)] = all.as_slice() {
        let word = if kept.is_enough { "kept" } else { "missed" };
        return format!(
            "{begin}{word}, {} are good; {}.",
            percent(kept.good_share()),
            figures(kept)
        );
    }
    // One that keeps it above one that does not is luck, or a server that changed.
    let kept = all.iter().take_while(|(_, kept)| kept.is_enough);
    match (kept.last(), all.first()) {
        (Some((label, kept)), _) => format!(
            "{begin}up to {label} every load keeps it (as measured, not confirmed); {}.",
            figures(kept)
        ),
        (None, Some((label, _))) => {
            format!("{begin}{label}, the lowest load that was measured, misses it.")
        }
        (None, None) => format!("{begin}no load was measured."),
    }
}

/// A limit with its unit.
fn limit_text(ms: f64) -> String {
    if ms >= 1000.0 {
        format!("{} s", number_text(ms / 1000.0))
    } else {
        format!("{} ms", number_text(ms))
    }
}

/// Six digits at most, and none that say nothing.
fn number_text(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    rounded.to_string()
}
