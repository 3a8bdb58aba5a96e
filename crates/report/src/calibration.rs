//! The page of a calibration.

use std::fmt::{Error, Write};

use goodput_campaign::{Calibration, CalibrationLevel, ClimbKind};

use goodput_document::number::count;
use goodput_document::render::text::WIDTH;
use goodput_document::wrap::wrap;
use goodput_model::escape_control;

/// Columns before the reason why a level was too much.
const REASON: usize = 16;

/// One line about a level that was just measured.
pub fn calibration_level_line(level: &CalibrationLevel) -> String {
    let outcome = level.limited_by.as_ref().map_or_else(
        || format!("error of TTFT {} ms at p99", ms_text(level.ttft_error_ms[1])),
        |reason| format!("over the limit: {}", escape_control(reason)),
    );
    format!("{}: {outcome}", level_name(level))
}

fn ms_text(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| match value {
        // In five columns as far as it goes.
        value if value < 9.9995 => format!("{value:.3}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    })
}

fn level_name(level: &CalibrationLevel) -> String {
    let what = match level.kind {
        ClimbKind::Streams => "streams",
        ClimbKind::Requests => "req/s",
    };
    format!("{} {what}", count(level.level as u64))
}

fn table_head() -> String {
    format!(
        "{:>14}{:>10}{:>8}{:>7}  {:^14}{:>7}{:^12}{:>6}\n{:>14}{:>10}{:>8}{:>7}  {:>7}{:>7}{:>7}{:>6}{:>6}{:>6}",
        "",
        "",
        "",
        "us CPU",
        "TTFT error ms",
        "ITL err",
        "slip ms",
        "lag ms",
        "level",
        "events/s",
        "req/s",
        "/event",
        "p50",
        "p99",
        "p99",
        "p50",
        "p99",
        "p99"
    )
}

fn table_row(level: &CalibrationLevel) -> String {
    let mut row = format!(
        "{:>14}{:>10}{:>8}{:>7.1}  {:>7}{:>7}{:>7}{:>6}{:>6}{:>6}",
        level_name(level),
        count(level.events_per_s as u64),
        count(level.requests_per_s as u64),
        level.cpu_us_per_event,
        ms_text(level.ttft_error_ms[0]),
        ms_text(level.ttft_error_ms[1]),
        ms_text(level.itl_error_ms),
        ms_text(level.slip_ms[0]),
        ms_text(level.slip_ms[1]),
        ms_text(level.lag_ms),
    );
    if let Some(reason) = &level.limited_by {
        for line in wrap(&format!("over the limit: {}", escape_control(reason)), WIDTH - REASON) {
            // Writing to a string cannot fail.
            let _ = write!(row, "\n{:REASON$}{line}", "");
        }
    }
    row
}

/// The whole page: table, plot, ceiling.
pub fn calibration_text(calibration: &Calibration) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, calibration);
    page
}

fn write_page(page: &mut String, calibration: &Calibration) -> Result<(), Error> {
    let about = format!(
        "{} · {} CPUs, {} workers · stamps by the {} · goodput {} · {}",
        escape_control(&calibration.machine),
        calibration.cpus,
        calibration.workers,
        escape_control(&calibration.stamps),
        escape_control(&calibration.version),
        escape_control(&calibration.date)
    );
    for line in wrap(&about, WIDTH) {
        writeln!(page, "{line}")?;
    }
    writeln!(page, "\n{}", table_head())?;
    for level in &calibration.levels {
        writeln!(page, "{}", table_row(level))?;
    }
    for (kind, title) in [
        (ClimbKind::Streams, "p99 error of TTFT by events per second"),
        (ClimbKind::Requests, "p99 schedule slip by requests per second"),
    ] {
        write_plot(page, calibration, kind, title)?;
    }
    let ceiling = calibration.ceiling;
    writeln!(page)?;
    for (most, what) in [(ceiling.events_per_s, "events"), (ceiling.requests_per_s, "requests")] {
        match most {
            Some(most) => writeln!(
                page,
                "Ceiling   {} {what}/s with errors below 1 ms; stay below half of that",
                count(most as u64)
            ),
            None => {
                writeln!(page, "Ceiling   not found for {what}: something else was the limit first")
            }
        }?;
    }
    Ok(())
}

/// Columns of a bar's full length.
const BAR: f64 = 50.0;
/// The scale is logarithmic between these, in milliseconds.
const LEAST: f64 = 0.001;
const MOST: f64 = 100.0;

fn write_plot(
    page: &mut String,
    all: &Calibration,
    kind: ClimbKind,
    title: &str,
) -> Result<(), Error> {
    let position =
        |ms: f64| ((ms.clamp(LEAST, MOST) / LEAST).ln() / (MOST / LEAST).ln() * BAR) as usize;
    let mut levels: Vec<&CalibrationLevel> =
        all.levels.iter().filter(|level| level.kind == kind).collect();
    levels.sort_by(|a, b| a.level.total_cmp(&b.level));
    writeln!(page, "\n{title} (log, 1 us to 100 ms; `|` is 1 ms)")?;
    for level in levels {
        let (rate, error) = match kind {
            ClimbKind::Streams => (level.events_per_s, level.ttft_error_ms[1]),
            ClimbKind::Requests => (level.requests_per_s, level.slip_ms[1]),
        };
        let Some(error) = error else { continue };
        let mut bar: Vec<char> = vec![' '; BAR as usize + 1];
        bar[..position(error)].fill('#');
        bar[position(1.0)] = '|';
        let bar: String = bar.into_iter().collect();
        writeln!(page, "{:>10} {} {error:.3} ms", count(rate as u64), bar.trim_end())?;
    }
    Ok(())
}
