//! `goodput mock`: the simulated engine alone.

use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_clock::now;
use goodput_mock::{
    MockServer, MockSettings, MockTally, ServeError, ServerTlsFiles, SettingsError,
};
use goodput_model::RequestRecord;
use goodput_record::LogWriter;
use goodput_report::plain;
use goodput_sim::Profile;

use crate::args::MockArgs;
use crate::curve;
use crate::error::{Failed, exit};
use crate::printer::Printer;
use crate::{output, signals};
use goodput_lab::run::warn_if_late;

/// How often a server that cannot keep up says so.
const LOOK_AFTER: Duration = Duration::from_secs(5);

/// Records of the truth that may wait for the disk.
const TRUTH_QUEUE: usize = 10_000;

/// The most that a `kill -9` takes from the truth log.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// Serves until it is stopped, or prints what the profile is like.
pub(crate) fn mock(args: &MockArgs) -> Result<ExitCode, Failed> {
    let settings = settings(args)?;
    if args.show_profile {
        output::data(profile_text(&settings, &args.profile)?.as_bytes())?;
    } else if !args.curve.is_empty() {
        curve::print(&settings, args)?;
    } else {
        serve(args, settings)?;
    }
    Ok(ExitCode::from(exit::OK))
}

fn serve(args: &MockArgs, settings: MockSettings) -> Result<(), Failed> {
    goodput_engine::raise_fd_limit();
    let tls = args
        .tls_cert
        .clone()
        .zip(args.tls_key.clone())
        .map(|(certificate, key)| ServerTlsFiles { certificate, key });
    let about = format!("model {} · {}", settings.profile.model, settings.profile.describe());
    let (sink, truth) = args.truth.as_ref().map(|path| keep_truth(path)).transpose()?.unzip();
    let mock = MockServer::start(&args.listen, settings, tls.as_ref(), sink)
        .map_err(|error| Failed::usage(error.to_string()).hint(hint(&error)))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    output::note(&format!("mock engine on {scheme}://{} · {}", mock.address(), plain(&about)));
    output::warn_if_open(
        mock.address(),
        "whoever can connect can use this engine; `--listen 127.0.0.1:8000` keeps it to this machine",
    );
    let (mut seen, printer) = ((0, 0), Printer::new(false));
    signals::until_stopped(LOOK_AFTER, || {
        seen = warn_if_late(&mock, seen, &printer);
        mock.is_running()
    })
    .map_err(|error| Failed::internal(error.to_string()))?;
    let tally = std::sync::Arc::clone(mock.tally());
    mock.stop().map_err(|error| Failed::internal(error.to_string()))?;
    output::note(&plain(&summary(&tally)));
    if let Some(unwritten) = truth.and_then(|writer| writer.join().ok()) {
        let lost = tally.lost_truth() + unwritten;
        if lost > 0 {
            output::note(&format!("warning: {lost} records are missing from the truth log"));
        }
    }
    Ok(())
}

fn hint(error: &ServeError) -> &'static str {
    match error {
        ServeError::Listen { error, .. } if error.kind() == ErrorKind::AddrInUse => {
            "another program has this address; port 0 picks a free one"
        }
        ServeError::Listen { error, .. } if error.kind() == ErrorKind::PermissionDenied => {
            "ports below 1024 are the administrator's; take one above"
        }
        ServeError::Tls(_) => "--tls-cert takes a chain in PEM, --tls-key the key of its first",
        _ => "--listen takes 127.0.0.1:8000; port 0 picks a free one",
    }
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
fn settings(args: &MockArgs) -> Result<MockSettings, Failed> {
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
                .hint(format!("export {name}=…, or leave --api-key-env out"))
        };
        settings.api_key = Some(key.ok_or_else(missing)?);
    }
    Ok(settings)
}

/// A thread that writes the truth log. Ends with the server; returns how many records it could not
/// write.
fn keep_truth(
    path: &std::path::Path,
) -> Result<(SyncSender<RequestRecord>, JoinHandle<u64>), Failed> {
    let log = LogWriter::create(path).map_err(|error| {
        let failed = Failed::usage(format!("cannot create {}: {error}", path.display()));
        failed.hint("--truth takes the name of a new file in a folder that exists")
    })?;
    let (sink, records) = sync_channel(TRUTH_QUEUE);
    let writer = std::thread::Builder::new().name("truth".to_owned());
    let writer = writer.spawn(move || write_truth(log, &records));
    Ok((sink, writer.map_err(|error| Failed::internal(error.to_string()))?))
}

fn write_truth(mut log: LogWriter, records: &Receiver<RequestRecord>) -> u64 {
    let mut flushed = now();
    let mut is_told = false;
    loop {
        match records.recv_timeout(FLUSH_EVERY) {
            Ok(record) => log.append(&record),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let unwritten = log.finish();
                return unwritten.frames + unwritten.lost;
            }
        }
        // By the clock: under load there is no quiet moment.
        if now() - flushed >= FLUSH_EVERY.into() {
            log.flush();
            flushed = now();
            if let Some(error) = log.error().filter(|_| !is_told) {
                is_told = true;
                output::note(&format!("warning: the disk refuses the truth log: {error}"));
            }
        }
    }
}

fn summary(tally: &MockTally) -> String {
    let mut line = format!(
        "served {} requests, {} token events, {} of them more than 1 ms late",
        tally.requests(),
        tally.events(),
        tally.late_events()
    );
    for (kind, count) in tally.faults() {
        line.extend([format!(" · {kind}: {count}")]);
    }
    line
}
