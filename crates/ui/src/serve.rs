//! From options to a view that is served.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use crate::guard::{Guard, random_secret};
use crate::index::Index;
use crate::site::{LIMITS, Render, ResultsSite};

/// Letters of a token, so that it cannot be guessed and is not a whole file.
const TOKEN: std::ops::RangeInclusive<usize> = 16..=256;

/// Bytes of the file that holds a token.
const MOST_TOKEN: u64 = 4096;

/// What to serve, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of runs.
    pub folder: PathBuf,
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The file that holds the token to ask for. Without it a new token is made where other machines
    /// can connect.
    pub token_file: Option<PathBuf>,
    /// Whether to make the index again.
    pub reindex: bool,
}

/// What the user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServeEvent {
    /// The folder cannot be written: its index is lost when the process ends.
    IndexInMemory,
    /// The view can be opened.
    Listening {
        /// Where it listens.
        address: SocketAddr,
        /// What to open; with the token if that is new.
        url: String,
    },
}

/// Why the view cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// The folder cannot be used.
    #[error("cannot read `{0}`: {1}")]
    Folder(PathBuf, io::Error),
    /// The address cannot be used.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The file of the token cannot be read.
    #[error("cannot read `{0}`: {1}")]
    TokenFile(PathBuf, io::Error),
    /// The file of the token holds something else.
    #[error("`{0}` holds no token")]
    NotAToken(PathBuf),
    /// The system refuses.
    #[error("cannot serve: {0}")]
    System(#[from] io::Error),
}

/// Serves a folder of runs on threads of its own until the process ends.
pub fn serve_results(
    options: &Options,
    render: Render,
    tell: &mut dyn FnMut(&ServeEvent),
) -> Result<(), UiError> {
    let unreadable = |error| UiError::Folder(options.folder.clone(), error);
    let mut index = Index::open(&options.folder, options.reindex).map_err(unreadable)?;
    if index.is_in_memory() {
        tell(&ServeEvent::IndexInMemory);
    }
    index.refresh();
    let refused = |error| UiError::Listen(options.listen, error);
    let listener = TcpListener::bind(options.listen).map_err(refused)?;
    let address = listener.local_addr()?;
    let is_loopback = goodput_http::is_local_only(address.ip());
    let given = options.token_file.as_deref().map(read_token).transpose()?;
    let is_new = given.is_none() && !is_loopback;
    let token = if is_new { Some(random_secret()?) } else { given };
    let guard = Guard::new(is_loopback, token.as_deref(), address.port());
    goodput_http::start_server(
        ResultsSite::new(index, guard, random_secret()?, render),
        LIMITS,
        listener,
    )?;
    let place = if address.ip().is_unspecified() {
        format!("HOST:{}", address.port())
    } else {
        address.to_string()
    };
    let query =
        token.filter(|_| is_new).map_or_else(String::new, |token| format!("?token={token}"));
    tell(&ServeEvent::Listening { address, url: format!("http://{place}/{query}") });
    Ok(())
}

fn read_token(path: &Path) -> Result<String, UiError> {
    let text = goodput_files::read_stream(path, MOST_TOKEN)
        .map_err(|error| UiError::TokenFile(path.to_owned(), error))?;
    let token = text.trim();
    let is_fit = TOKEN.contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_fit.then(|| token.to_owned()).ok_or_else(|| UiError::NotAToken(path.to_owned()))
}
