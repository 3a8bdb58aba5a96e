//! The page of several runs of one plan.

use std::fmt::{Error, Write};

use goodput_stats::{Headline, OneRun, Repeats, RunFacts, RunState};

use crate::number::{cell, count};
use crate::plain::plain;
use crate::text::{field, judgement};
use crate::workload;

/// The rows of the table: headline, label, and what its unit is multiplied by.
pub(crate) const ROWS: [(&str, &str, f64); 14] = [
    ("requests_per_s", "req/s", 1.0),
    ("output_tokens_per_s", "output tok/s", 1.0),
    ("ttft_p50", "TTFT p50, ms", 1.0),
    ("ttft_p90", "TTFT p90, ms", 1.0),
    ("ttft_p99", "TTFT p99, ms", 1.0),
    ("tpot_p50", "TPOT p50, ms", 1.0),
    ("tpot_p99", "TPOT p99, ms", 1.0),
    ("itl_p50", "ITL p50, ms", 1.0),
    ("itl_p99", "ITL p99, ms", 1.0),
    ("e2e_p50", "E2E p50, ms", 1.0),
    ("e2e_p99", "E2E p99, ms", 1.0),
    ("error_share", "errors, %", 100.0),
    ("attainment", "attainment, %", 100.0),
    ("goodput_rps", "goodput, req/s", 1.0),
];

/// Columns of the labels and of a cell.
const LABEL: usize = 14;
const CELL: usize = 9;

/// The page of several runs.
pub fn repeats_text(repeats: &Repeats) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, repeats);
    page
}

/// How answers were asked for; how they came is on the page of each run.
pub(crate) fn streaming(run: &RunFacts) -> &'static str {
    if run.stream { "streaming" } else { "not streaming" }
}

fn write_page(page: &mut String, repeats: &Repeats) -> Result<(), Error> {
    if let Some(run) = &repeats.run {
        let streaming = streaming(run);
        writeln!(page, "{}", plain(&run.target))?;
        writeln!(
            page,
            "model {} · {}, {streaming} · {} · goodput {}\n",
            plain(&run.model),
            run.api,
            run.started,
            run.version
        )?;
        field(page, "Workload", &workload::name(run));
    }
    field(page, "Load", &repeats.load);
    let runs = format!("{} of {} asked for are in these figures", repeats.used, repeats.asked);
    field(page, "Runs", &runs);
    table(page, repeats)?;
    each(page, repeats)?;
    judgement(page, repeats.verdict, &repeats.caveats);
    Ok(())
}

fn table(page: &mut String, repeats: &Repeats) -> Result<(), Error> {
    if repeats.headlines.is_empty() {
        return writeln!(page, "\nNothing to compare: no run ended as planned with a good answer.");
    }
    write!(page, "\n{:<LABEL$}", "over runs")?;
    for heading in ["mean", "95 % low", "high", "SD", "CV, %", "min", "max"] {
        write!(page, "{heading:>CELL$}")?;
    }
    writeln!(page)?;
    let mut compared = false;
    for (name, label, times) in ROWS {
        let Some(figure) = repeats.headlines.get(name) else { continue };
        compared |= figure.ratio.is_some();
        row(page, label, figure, times)?;
    }
    if compared {
        between(page, repeats)?;
    }
    Ok(())
}

fn row(page: &mut String, label: &str, figure: &Headline, times: f64) -> Result<(), Error> {
    let text = |value: Option<f64>| value.map_or("–".to_owned(), |value| signed(value * times));
    write!(page, "{label:<LABEL$}{:>CELL$}", signed(figure.mean * times))?;
    for value in [figure.low, figure.high, figure.sd] {
        write!(page, "{:>CELL$}", text(value))?;
    }
    let cv = figure.cv.map_or("–".to_owned(), |cv| format!("{:.1}", cv * 100.0));
    let (min, max) = (signed(figure.min * times), signed(figure.max * times));
    writeln!(page, "{cv:>CELL$}{min:>CELL$}{max:>CELL$}")
}

/// Few runs that spread by much have intervals that reach below zero.
pub(crate) fn signed(value: f64) -> String {
    if value < 0.0 { format!("-{}", cell(-value)) } else { cell(value) }
}

