//! One client of the web view, with a bound on everything.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use goodput_clock::now;
use goodput_model::Nanos;

use super::answer::Answer;
use super::live;
use super::request::{Method, Request};
use super::site::{MOST_BODY, Reply, Site};
use goodput_http::{Broken, Seats, Serve, read_body, read_head, see_off, send};

/// Clients at once that watch something.
const WATCHERS: usize = 24;

/// Bytes of a head.
const MOST_HEAD: usize = 16 * 1024;

/// For the head of a question: who says nothing holds a seat.
const HEAD_PATIENCE: Nanos = Nanos::from_millis(3_000);

/// For a question's body, and then for taking the answer.
const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// Serves a site.
#[derive(Clone)]
pub(super) struct Server {
    site: Arc<Site>,
    watchers: Seats,
}

impl Server {
    pub(super) fn new(site: Site) -> Self {
        Self { site: Arc::new(site), watchers: Seats::default() }
    }

    /// Serves until the process ends.
    pub(super) fn start(self, listener: TcpListener) -> io::Result<()> {
        goodput_http::start(self, listener)
    }

    /// A question with its body, or why there is none; and whether only a head is wanted.
    fn read(
        &self,
        stream: &mut TcpStream,
        only_head: &mut bool,
    ) -> io::Result<Result<Request, Refusal>> {
        let answer = |answer: Answer| Ok(Err(Refusal::Answer(answer)));
        let (head, rest) = match read_head(stream, MOST_HEAD, now() + HEAD_PATIENCE)? {
            Ok(read) => read,
            Err(broken) => return Ok(Err(Refusal::Broken(broken))),
        };
        let Some(mut request) = Request::read(&head) else {
            return answer(Answer::text("400 Bad Request"));
        };
        *only_head = request.method == Method::Head;
        if let Err(refused) = self.site.check(&request) {
            return answer(refused);
        }
        if request.method == Method::Post {
            let Some(length) = request.body_length() else {
                return answer(Answer::text("411 Length Required"));
            };
            if length > MOST_BODY {
                return answer(Answer::text("413 Content Too Large"));
            }
            match read_body(stream, rest, length, now() + PATIENCE)? {
                Ok(body) => request.body = body,
                Err(broken) => return Ok(Err(Refusal::Broken(broken))),
            }
        }
        Ok(Ok(request))
    }
}

impl Serve for Server {
    const NAME: &'static str = "ui";
    const SEATS: usize = 64;

    fn busy(&self) -> Vec<u8> {
        busy().bytes(false)
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut only_head = false;
        let reply = match self.read(&mut stream, &mut only_head)? {
            Ok(request) => self.site.reply(&request),
            Err(Refusal::Answer(answer)) => answer.into(),
            Err(Refusal::Broken(broken)) => {
                let end = now() + HEAD_PATIENCE;
                send(&mut stream, &refused(broken).bytes(only_head), end)?;
                return match broken {
                    // Nobody is there, or has anything to say: there is nothing to wait for.
                    Broken::Cut | Broken::TooSlow => Ok(()),
                    Broken::TooLarge => see_off(&mut stream, end),
                };
            }
        };
        let answer = match reply {
            Reply::Whole(answer) => answer,
            Reply::Live(_) if only_head => Answer::text("200 OK"),
            Reply::Live(folder) => match self.watchers.take(WATCHERS) {
                Some(_seat) => return live::watch(&mut stream, &folder),
                None => busy(),
            },
        };
        let end = now() + PATIENCE;
        send(&mut stream, &answer.bytes(only_head), end)?;
        see_off(&mut stream, end)
    }
}

/// Why there is no question to answer.
enum Refusal {
    /// It may not be asked, or not so.
    Answer(Answer),
    /// It did not come whole.
    Broken(Broken),
}

fn busy() -> Answer {
    Answer::text("503 Service Unavailable")
}

fn refused(broken: Broken) -> Answer {
    Answer::text(match broken {
        Broken::Cut => "400 Bad Request",
        Broken::TooSlow => "408 Request Timeout",
        Broken::TooLarge => "431 Request Header Fields Too Large",
    })
}
