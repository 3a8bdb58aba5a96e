//! `goodput shadow`: users get the primary's answers; a candidate gets some of their requests too.

mod options;
mod view;

use std::process::ExitCode;
use std::sync::Arc;

use goodput_live::shadow::percent_text;
use goodput_live::{ObserverCommand, Shadow, ShadowOptions, ShadowResult};
use goodput_report::{compare_text, escape_control};
use tokio::signal::unix::SignalKind;

use crate::args::ShadowArgs;
use crate::error::Failed;
use crate::result::named_folder_path;
use crate::{listen, live, output, report, verdict};
use view::ShadowView;

/// Runs the verb.
pub(crate) fn shadow(args: &ShadowArgs) -> Result<ExitCode, Failed> {
    verdict::check_files(&args.verdict.files)?;
    goodput_engine::raise_fd_limit();
    let options = shadow_options(args)?;
    let [primary, candidate] = options.plan.sides.each_ref().map(|side| side.target.clone());
    let hello = format!(
        "{primary} answers; {} of the requests also go to {candidate}",
        percent_text(options.plan.share)
    );
    // A signal may arrive as soon as the address is printed.
    let (sender, commands) =
        live::signal_commands(&[(SignalKind::user_defined1(), ObserverCommand::Switch)])?;
    let view = Arc::new(ShadowView::new(args, sender));
    let observer = Arc::<ShadowView>::clone(&view);
    let shadow = Shadow::start(options, observer).map_err(|error| live::live_failure(&error))?;
    view.follow(args, shadow.figures());
    if let Some(address) = args.shown.metrics_listen {
        let (figures, view) = (Arc::clone(shadow.figures()), Arc::clone(&view));
        let page = move |format| view.page(&figures, format);
        listen::serve_metrics_page(address, args.shown.quiet, page)?;
    }
    view.ticker().print(&escape_control(&hello));
    let result = shadow.run(&commands).map_err(|error| live::live_failure(&error))?;
    print_result(args, &result)
}

fn shadow_options(args: &ShadowArgs) -> Result<ShadowOptions, Failed> {
    let primary = live::build_upstream(&args.proxy, &args.primary)?;
    let candidate = live::build_upstream(&args.proxy, &args.candidate)?;
    let mut proxy = live::proxy_settings(&args.proxy, primary.clone())?;
    proxy.keep_text = args.verdict.similarity;
    live::check_metrics(&args.proxy, args.shown.metrics_listen)?;
    live::check_loop(args.proxy.listen, &candidate)?;
    let plan = options::shadow_plan(args, [&primary, &candidate])?;
    let mirror = options::mirror_settings(args, candidate)?;
    live::warn_unless_reachable(&primary)?;
    Ok(ShadowOptions {
        proxy,
        mirror,
        plan,
        folder: named_folder_path(args.shown.out.as_deref(), "live-shadow"),
        page: |found| compare_text(found, goodput_report::Detail::Full),
        duration: args.duration,
        pairs: args.pairs,
        drain: args.proxy.drain,
    })
}

/// Prints the result.
fn print_result(args: &ShadowArgs, result: &ShadowResult) -> Result<ExitCode, Failed> {
    let ShadowResult { comparison, folder } = result;
    report::write_comparison_page(folder, comparison);
    let path = escape_control(&folder.display().to_string());
    if args.shown.json {
        output::print_data(report::to_json(comparison).as_bytes())?;
    } else if args.shown.quiet {
        output::print_data(format!("{path}\n").as_bytes())?;
    } else {
        output::print_page(&compare_text(comparison, goodput_report::Detail::Full))?;
    }
    if !args.shown.quiet {
        output::print_note(&format!("\nresult folder: {path}"));
    }
    // Shown first: a file that cannot be written must not swallow the result.
    verdict::write_files(&args.verdict.files, comparison)?;
    Ok(ExitCode::from(verdict::exit_code(comparison)))
}

#[cfg(test)]
mod tests;
