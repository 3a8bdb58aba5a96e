//! `goodput mock`: the simulated engine alone.

use std::process::ExitCode;

use goodput_mock::{Delay, Mock, Settings, TlsFiles};

use crate::args::MockArgs;
use crate::error::{Failed, exit};
use crate::output;

/// Serves until the process is stopped.
pub(crate) fn mock(args: &MockArgs) -> Result<ExitCode, Failed> {
    goodput_engine::raise_fd_limit();
    let settings = settings(args)?;
    let tls = args
        .tls_cert
        .clone()
        .zip(args.tls_key.clone())
        .map(|(certificate, key)| TlsFiles { certificate, key });
    let mock = Mock::start(&args.listen, settings.clone(), tls.as_ref()).map_err(|error| {
        Failed::usage(error.to_string())
            .hint("--listen takes 127.0.0.1:8000; port 0 picks a free one")
    })?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    output::note(&format!(
        "mock engine on {scheme}://{} · model {} · TTFT {} · ITL {} · {} slots",
        mock.address(),
        settings.model,
        settings.ttft,
        settings.itl,
        settings.slots
    ));
    mock.wait().map_err(|error| Failed::internal(error.to_string()))?;
    Ok(ExitCode::from(exit::OK))
}

fn settings(args: &MockArgs) -> Result<Settings, Failed> {
    let known = Settings::PROFILES.join(", ");
    let mut settings = Settings::profile(&args.profile).ok_or_else(|| {
        Failed::usage(format!("there is no profile `{}`", args.profile))
            .hint(format!("the profiles are {known}"))
    })?;
    let delay = |text: &String| text.parse::<Delay>().map_err(Failed::usage);
    if let Some(ttft) = &args.ttft {
        settings.ttft = delay(ttft)?;
    }
    if let Some(itl) = &args.itl {
        settings.itl = delay(itl)?;
    }
    settings.slots = args.slots.unwrap_or(settings.slots);
    settings.model = args.model.clone().unwrap_or(settings.model);
    settings.seed = args.seed;
    Ok(settings)
}
