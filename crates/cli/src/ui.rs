//! `goodput ui`: a folder of results in a browser.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use goodput_report::escape_control;
use goodput_ui::{Options, ServeEvent, UiError};

use crate::args::UiArgs;
use crate::error::{Failed, exit};
use crate::{output, plan, report, signals};

/// How often a process that waits for its end looks up.
const LOOK_UP: Duration = Duration::from_hours(1);

/// Serves until it is stopped.
pub(crate) fn ui(args: &UiArgs) -> Result<ExitCode, Failed> {
    let options = Options {
        folder: args.folder.clone(),
        listen: args.listen,
        token_file: args.token_file.clone(),
        reindex: args.reindex,
    };
    let slo = plan::slo_question(&args.slo)?;
    let render =
        move |folder: &_| report::browser_page(folder, &slo).map_err(|failed| failed.lines());
    let folder = escape_control(&args.folder.display().to_string());
    goodput_ui::serve_results(&options, Box::new(render), &mut |event| print_event(&folder, event))
        .map_err(|error| ui_failure(&error))?;
    signals::wait_until_stopped(LOOK_UP, || true).map_err(|error| ui_failure(&error.into()))?;
    Ok(ExitCode::from(exit::OK))
}

fn print_event(folder: &str, event: &ServeEvent) {
    match event {
        ServeEvent::IndexInMemory => {
            output::print_note("note: the folder cannot be written; its index is kept in memory");
        }
        ServeEvent::Listening { address, url } => {
            output::print_note(&format!("results in {folder}: {url}"));
            output::warn_if_open(
                *address,
                "what is sent is not encrypted; `ssh -L` to a loopback address is safer",
            );
        }
    }
}

fn ui_failure(error: &UiError) -> Failed {
    let hint = match error {
        UiError::System(_) => return Failed::internal(error.to_string()),
        UiError::Folder(..) => {
            "name a folder with results; `goodput run mock --rate 20 --duration 20s` writes a \
             result to runs/"
        }
        UiError::Listen(_, error) if error.kind() == io::ErrorKind::AddrInUse => {
            "another program uses this port; `--listen 127.0.0.1:0` picks a free port"
        }
        UiError::Listen(..) => "name an address of this machine, such as `--listen 127.0.0.1:8642`",
        UiError::TokenFile(..) => {
            "write a token there: `openssl rand -hex 24 > token.txt; chmod 600 token.txt`"
        }
        UiError::NotAToken(_) => "a token has 16 to 256 letters and digits on one line",
    };
    Failed::usage(error.to_string()).hint(hint)
}
