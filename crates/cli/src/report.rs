//! `goodput report`: from a path to its artifact, its numbers, a document, a format, and a file or the
//! terminal.

mod browser;
mod charts;
mod choose;
mod export;
mod kept;
mod write;

use std::path::Path;
use std::process::ExitCode;

use goodput_campaign::curve::FrontLatency;
use goodput_campaign::sweep::SweepSummary;
use goodput_exchange::FileShape;
use goodput_lab::hooks;
use goodput_lab::results::{self, ResultDetails, SavedResult};
use goodput_model::SloQuestion;
use goodput_record::Artifact;
use goodput_report::PageFormat;

use choose::Chosen;
pub(crate) use export::convert_run;
pub(crate) use goodput_lab::saved::to_json;
pub(crate) use kept::{
    PAGE, write_comparison_page, write_repeats_page, write_run_page, write_sweep_page,
    write_sweeps_page,
};
pub(crate) use write::replace_file;

use crate::args::{Format, ReportArgs};
use crate::error::{Failed, exit};
use crate::printer::Printer;
use crate::{output, plan};

/// How a saved result is looked at.
struct ReportRequest {
    /// The SLO that it is judged by.
    slo: SloQuestion,
    /// The latency of the front of a sweep; none: the usual one.
    front: Option<FrontLatency>,
}

/// Runs the verb.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failed> {
    let artifact = match choose::choose_result(args.folder.as_deref())? {
        Chosen::One(artifact) => *artifact,
        Chosen::Several(folder, all) => return choose::print_list(&folder, &all, args),
    };
    let request = ReportRequest {
        slo: plan::slo_question(&args.slo)?,
        front: args.front.map(FrontLatency::from),
    };
    let to = args.output.as_deref();
    if args.open {
        let page = render_page(&artifact, &request, PageFormat::Html)?;
        return browser::show_page(&artifact, to, &page).map(|()| ExitCode::from(exit::OK));
    }
    let shape = |shape| export::export_file(&artifact, &request, shape, args.detailed, to);
    let text = PageFormat::Text(args.detail_level());
    match if args.json { Format::Json } else { args.format } {
        Format::Json => write::write_text(to, &to_json(&read_result(&artifact, &request)?))?,
        Format::Text if to.is_none() => {
            output::print_page(&render_page(&artifact, &request, text)?)?;
        }
        Format::Text => write::write_text(to, &render_page(&artifact, &request, text)?)?,
        Format::Markdown => {
            write::write_text(to, &render_page(&artifact, &request, PageFormat::Markdown)?)?;
        }
        Format::Junit => {
            write::write_text(to, &render_page(&artifact, &request, PageFormat::Junit)?)?;
        }
        Format::Html => {
            write::write_text(to, &render_page(&artifact, &request, PageFormat::Html)?)?;
        }
        Format::Svg => charts::write_charts(&artifact, &request, to)?,
        Format::Parquet => export::export_tables(&artifact, &request, args.detailed, to)?,
        Format::Csv => shape(FileShape::Csv)?,
        Format::Vllm => shape(FileShape::Vllm)?,
        Format::Sglang => shape(FileShape::Sglang)?,
        Format::Aiperf => shape(FileShape::Aiperf)?,
    }
    if let (Some(to), false) = (&args.traces, matches!(artifact, Artifact::File(_))) {
        hooks::export_saved(artifact.path(), to, &Printer::new(false))?;
    }
    Ok(ExitCode::from(exit::OK))
}

/// The page of whatever lies in a folder, for a browser; judged by this SLO where its runs can be.
pub(crate) fn browser_page(folder: &Path, slo: &SloQuestion) -> Result<String, Failed> {
    let artifact = results::open_artifact(folder)?;
    let slo = if results::can_judge(&artifact) { slo.clone() } else { SloQuestion::default() };
    render_page(&artifact, &ReportRequest { slo, front: None }, PageFormat::Html)
}

/// Draws the front of another latency.
fn choose_front(result: &mut SavedResult, front: FrontLatency) -> Result<(), Failed> {
    let turn = |sweep: &mut SweepSummary| {
        sweep.curve = std::mem::take(&mut sweep.curve).with_front(front);
    };
    match result {
        SavedResult::Sweep(sweep) => turn(sweep),
        SavedResult::Sweeps(all) => {
            all.configurations.iter_mut().filter_map(|one| one.sweep.as_mut()).for_each(turn);
        }
        _ => {
            return Err(Failed::usage("--front is about sweeps, and this result is not one")
                .hint("remove --front, or name the folder of a sweep"));
        }
    }
    Ok(())
}

fn read_result(artifact: &Artifact, request: &ReportRequest) -> Result<SavedResult, Failed> {
    let mut result = results::read_result(artifact, &request.slo, &Printer::new(false))?;
    if let Some(front) = request.front {
        choose_front(&mut result, front)?;
    }
    Ok(result)
}

fn render_page(
    artifact: &Artifact,
    request: &ReportRequest,
    format: PageFormat,
) -> Result<String, Failed> {
    if matches!((artifact, format), (Artifact::File(_), PageFormat::Junit | PageFormat::Html)) {
        return Err(no_page_error());
    }
    let result = read_result(artifact, request)?;
    let details = match format {
        PageFormat::Html => {
            results::result_details(artifact, &result, &request.slo, &Printer::new(false))?
        }
        _ => ResultDetails::None,
    };
    goodput_report::render_page(&result, &details, format).ok_or_else(no_page_error)
}

fn no_page_error() -> Failed {
    Failed::usage("a file of another tool cannot be shown in this format")
        .hint("use text, json, or markdown; the other formats need a run folder")
}
