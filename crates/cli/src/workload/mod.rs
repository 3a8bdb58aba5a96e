//! `goodput workload`: traffic that is looked at, written and converted, but not sent.

mod convert;
mod served;
mod show;

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use goodput_dataset::frozen;
use goodput_dataset::{DatasetError, FileKind, kind_of};
use goodput_model::{Api, Keep, OutputLength, Plan};
use goodput_report::ServedView;
use goodput_wire::RequestFormat;
use goodput_workload::{Setting, Workload};

use crate::args::{AmountArgs, MakeArgs, ReplayName, ShowArgs, WorkloadArgs, WorkloadVerb};
use crate::error::{Failed, exit};
use crate::{output, plan};
use goodput_lab::hub::{self, Hub};
use goodput_lab::materials::{self, Materials};
use goodput_lab::{readiness, run, vocabulary};

/// Runs the verb.
pub(crate) fn workload(verb: &WorkloadVerb) -> Result<ExitCode, Failed> {
    match verb {
        WorkloadVerb::Show(args) => show(args)?,
        WorkloadVerb::Make(args) => make(args)?,
        WorkloadVerb::Convert(args) => convert::convert(args)?,
        WorkloadVerb::Sample(args) => convert::sample(args)?,
    }
    Ok(ExitCode::from(exit::OK))
}

/// `goodput run --dry-run`
pub(crate) fn dry_run(mut plan: Plan, hub: &Hub, json: bool) -> Result<ExitCode, Failed> {
    let materials = run::gather(&mut plan, hub)?;
    let plan = &mut plan;
    vocabulary::by_tokenizer(&mut plan.workload, materials.tokenizer.as_ref())?;
    let served = served::view(&materials);
    let workload = materials.workload(&plan.workload)?;
    goodput_lab::checks::check_workload(plan, &workload)?;
    let model = plan.target.model.as_deref().unwrap_or("MODEL");
    let dialect = readiness::dialect(plan, model)?;
    let requests = materials::setting(&plan.load).requests.min(LOOKED_AT);
    output::note("nothing is sent: this is what would be");
    show::print(&plan.workload, &workload, &dialect, served, (requests, json))?;
    Ok(ExitCode::from(exit::OK))
}

/// Requests of a dry run that are looked at.
const LOOKED_AT: u64 = 1_000;

fn show(args: &ShowArgs) -> Result<(), Failed> {
    let mut described = args.workload.clone();
    if let Some(file) = &args.file {
        describe(&mut described, file)?;
    }
    let (workload, plan, served) = build(&described, &args.amount)?;
    let mut dialect =
        RequestFormat::new(Api::Chat, "MODEL", true).with_constraints(plan.constraints);
    if plan.output == OutputLength::Exact {
        dialect = dialect.with_exact_output();
    }
    show::print(&plan, &workload, &dialect, served, (args.amount.num_requests, args.json))
}

/// Says in flags what a file is.
fn describe(args: &mut WorkloadArgs, file: &str) -> Result<(), Failed> {
    let path = Path::new(file);
    if path.extension().is_some_and(|extension| extension == "toml") {
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
    match kind_of(path).map_err(|error| refused(&error))? {
        FileKind::Frozen => file.clone_into(&mut args.workload),
        FileKind::Trace => args.trace.trace = Some(file.to_owned()),
        FileKind::Dataset => args.data.dataset = Some(file.to_owned()),
    }
    Ok(())
}

/// The workload that the flags describe, and how it was served where it was recorded.
fn build(
    args: &WorkloadArgs,
    amount: &AmountArgs,
) -> Result<(Workload, goodput_model::WorkloadPlan, Option<ServedView>), Failed> {
    let mut plan = plan::workload(args)?;
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
    let materials = Materials::gather(
        &mut plan,
        setting,
        &Hub::new(std::sync::Arc::new(crate::printer::Printer::new(false))),
    )?;
    vocabulary::by_tokenizer(&mut plan, materials.tokenizer.as_ref())?;
    let served = served::view(&materials);
    Ok((materials.workload(&plan)?, plan, served))
}

fn make(args: &MakeArgs) -> Result<(), Failed> {
    let (workload, plan, _) = build(&args.workload, &args.amount)?;
    if args.output.exists() {
        return Err(exists(&args.output));
    }
    let mut header = frozen::FrozenHeader::new(&plan.name, args.amount.seed);
    header.facts.insert("description".to_owned(), goodput_workload::describe(&plan));
    header.facts.insert("workload".to_owned(), workload.hash());
    let output = if plan.output == OutputLength::Exact { "exact" } else { "limit" };
    header.facts.insert("output".to_owned(), output.to_owned());
    header.facts.insert("constraints".to_owned(), plan.constraints.name().to_owned());
    let mut writer =
        frozen::FrozenWriter::create(&args.output, header).map_err(|error| refused(&error))?;
    let mut left = args.amount.num_requests;
    for number in 0.. {
        let Some(session) = workload.session(number).filter(|_| left > 0) else { break };
        left = left.saturating_sub(session.requests());
        writer.write(workload.arrival(number), &session).map_err(|error| refused(&error))?;
    }
    let header = writer.finish().map_err(|error| refused(&error))?;
    for note in workload.notes().iter().chain(&workload.repeats(header.sessions)) {
        output::note(&goodput_report::plain(&format!("note: {note}")));
    }
    output::note(&goodput_report::plain(&format!(
        "{}: {} requests in {} sessions, sha256 {}",
        args.output.display(),
        header.requests,
        header.sessions,
        header.sha256
    )));
    Ok(())
}

fn refused(error: &DatasetError) -> Failed {
    let failed = Failed::usage(error.to_string());
    match error.hint() {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}

/// A new file, for the user alone, as it may hold prompts; what is there already is not overwritten.
fn create(path: &Path) -> Result<std::fs::File, Failed> {
    std::fs::File::options().write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return exists(path);
        }
        Failed::usage(format!("cannot write `{}`: {error}", path.display()))
    })
}

fn exists(path: &Path) -> Failed {
    Failed::usage(format!("`{}` exists already", path.display()))
        .hint("name another file: this one is not overwritten")
}
