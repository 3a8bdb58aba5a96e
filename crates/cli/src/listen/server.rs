//! One client's question, and the page that answers it.

use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;

use goodput_clock::now;
use goodput_model::Nanos;

use super::http::{self, Ask, MOST_HEAD, Refusal};
use super::page::Format;
use goodput_http::{Broken, Serve, read_head, see_off, send};

type Pages = Arc<dyn Fn(Format) -> String + Send + Sync>;

/// Serves a page.
#[derive(Clone)]
pub(super) struct Server {
    page: Pages,
    /// For a client's question, and then for the answer.
    patience: Nanos,
    /// Where it listens.
    at: IpAddr,
}

impl Server {
    /// Waits so long for its clients, and listens at this address.
    pub(super) fn new(page: Pages, (patience, at): (Nanos, IpAddr)) -> Self {
        Self { page, patience, at }
    }

    /// Serves until the process ends.
    pub(super) fn start(self, listener: TcpListener) -> io::Result<()> {
        goodput_http::start(self, listener)
    }
}

impl Serve for Server {
    const NAME: &'static str = "scrape";
    const SEATS: usize = 8;

    fn busy(&self) -> Vec<u8> {
        http::answer(refused(Refusal::Busy), &*self.page)
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let end = now() + self.patience;
        let mut is_silent = false;
        let ask = match read_head(&mut stream, MOST_HEAD, end)? {
            Ok((head, _)) => http::read(&head, self.at),
            Err(Broken::Cut) => refused(Refusal::BadRequest),
            Err(Broken::TooSlow) => {
                is_silent = true;
                refused(Refusal::TooSlow)
            }
            Err(Broken::TooLarge) => refused(Refusal::TooLarge),
        };
        let end = now() + self.patience;
        send(&mut stream, &http::answer(ask, &*self.page), end)?;
        // Who said nothing in time does not keep the seat for as long again.
        if is_silent { Ok(()) } else { see_off(&mut stream, end) }
    }
}

fn refused(refusal: Refusal) -> (Ask, bool) {
    (Ask::Refused(refusal), false)
}
