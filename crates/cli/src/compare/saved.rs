//! Saved runs, and a saved baseline against a live target.

use std::path::{Path, PathBuf};

use goodput_campaign::compare::Comparison;
use goodput_lab::compare::gates;
use goodput_lab::compare::saved::{self, ComparedServer, SavedRequest};
use goodput_lab::folder_failed;
use goodput_model::{Measure, Plan};
use goodput_record::{CampaignFolder, FolderError, SeriesFolder};

use crate::args::CompareArgs;
use crate::error::Failed;
use crate::result::folder_path;
use crate::setup::Setup;
use crate::{explicit_flags, plan, report};

/// Compares saved runs. Returns the folder of the comparison (an empty path if it is not saved) and
/// its result.
pub(super) fn compare_saved(
    setup: &Setup,
    args: &CompareArgs,
) -> Result<(PathBuf, Comparison), Failed> {
    let targets = saved::parse_targets(&args.targets, args.reference.as_deref())?;
    refuse_flags(
        &explicit_flags::command_line_flags(),
        targets.iter().any(ComparedServer::is_live),
    )?;
    let mut asked = Measure::new(Vec::new());
    let gates = gates::parse_gates(&args.gate.gate, &*setup.observer)?;
    plan::promise(&args.slo, &mut asked)?;
    let request = SavedRequest {
        targets,
        gates,
        margin: args.gate.margin,
        is_margin_chosen: explicit_flags::is_typed("margin"),
        insists: args.gate.anyway,
        gpus: &args.gate.gpus,
        prices: &args.gate.price_per_gpu_hour,
        meta: plan::parse_meta(&args.endpoint.observe.meta)?,
        under_test: args.gate.under_test.clone(),
        slo: asked.slo,
        attainment: asked.attainment,
        out: args.output.out.clone(),
        default_out: &|plan| folder_path(None, plan, "compare"),
        replan: &|plan, url| plan_for_server(plan, url, args),
    };
    let (kept, comparison) = saved::compare_saved(setup, request)?;
    if let Some(out) = &kept {
        save_comparison(out, &comparison)?;
    }
    Ok((kept.unwrap_or_default(), comparison))
}

/// The flags that apply to saved runs.
const ABOUT_SAVED: [&str; 18] = [
    "targets",
    "meta",
    "under_test",
    "reference",
    "margin",
    "gate",
    "anyway",
    "gpus",
    "price_per_gpu_hour",
    "junit",
    "markdown",
    "slo",
    "attainment",
    "goodput",
    "out",
    "json",
    "quiet",
    "verbose",
];

/// The flags for a server on which the runs of a baseline are repeated.
const ABOUT_LIVE: [&str; 8] = [
    "model",
    "headers",
    "api_key_env",
    "cacert",
    "insecure",
    "wait_ready",
    "no_probe",
    "save_text",
];

/// Refuses flags whose value comes from the saved runs or from the plans of the baseline.
fn refuse_flags(typed: &[(String, String)], is_live: bool) -> Result<(), Failed> {
    let is_known = |id: &str| ABOUT_SAVED.contains(&id) || (is_live && ABOUT_LIVE.contains(&id));
    let Some((id, name)) = typed.iter().find(|(id, _)| !is_known(id)) else { return Ok(()) };
    Err(match id.as_str() {
        "count_with" => Failed::usage(
            "--count-with does not apply to saved runs: their tokens were counted when they were \
             measured",
        )
        .hint(
            "measure with --count-with FILE; such runs are also compared by that count \
             (recounted_tokens_per_s) and in characters (characters_per_s)",
        ),
        _ if is_live => Failed::usage(format!("{name} comes from the baseline's plan"))
            .hint("remove it, or measure both targets again: goodput compare URL URL"),
        _ => Failed::usage(format!("{name} does not apply to saved results: nothing is measured"))
            .hint("remove it, or name servers instead of folders"),
    })
}

/// The plan of a run of the baseline, for this server.
fn plan_for_server(plan: &Plan, url: &str, args: &CompareArgs) -> Result<Plan, Failed> {
    let mut plan = plan.clone();
    let endpoint = &args.endpoint;
    // What the user states of the baseline's server is not about this one.
    plan.system.clear();
    let target = &mut plan.target;
    url.clone_into(&mut target.url);
    if endpoint.model.is_some() {
        target.model.clone_from(&endpoint.model);
    }
    if let Some(name) = &endpoint.api_key_env {
        target.api_key_env.clone_from(name);
    }
    if endpoint.cacert.is_some() {
        target.cacert.clone_from(&endpoint.cacert);
    }
    target.insecure |= endpoint.insecure;
    target.probe &= !endpoint.no_probe;
    target.wait_ready = target.wait_ready.max(endpoint.wait_ready);
    plan.workload.save_text |= args.output.save_text;
    plan::complete_headers(&mut plan, endpoint)?;
    plan::check(&plan)?;
    Ok(plan)
}

/// Writes the comparison into the folder of its runs.
fn save_comparison(out: &Path, comparison: &Comparison) -> Result<(), Failed> {
    let failed = |error: FolderError| folder_failed(&error);
    if !out.exists() {
        SeriesFolder::create(out).map_err(failed)?;
    }
    let page = goodput_report::compare_text(comparison, goodput_report::Detail::Full);
    report::replace_file(&out.join("summary.json"), report::to_json(comparison).as_bytes())?;
    report::replace_file(&out.join(CampaignFolder::REPORT), page.as_bytes())?;
    report::write_comparison_page(out, comparison);
    Ok(())
}
