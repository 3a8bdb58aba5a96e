//! `goodput mock`: the simulated engine alone.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use goodput_campaign::{ProfileLoad, ProfilePoint, profile_point};
use goodput_lab::run::warn_if_late;
use goodput_lab::truth_log::TruthLog;
use goodput_mock::{MockServer, MockSettings, MockTally, ServerTlsFiles, SettingsError};
use goodput_model::{Nanos, SourcePlan};
use goodput_report::{PROFILE_CURVE_HEAD, escape_control, profile_curve_line};
use goodput_sim::Profile;
use goodput_workload::find_preset;
use serde_json::{Value, json};

use crate::args::MockArgs;
use crate::error::{Failed, exit};
use crate::printer::Printer;
use crate::{output, signals};

/// How often a server that cannot keep up says so.
const LOOK_AFTER: Duration = Duration::from_secs(5);

/// Serves until it is stopped, or prints what the profile is like.
pub(crate) fn mock(args: &MockArgs) -> Result<ExitCode, Failed> {
    let settings = mock_settings(args)?;
    if args.show_profile {
        output::print_data(profile_text(&settings, &args.profile)?.as_bytes())?;
    } else if !args.curve.is_empty() {
        print_curve(&settings, args)?;
    } else {
        serve_mock(args, settings)?;
    }
    Ok(ExitCode::from(exit::OK))
}

fn serve_mock(args: &MockArgs, settings: MockSettings) -> Result<(), Failed> {
    goodput_engine::raise_fd_limit();
    let tls = args
        .tls_cert
        .clone()
        .zip(args.tls_key.clone())
        .map(|(certificate, key)| ServerTlsFiles { certificate, key });
    let about = format!("model {} · {}", settings.profile.model, settings.profile.describe());
    let truth =
        args.truth.as_ref().map(|path| TruthLog::create(path, Arc::new(Printer::new(false))));
    let (sink, truth) = truth.transpose()?.unzip();
    let mock = MockServer::start(&args.listen, settings, tls.as_ref(), sink)
        .map_err(|error| Failed::usage(error.to_string()).hint(error.hint()))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    output::print_note(&format!(
        "mock engine on {scheme}://{} · {}",
        mock.address(),
        escape_control(&about)
    ));
    output::warn_if_open(
        mock.address(),
        "anyone who can connect can use this engine; `--listen 127.0.0.1:8000` keeps it to this \
         machine",
    );
    let (mut seen, printer) = ((0, 0), Printer::new(false));
    signals::wait_until_stopped(LOOK_AFTER, || {
        seen = warn_if_late(&mock, seen, &printer);
        mock.is_running()
    })
    .map_err(|error| Failed::internal(error.to_string()))?;
    let tally = Arc::clone(mock.tally());
    mock.stop().map_err(|error| Failed::internal(error.to_string()))?;
    output::print_note(&escape_control(&tally_text(&tally)));
    if let Some(truth) = truth {
        let lost = tally.lost_truth() + truth.finish();
        if lost > 0 {
            output::print_note(&format!("warning: {lost} records are missing from the truth log"));
        }
    }
    Ok(())
}

/// The profile as TOML; a built-in one that nothing was changed about with its comments.
fn profile_text(settings: &MockSettings, name: &str) -> Result<String, Failed> {
    match Profile::builtin_text(name) {
        Some(text) if Profile::builtin(name).as_ref() == Some(&settings.profile) => {
            Ok(text.to_owned())
        }
        _ => settings.profile.to_toml().map_err(Failed::internal),
    }
}

/// The profile with everything that the flags change about it.
fn mock_settings(args: &MockArgs) -> Result<MockSettings, Failed> {
    let wrong = |error: SettingsError| {
        Failed::usage(error.to_string()).hint("goodput mock --help shows examples")
    };
    let mut settings = MockSettings::new(MockSettings::profile(&args.profile).map_err(wrong)?);
    settings.seed = args.seed;
    let flags = [
        ("ttft", &args.ttft),
        ("itl", &args.itl),
        ("slots", &args.slots),
        ("model", &args.model),
        ("reasoning", &args.reasoning),
        ("tool_calls", &args.tool_calls),
    ];
    let flags = flags.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)));
    let set = args.set.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let loras = args.lora.iter().map(|lora| ("lora", lora.as_str()));
    let faults = args.fault.iter().map(|fault| ("fault", fault.as_str()));
    let metrics = [("metrics", args.metrics.as_str())];
    let changes = flags.chain(set).chain(loras).chain(faults).chain(metrics);
    settings.set_all(changes.collect()).map_err(wrong)?;
    if let Some(name) = &args.api_key_env {
        let key = std::env::var(name).ok().filter(|key| !key.is_empty());
        let missing = || {
            Failed::usage(format!("the environment variable {name} is empty or not set"))
                .hint(format!("set {name}, or remove --api-key-env"))
        };
        settings.api_key = Some(key.ok_or_else(missing)?);
    }
    Ok(settings)
}

fn tally_text(tally: &MockTally) -> String {
    let mut line = format!(
        "served {} requests and {} token events, {} of them more than 1 ms late",
        tally.requests(),
        tally.events(),
        tally.late_events()
    );
    for (kind, count) in tally.faults() {
        line.extend([format!(" · {kind}: {count}")]);
    }
    line
}

/// Prints what the profile does at rising load in simulated time: a table, or JSON.
fn print_curve(settings: &MockSettings, args: &MockArgs) -> Result<(), Failed> {
    let Some(SourcePlan::Synthetic { input, output }) =
        find_preset(&args.workload).map(|class| class.source)
    else {
        return Err(Failed::internal("the preset has no lengths"));
    };
    let length = Nanos::from(args.curve_duration);
    if !args.json {
        output::print_data(PROFILE_CURVE_HEAD.as_bytes())?;
    }
    let mut points = Vec::new();
    for &rate in &args.curve {
        let load = ProfileLoad { input, output, rate, length };
        let point = profile_point(&settings.profile, settings.seed, load);
        if args.json {
            points.push(point_json(&point));
        } else {
            output::print_data(profile_curve_line(&point).as_bytes())?;
        }
    }
    if args.json {
        let page = json!({"profile": args.profile, "workload": args.workload, "simulated": true,
            "duration_s": length.as_secs(), "seed": settings.seed, "points": points});
        output::print_data(format!("{page:#}\n").as_bytes())?;
    }
    Ok(())
}

fn point_json(point: &ProfilePoint) -> Value {
    json!({
        "rate": point.rate,
        "requests": point.requests,
        "refused": point.refused,
        "ttft_ms": {"p50": point.ttft_ms.p50, "p99": point.ttft_ms.p99},
        "tpot_ms": {"p50": point.tpot_ms.p50, "p99": point.tpot_ms.p99},
        "output_tokens_per_s": point.tokens_per_s,
        "saturated": point.is_saturated,
    })
}
