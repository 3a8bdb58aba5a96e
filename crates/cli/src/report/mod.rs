//! `goodput report`: the numbers of a saved run, computed anew from its log, as a page or a file.

mod export;
mod foreign;
mod html;
mod points;

use std::path::Path;
use std::process::ExitCode;

use goodput_record::{RunFolder, SeriesFolder};
use goodput_stats::repeats;

pub(crate) use export::{converted, replace};
pub(crate) use goodput_lab::saved::{SavedRun as Read, json, read, read_as, summarise};
pub(crate) use html::{
    PAGE, keep_comparison, keep_repeats, keep_run, keep_shadow, keep_sweep, keep_sweeps,
};

use crate::args::{Format, ReportArgs};
use crate::error::{Failed, exit};
use crate::printer::Printer;
use crate::{compare, output};
use goodput_lab::hooks;
use goodput_lab::saved::read_series;
use goodput_lab::sweep::{self, SavedSweep};

/// Runs the verb.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failed> {
    if !args.folder.exists() {
        return Err(Failed::usage(format!("`{}` does not exist", args.folder.display()))
            .hint("a report is of the folder that a run, a sweep or a comparison printed"));
    }
    let format = if args.json { Format::Json } else { args.format };
    let is_table = matches!(format, Format::Csv | Format::Parquet);
    let is_shape = matches!(format, Format::Vllm | Format::Sglang | Format::Aiperf);
    if args.folder.is_file() && !is_table && !is_shape {
        let page = foreign::page(&args.folder, format, args.detail())?;
        export::write(args.output.as_deref(), &page)?;
        return Ok(ExitCode::from(exit::OK));
    }
    match format {
        Format::Text if args.output.is_none() => output::page(&page(args, format)?)?,
        Format::Text | Format::Json | Format::Markdown | Format::Junit => {
            export::write(args.output.as_deref(), &page(args, format)?)?;
        }
        Format::Html => export::write(args.output.as_deref(), &html::page(&args.folder)?)?,
        Format::Svg => html::pictures(&args.folder, args.output.as_deref())?,
        Format::Csv | Format::Parquet | Format::Vllm | Format::Sglang | Format::Aiperf => {
            export::export(&args.folder, format, args.output.as_deref(), args.detailed)?;
        }
    }
    if let Some(to) = &args.traces {
        hooks::export_saved(&args.folder, to, &Printer::new(false))?;
    }
    Ok(ExitCode::from(exit::OK))
}

/// The page of whatever lies in a folder, for a browser.
pub(crate) fn browser_page(folder: &Path) -> Result<String, Failed> {
    html::page(folder)
}

/// What a folder has to say, in words.
fn page(args: &ReportArgs, format: Format) -> Result<String, Failed> {
    // A run may lie in a folder with any name beside it; only one without a run of its own is several.
    let series =
        SeriesFolder::open(&args.folder).filter(|_| RunFolder::open(&args.folder).is_err());
    Ok(if let Some(saved) = compare::read(&args.folder) {
        let comparison = saved?;
        match format {
            Format::Json => json(&comparison),
            Format::Markdown => goodput_report::compare_markdown(&comparison),
            Format::Junit => goodput_report::compare_junit(&comparison),
            _ => goodput_report::compare_text(&comparison, args.detail()),
        }
    } else if let Some(saved) = sweep::read(&args.folder, &Printer::new(false)) {
        match (saved?, format) {
            (SavedSweep::One(summary), Format::Json) => json(&summary),
            (SavedSweep::One(summary), Format::Markdown) => {
                goodput_report::sweep_markdown(&summary)
            }
            (SavedSweep::One(summary), Format::Junit) => goodput_report::sweep_junit(&summary),
            (SavedSweep::One(summary), _) => goodput_report::sweep_text(&summary, args.detail()),
            (SavedSweep::Many(sweeps), Format::Json) => json(&sweeps),
            (SavedSweep::Many(sweeps), Format::Markdown) => {
                goodput_report::sweeps_markdown(&sweeps)
            }
            (SavedSweep::Many(sweeps), Format::Junit) => goodput_report::sweeps_junit(&sweeps),
            (SavedSweep::Many(sweeps), _) => goodput_report::sweeps_text(&sweeps, args.detail()),
        }
    } else if let Some(series) = series {
        let found = repeats(&read_series(&series, &Printer::new(false)));
        match format {
            Format::Json => json(&found),
            Format::Markdown => goodput_report::repeats_markdown(&found),
            Format::Junit => goodput_report::repeats_junit(&found),
            _ => goodput_report::repeats_text(&found, args.detail()),
        }
    } else {
        let summary = read(&args.folder)?;
        match format {
            Format::Json => json(&summary),
            Format::Markdown => goodput_report::run_markdown(&summary),
            Format::Junit => goodput_report::run_junit(&summary),
            _ => goodput_report::text(&summary, args.detail()),
        }
    })
}