/// Between runs, against what each of them says of itself.
fn between(page: &mut String, repeats: &Repeats) -> Result<(), Error> {
    writeln!(page, "\n{:<LABEL$}{:>13}{:>13}{:>9}", "", "SD between", "SD within", "ratio")?;
    for (name, label, _) in ROWS {
        let Some(figure) = repeats.headlines.get(name) else { continue };
        let (Some(sd), Some(own), Some(ratio)) = (figure.sd, figure.within_sd, figure.ratio) else {
            continue;
        };
        let mark = if figure.differs { "  differ" } else { "" };
        writeln!(page, "{label:<LABEL$}{:>13}{:>13}{ratio:>9.2}{mark}", cell(sd), cell(own))?;
    }
    Ok(())
}

/// Why a run is not in the figures; empty where it is.
pub(crate) fn state(run: &OneRun) -> &'static str {
    match run.state {
        _ if run.is_used => "",
        RunState::Complete => ", not used: nothing measured",
        RunState::Interrupted => ", not used: stopped early",
        RunState::Unfinished => ", not used: killed or still running",
    }
}

fn each(page: &mut String, repeats: &Repeats) -> Result<(), Error> {
    writeln!(
        page,
        "\n{:<LABEL$}{:>7}{:>9}{:>9}{:>9}{:>10}{:>10}  verdict",
        "run", "seed", "window", "ok", "req/s", "TTFT p50", "TTFT p99"
    )?;
    for run in &repeats.runs {
        let OneRun { number, seed, window_s, ok, figures, verdict, .. } = run;
        let figure = |name: &str| figures.get(name).map_or("–".to_owned(), |value| cell(*value));
        // The row has no room for it.
        let state = state(run).replacen(", ", "\n  ", 1);
        writeln!(
            page,
            "{:<LABEL$}{seed:>7}{:>9}{:>9}{:>9}{:>10}{:>10}  {}{state}",
            format!("repeat-{number}"),
            format!("{window_s:.1} s"),
            count(*ok),
            figure("requests_per_s"),
            figure("ttft_p50"),
            figure("ttft_p99"),
            verdict.name()
        )?;
    }
    page.push('\n');
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use goodput_model::{Caveat, CaveatCode, Severity, Verdict};

    use super::*;

    /// Two runs, of which one was stopped.
    pub(crate) fn example() -> Repeats {
        let run = |number, is_used| OneRun {
            number,
            seed: 41 + u64::from(number),
            state: if is_used { RunState::Complete } else { RunState::Interrupted },
            verdict: Verdict::Valid,
            is_used,
            window_s: 60.0,
            scheduled: 1200,
            ok: 1199,
            figures: BTreeMap::from([("ttft_p99".to_owned(), 212.0)]),
        };
        let figure = Headline {
            n: 2,
            mean: 200.0,
            sd: Some(40.0),
            cv: Some(0.2),
            low: Some(-159.4),
            high: Some(559.4),
            min: 171.7,
            max: 228.3,
            within_sd: Some(10.0),
            ratio: Some(4.0),
            differs: true,
        };
        let caveat = Caveat::new(CaveatCode::RunsDiffer, Severity::Warn, "ttft_p99 \x1b[2J");
        Repeats {
            schema: Repeats::SCHEMA.to_owned(),
            verdict: Verdict::Suspect,
            caveats: vec![caveat],
            asked: 3,
            used: 1,
            run: None,
            load: "open loop, 20 offered per second".to_owned(),
            runs: vec![run(1, true), run(2, false)],
            headlines: BTreeMap::from([("ttft_p99".to_owned(), figure)]),
        }
    }

    #[test]
    fn the_page_of_two_runs() {
        let page = repeats_text(&example());
        let has = |line: &str| assert!(page.contains(line), "{line:?} is not in\n{page}");
        has("1 of 3 asked for");
        has("TTFT p99, ms      200.0   -159.4    559.4    40.00     20.0    171.7    228.3\n");
        has("TTFT p99, ms          40.00        10.00     4.00  differ\n");
        has(
            "repeat-2           43   60.0 s    1,199        –         –     212.0  valid\n  not used",
        );
        has("Verdict     SUSPECT");
        assert!(!page.contains('\x1b'));
    }
}
