//! `goodput ui`: a folder of results in a browser.
//!
//! A request goes through `guard` (who may ask) → `site` (which page) and comes back as a `Response`;
//! a `live` view is written as it happens.
//! Nothing that is asked is a path: results are named by ids that only the index can turn into
//! folders.

mod guard;
mod live;
mod pages;
mod site;
#[cfg(test)]
mod tests;
mod view;

use std::fs::File;
use std::io::{self, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use goodput_report::plain;
use goodput_ui::{Index, IndexError};

use crate::args::UiArgs;
use crate::error::{Failed, exit};
use crate::{output, signals};
use guard::Guard;
use site::{LIMITS, ResultsSite};

/// How often a process that waits for its end looks up.
const LOOK_UP: Duration = Duration::from_hours(1);

/// Letters of a token, so that it cannot be guessed or is not a whole file.
const TOKEN: std::ops::RangeInclusive<usize> = 16..=256;

/// Bytes of the file that holds a token.
const MOST_TOKEN: u64 = 4096;

/// Serves until it is stopped.
pub(crate) fn ui(args: &UiArgs) -> Result<ExitCode, Failed> {
    let index = open(args)?;
    let listener = TcpListener::bind(args.listen).map_err(|error| {
        Failed::usage(format!("cannot listen on {}: {error}", args.listen)).hint(
            match error.kind() {
                io::ErrorKind::AddrInUse => {
                    "another program is there; `--listen 127.0.0.1:0` takes a port that is free"
                }
                _ => "name an address of this machine, such as `--listen 127.0.0.1:8642`",
            },
        )
    })?;
    let system = |error: io::Error| Failed::internal(format!("cannot serve: {error}"));
    let address = listener.local_addr().map_err(system)?;
    let is_loopback = goodput_http::is_of_this_machine(address.ip());
    let given = args.token_file.as_deref().map(token_in).transpose()?;
    let is_new = given.is_none() && !is_loopback;
    let token = if is_new { Some(secret().map_err(system)?) } else { given };
    let key = secret().map_err(system)?;
    let guard = Guard::new(is_loopback, token.as_deref(), address.port());
    let site = ResultsSite::new(index, guard, key);
    goodput_http::start(site, LIMITS, listener).map_err(system)?;
    let shown = match (&token, address.ip().is_unspecified()) {
        (_, true) => format!("http://HOST:{}/", address.port()),
        _ => format!("http://{address}/"),
    };
    let query =
        token.filter(|_| is_new).map_or_else(String::new, |token| format!("?token={token}"));
    output::note(&format!(
        "results in {}: {shown}{query}",
        plain(&args.folder.display().to_string())
    ));
    output::warn_if_open(
        address,
        "what is sent is not encrypted; `ssh -L` to a view on the loopback is safer",
    );
    signals::until_stopped(LOOK_UP, || true).map_err(system)?;
    Ok(ExitCode::from(exit::OK))
}

/// The index, up to date.
fn open(args: &UiArgs) -> Result<Index, Failed> {
    let refused = |error: IndexError| match error {
        IndexError::Folder(..) => Failed::usage(error.to_string()).hint(
            "name the folder of results; `goodput run mock --rate 20 --duration 20s` leaves its \
             result in runs/",
        ),
        IndexError::Sqlite(_) => Failed::internal(error.to_string()),
    };
    let mut index = Index::open(&args.folder, args.reindex).map_err(refused)?;
    if index.is_in_memory() {
        output::note("note: the folder cannot be written; its index is kept in memory");
    }
    index.refresh().map_err(refused)?;
    Ok(index)
}

/// The token in a file.
fn token_in(path: &Path) -> Result<String, Failed> {
    let text = goodput_files::read_stream(path, MOST_TOKEN).map_err(|error| {
        Failed::usage(format!("cannot read `{}`: {error}", path.display()))
            .hint("write a token there: `openssl rand -hex 24 > token.txt; chmod 600 token.txt`")
    })?;
    let token = text.trim();
    let is_fit = TOKEN.contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_fit {
        return Err(Failed::usage(format!("`{}` holds no token", path.display()))
            .hint("a token has 16 to 256 letters and digits in one line"));
    }
    Ok(token.to_owned())
}

/// 32 bytes that nobody can guess, in hexadecimal.
pub(crate) fn secret() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(guard::hex(&bytes))
}
