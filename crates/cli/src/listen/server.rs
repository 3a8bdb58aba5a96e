//! The socket: a thread that accepts, and one for each client, of which there are few.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use goodput_clock::{now, pause};
use goodput_model::Nanos;

use super::http::{self, Ask, MOST_HEAD, Refusal};
use super::page::Format;
use crate::host;
use crate::http::{Broken, Seats, read_head, see_off, send};

/// Clients at once. A silent one is gone after a while.
const SEATS: usize = 8;

/// After an accept that failed, which is a want of files or memory.
const BREATH: Nanos = Nanos::from_millis(100);

type Pages = Arc<dyn Fn(Format) -> String + Send + Sync>;

/// Serves a page.
#[derive(Clone)]
pub(super) struct Server {
    page: Pages,
    /// For a client's question, and then for the answer.
    patience: Nanos,
    seats: Seats,
}

impl Server {
    pub(super) fn new(page: Pages, patience: Nanos) -> Self {
        Self { page, patience, seats: Seats::default() }
    }

    /// Serves until the process ends.
    pub(super) fn start(self, listener: TcpListener) -> io::Result<()> {
        let accept = move || {
            host::give_way();
            for stream in listener.incoming() {
                match stream {
                    Ok(stream) => self.welcome(stream),
                    Err(_) => pause(BREATH),
                }
            }
        };
        std::thread::Builder::new().name("listen".to_owned()).spawn(accept).map(drop)
    }

    fn welcome(&self, mut stream: TcpStream) {
        let Some(seat) = self.seats.take(SEATS) else {
            // What does not go out at once does not go out: nobody waits here.
            let _ = stream.set_nonblocking(true);
            let _ = stream.write(&http::answer(refused(Refusal::Busy), &*self.page));
            return;
        };
        let server = self.clone();
        let serve = move || {
            host::give_way();
            // A client that goes away early is no concern of ours.
            let _ = server.serve(stream);
            drop(seat);
        };
        // Without a thread the client finds its connection closed.
        let _ = std::thread::Builder::new().name("scrape".to_owned()).spawn(serve);
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let end = now() + self.patience;
        let ask = match read_head(&mut stream, MOST_HEAD, end)? {
            Ok((head, _)) => http::read(&head),
            Err(Broken::Cut) => refused(Refusal::BadRequest),
            Err(Broken::TooSlow) => refused(Refusal::TooSlow),
            Err(Broken::TooLarge) => refused(Refusal::TooLarge),
        };
        let end = now() + self.patience;
        send(&mut stream, &http::answer(ask, &*self.page), end)?;
        see_off(&mut stream, end)
    }
}

fn refused(refusal: Refusal) -> (Ask, bool) {
    (Ask::Refused(refusal), false)
}
