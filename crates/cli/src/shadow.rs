//! `goodput shadow`: users get the primary's answers; a candidate gets some of their requests too.

mod metrics;
mod options;
mod view;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use goodput_campaign::compare::Comparison;
use goodput_files::{MOST_SMALL, read_text_inside};
use goodput_lab::host;
use goodput_live::shadow::percent;
use goodput_live::{Command, Shadow, ShadowOptions, ShadowResult};
use goodput_report::{Circumstances, CompareView, compare_html, compare_text, plain};
use tokio::signal::unix::SignalKind;

use crate::args::ShadowArgs;
use crate::error::Failed;
use crate::{compare, listen, live, output, report};
use view::ShadowView;

/// Runs the verb.
pub(crate) fn shadow(args: &ShadowArgs) -> Result<ExitCode, Failed> {
    compare::check_files(&args.verdict.files)?;
    goodput_engine::raise_fd_limit();
    let options = options(args)?;
    let [primary, candidate] = options.plan.sides.each_ref().map(|side| side.target.clone());
    let hello = format!(
        "answers come from {primary}; {} of what is asked goes to {candidate} too",
        percent(options.plan.share)
    );
    // Whoever sees where it listens may send a signal.
    let (sender, commands) = live::commands(&[(SignalKind::user_defined1(), Command::Switch)])?;
    let view = Arc::new(ShadowView::new(args, sender));
    let observer = Arc::<ShadowView>::clone(&view);
    let shadow = Shadow::start(options, observer).map_err(|error| live::failed(&error))?;
    view.follow(args, shadow.figures());
    if let Some(address) = args.shown.metrics_listen {
        let (figures, view) = (Arc::clone(shadow.figures()), Arc::clone(&view));
        let page = move |format| metrics::page(&figures, &view, format);
        listen::serve(address, args.shown.quiet, page)?;
    }
    view.ticker().say(&plain(&hello));
    let result = shadow.run(&commands).map_err(|error| live::failed(&error))?;
    give(args, &result)
}

fn options(args: &ShadowArgs) -> Result<ShadowOptions, Failed> {
    let primary = live::upstream(&args.proxy, &args.primary)?;
    let candidate = live::upstream(&args.proxy, &args.candidate)?;
    let mut proxy = live::settings(&args.proxy, primary.clone())?;
    proxy.keep_text = args.verdict.similarity;
    live::check_metrics(&args.proxy, args.shown.metrics_listen)?;
    live::check_loop(args.proxy.listen, &candidate)?;
    let plan = options::plan(args, [&primary, &candidate])?;
    let mirror = options::mirror(args, candidate)?;
    live::look_at(&primary)?;
    Ok(ShadowOptions {
        proxy,
        mirror,
        plan,
        folder: folder_path(args.shown.out.as_deref()),
        page: |found| compare_text(found, goodput_report::Detail::Full),
        duration: args.duration,
        pairs: args.pairs,
        drain: args.proxy.drain,
    })
}

/// Prints the result.
fn give(args: &ShadowArgs, result: &ShadowResult) -> Result<ExitCode, Failed> {
    let ShadowResult { comparison, folder } = result;
    report::keep_shadow(folder, comparison);
    if args.shown.json {
        output::data(report::json(comparison).as_bytes())?;
    } else if !args.shown.quiet {
        output::page(&compare_text(comparison, goodput_report::Detail::Full))?;
    }
    if !args.shown.quiet {
        let path = plain(&folder.display().to_string());
        output::note(&format!("\nresult folder: {path}"));
    }
    // Shown first: a file that cannot be written must not swallow the result.
    compare::write_files(&args.verdict.files, comparison)?;
    Ok(ExitCode::from(compare::code(comparison)))
}

/// The numbers of a saved shadow; none where the folder holds none.
pub(crate) fn read(path: &Path) -> Option<Result<Comparison, Failed>> {
    let read = goodput_live::shadow::read(path)?;
    Some(read.map_err(|error| Failed::usage(error.to_string())))
}

/// The page for a browser, with what was asked at its end.
pub(crate) fn html(path: &Path, comparison: &Comparison) -> String {
    // It holds no secrets: they were left out when it was written.
    let plan = read_text_inside(&path.join("shadow.toml"), MOST_SMALL).unwrap_or_default();
    let circumstances = Circumstances { facts: Vec::new(), plan, command: String::new() };
    compare_html(CompareView { comparison, folders: &[], circumstances: Some(&circumstances) })
}

/// `--out`, or a name under `runs/` that is still free.
fn folder_path(out: Option<&Path>) -> PathBuf {
    if let Some(out) = out {
        return out.to_owned();
    }
    let name = format!("{}-live-shadow", host::timestamp().replace(':', "-"));
    let first = Path::new("runs").join(&name);
    let mut others = (2..1000).map(|n| Path::new("runs").join(format!("{name}-{n}")));
    if first.exists() { others.find(|path| !path.exists()).unwrap_or(first) } else { first }
}

#[cfg(test)]
mod tests;
