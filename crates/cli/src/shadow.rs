//! `goodput shadow`: users get the primary's answers; a candidate gets some of their requests too.

mod options;
mod view;

use std::process::ExitCode;
use std::sync::Arc;

use goodput_live::shadow::percent;
use goodput_live::{ObserverCommand, Shadow, ShadowOptions, ShadowResult};
use goodput_report::{compare_text, plain};
use tokio::signal::unix::SignalKind;

use crate::args::ShadowArgs;
use crate::error::Failed;
use crate::result::named_folder;
use crate::{listen, live, output, report, verdict};
use view::ShadowView;

/// Runs the verb.
pub(crate) fn shadow(args: &ShadowArgs) -> Result<ExitCode, Failed> {
    verdict::check_files(&args.verdict.files)?;
    goodput_engine::raise_fd_limit();
    let options = options(args)?;
    let [primary, candidate] = options.plan.sides.each_ref().map(|side| side.target.clone());
    let hello = format!(
        "{primary} answers; {} of the requests also go to {candidate}",
        percent(options.plan.share)
    );
    // A signal may arrive as soon as the address is printed.
    let (sender, commands) =
        live::commands(&[(SignalKind::user_defined1(), ObserverCommand::Switch)])?;
    let view = Arc::new(ShadowView::new(args, sender));
    let observer = Arc::<ShadowView>::clone(&view);
    let shadow = Shadow::start(options, observer).map_err(|error| live::failed(&error))?;
    view.follow(args, shadow.figures());
    if let Some(address) = args.shown.metrics_listen {
        let (figures, view) = (Arc::clone(shadow.figures()), Arc::clone(&view));
        let page = move |format| view.page(&figures, format);
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
        folder: named_folder(args.shown.out.as_deref(), "live-shadow"),
        page: |found| compare_text(found, goodput_report::Detail::Full),
        duration: args.duration,
        pairs: args.pairs,
        drain: args.proxy.drain,
    })
}

/// Prints the result.
fn give(args: &ShadowArgs, result: &ShadowResult) -> Result<ExitCode, Failed> {
    let ShadowResult { comparison, folder } = result;
    report::keep_comparison(folder, comparison);
    let path = plain(&folder.display().to_string());
    if args.shown.json {
        output::data(report::json(comparison).as_bytes())?;
    } else if args.shown.quiet {
        output::data(format!("{path}\n").as_bytes())?;
    } else {
        output::page(&compare_text(comparison, goodput_report::Detail::Full))?;
    }
    if !args.shown.quiet {
        output::note(&format!("\nresult folder: {path}"));
    }
    // Shown first: a file that cannot be written must not swallow the result.
    verdict::write_files(&args.verdict.files, comparison)?;
    Ok(ExitCode::from(verdict::code(comparison)))
}

#[cfg(test)]
mod tests;
