//! `goodput workload`: shows, writes, and converts traffic without sending it.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use goodput_dataset::{ConvertTarget, FileKind, file_kind};
use goodput_lab::convert::{FileEntries, unknown_format_error, write_entries};
use goodput_lab::dataset_failed;
use goodput_lab::hub::{self, Hub};
use goodput_lab::preview::{self, BuiltWorkload};
use goodput_model::{Keep, Plan};
use goodput_report::escape_control;
use goodput_stats::WorkloadView;
use goodput_workload::Setting;

use crate::args::{
    AmountArgs, ConvertArgs, MakeArgs, ReplayName, SampleArgs, ShowArgs, WorkloadArgs, WorkloadVerb,
};
use crate::error::{Failed, exit};
use crate::printer::Printer;
use crate::{output, plan};

/// Runs the verb.
pub(crate) fn workload(verb: &WorkloadVerb) -> Result<ExitCode, Failed> {
    match verb {
        WorkloadVerb::Show(args) => show_workload(args)?,
        WorkloadVerb::Make(args) => make_workload(args)?,
        WorkloadVerb::Convert(args) => convert_file(args)?,
        WorkloadVerb::Sample(args) => sample_dataset(args)?,
    }
    Ok(ExitCode::from(exit::OK))
}

/// `goodput run --dry-run`
pub(crate) fn dry_run(plan: Plan, hub: &Hub, json: bool) -> Result<ExitCode, Failed> {
    let view = preview::preview_run(plan, hub)?;
    output::print_note("dry run: nothing is sent; this is what would be");
    print_workload(&view, json)?;
    Ok(ExitCode::from(exit::OK))
}

fn show_workload(args: &ShowArgs) -> Result<(), Failed> {
    let mut described = args.workload.clone();
    if let Some(file) = &args.file {
        set_file_flags(&mut described, file)?;
    }
    let built = build_workload(&described, &args.amount)?;
    print_workload(&built.preview(args.amount.num_requests), args.json)
}

/// Prints the first requests of a workload, as a page or as JSON.
fn print_workload(view: &WorkloadView, json: bool) -> Result<(), Failed> {
    if json {
        let page = serde_json::to_string_pretty(view)
            .map_err(|error| Failed::internal(error.to_string()))?;
        return output::print_data((page + "\n").as_bytes());
    }
    output::print_page(&goodput_report::workload_text(view))
}

/// Sets the flags that describe this file.
fn set_file_flags(args: &mut WorkloadArgs, file: &str) -> Result<(), Failed> {
    if plan::is_description(file) {
        file.clone_into(&mut args.workload);
        return Ok(());
    }
    if file.starts_with(hub::PREFIX) {
        args.data.dataset = Some(file.to_owned());
        return Ok(());
    }
    if args.trace.trace_format.is_some() {
        args.trace.trace = Some(file.to_owned());
        return Ok(());
    }
    match file_kind(Path::new(file)).map_err(|error| dataset_failed(&error))? {
        FileKind::Frozen => file.clone_into(&mut args.workload),
        FileKind::Trace => args.trace.trace = Some(file.to_owned()),
        FileKind::Dataset => args.data.dataset = Some(file.to_owned()),
    }
    Ok(())
}

/// The workload that the flags describe.
fn build_workload(args: &WorkloadArgs, amount: &AmountArgs) -> Result<BuiltWorkload, Failed> {
    let plan = plan::workload(args)?;
    let keep = match args.trace.replay {
        ReplayName::Timestamps => Keep::Timestamps,
        ReplayName::ThinkTimes => Keep::ThinkTimes,
    };
    let setting = Setting {
        seed: amount.seed,
        keep,
        time_scale: args.trace.time_scale,
        requests: amount.num_requests,
    };
    BuiltWorkload::new(plan, setting, &Hub::new(Arc::new(Printer::new(false))))
}

fn make_workload(args: &MakeArgs) -> Result<(), Failed> {
    let built = build_workload(&args.workload, &args.amount)?;
    let AmountArgs { seed, num_requests, .. } = args.amount;
    let header = built.freeze(&args.output, seed, num_requests)?;
    let workload = &built.workload;
    for note in workload.notes().iter().chain(&workload.repeat_notes(header.sessions)) {
        output::print_note(&escape_control(&format!("note: {note}")));
    }
    output::print_note(&escape_control(&format!(
        "{}: {} requests in {} sessions, sha256 {}",
        args.output.display(),
        header.requests,
        header.sessions,
        header.sha256
    )));
    Ok(())
}

fn convert_file(args: &ConvertArgs) -> Result<(), Failed> {
    let to: ConvertTarget = args.to.parse().map_err(|error| unknown_format_error(&error))?;
    let (form, skip_invalid) = (args.from.as_deref(), args.skip_invalid);
    let entries = FileEntries { form, skip_invalid, log: args.log.to_plan() };
    write_entries(&entries.read_all(&args.file)?, to, &args.output, &Printer::new(false))
}

fn sample_dataset(args: &SampleArgs) -> Result<(), Failed> {
    let (form, skip_invalid) = (args.from.as_deref(), args.skip_invalid);
    let entries = FileEntries { form, skip_invalid, ..FileEntries::default() };
    let loaded = entries.read_sample(&args.file, args.count, args.seed)?;
    write_entries(&loaded, ConvertTarget::Messages, &args.output, &Printer::new(false))
}
