//! `shadow` with candidates that hang, flood, break off and lie: users notice nothing.

use goodput_clock::now;
use rustix::process::Signal;

use super::peer::{OriginServer, Visitor, send_and_receive};
use super::stand::{
    BODY, CHAT, Stand, files_with_words, good_answer, good_origin, new_case, sleep_ms,
};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, KEY, ScratchFolder};

/// Users' requests in each case.
const USERS: usize = 12;

/// How much longer than without a shadow a user may wait on a busy machine.
const MARGIN_S: f64 = 0.5;

/// Headers and a query with credentials; none may reach the candidate, nor a disk.
const CREDENTIALS: &str = "Authorization: Bearer users-secret-1\r\nCookie: sid=users-secret-2\r\n\
    X-Api-Key: users-secret-3\r\nApi-Key: users-secret-4\r\nX-Goog-Api-Key: users-secret-5\r\n\
    OpenAI-Organization: users-secret-6\r\nX-Auth-Token: users-secret-7\r\n\
    Proxy-Authorization: Basic users-secret-8\r\nX-Custom-Secret: users-secret-9\r\n\
    X-Amz-Security-Token: users-secret-10\r\nX-Forwarded-Access-Token: users-secret-11\r\n";

fn chat_request() -> String {
    let length = BODY.len();
    format!(
        "POST {CHAT}?key=users-secret-12 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{CREDENTIALS}\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{BODY}"
    )
}

type Candidate = (&'static str, bool, fn(&mut Visitor));

/// Name, whether it reads what it gets, and what it does then.
const CANDIDATES: &[Candidate] = &[
    ("hangs", true, |candidate| {
        candidate.read_request();
        candidate.wait();
    }),
    ("never-reads", false, |_| sleep_ms(3_000)),
    ("closes", true, |candidate| drop(candidate.read_request())),
    // Closing over what was not read is a reset.
    ("resets", false, |_| {}),
    ("garbage", true, |candidate| {
        candidate.read_request();
        candidate.send_bytes(b"\0\x1b[31m no HTTP\r\n\r\n");
    }),
    ("floods-tokens", true, |candidate| {
        candidate.read_request();
        candidate.send_bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
        candidate.flood(b"data: {\"choices\":[{\"delta\":{\"content\":\"Xylophonist\"}}]}\n\n");
    }),
    ("floods-json", true, |candidate| {
        candidate.read_request();
        candidate.send_bytes(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
        candidate.flood(b"[[[[[[[[");
    }),
    ("floods-head", true, |candidate| {
        candidate.read_request();
        candidate.send_bytes(b"HTTP/1.1 200 OK\r\n");
        candidate.flood(b"x: y\r\n");
    }),
    ("floods-interim", true, |candidate| {
        candidate.read_request();
        candidate.flood(b"HTTP/1.1 100 Continue\r\n\r\n");
    }),
    ("cuts", true, |candidate| {
        candidate.read_request();
        candidate.send_bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{");
    }),
    ("redirects", true, |candidate| {
        while candidate.read_request().is_some() {
            candidate.send_bytes(
                b"HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            );
        }
    }),
    ("drips", true, |candidate| {
        candidate.read_request();
        candidate.drip(b"HTTP/1.1 200 OK\r\nx: yyyyyyyyyyyyyyyyy");
    }),
    ("answers-well", true, |candidate| {
        while candidate.read_request().is_some() && candidate.send_bytes(&good_answer()) {}
    }),
];

/// A user's answers through `address`: what came, and the longest wait.
fn play_users(address: std::net::SocketAddr) -> (Vec<Vec<u8>>, f64) {
    let all: Vec<_> =
        (0..USERS).map(|_| send_and_receive(address, chat_request().as_bytes(), 5.0)).collect();
    let longest = all.iter().map(|said| said.seconds).fold(0.0, f64::max);
    (all.iter().map(|said| said.body().to_vec()).collect(), longest)
}

fn attack_as_candidate(
    goodput: &Binary,
    candidate: &OriginServer,
    reads: bool,
) -> Result<Observed, Skip> {
    // It closes after each answer, so that a direct user knows its end.
    let primary = OriginServer::start(|visitor| {
        visitor.read_request();
        visitor.send_bytes(&good_answer());
    })?;
    let (url, primary_url) = (candidate.url(), primary.url());
    let mut args =
        vec!["shadow", "--primary", &primary_url, "--candidate", &url, "--share", "100%"];
    args.extend(["--listen", "127.0.0.1:0", "--out", "shadow", "--drain", "500ms"]);
    args.extend(["--by", "request", "--screen", "off", "--similarity"]);
    let stand = Stand::start(goodput, ScratchFolder::new()?, &args, "listening on http://")?;
    let (direct, usual_s) = play_users(primary.address);
    let (shadowed, longest_s) = play_users(stand.address);
    sleep_ms(300);
    let begin = now();
    let (mut observed, ended, scratch) = stand.end(Signal::INT)?;
    let took = (now().0 - begin.0) as f64 / 1e9;
    observed.check(took < 5.0, || format!("{took:.1} s to end"));
    observed.check(direct == shadowed, || "users got other bytes than without it".to_owned());
    observed.check(longest_s < usual_s + MARGIN_S, || format!("a user waited {longest_s:.2} s"));
    let heard = candidate.received_requests().concat();
    let heard = String::from_utf8_lossy(&heard);
    let is_mirrored = heard.contains(&format!("POST {CHAT} "));
    observed.check(is_mirrored == reads, || format!("mirrored: {is_mirrored}"));
    observed.check(!heard.contains("users-secret"), || format!("the candidate got {heard}"));
    observed.check(!heard.contains(KEY), || "the candidate got our key".to_owned());
    observed.faults.extend(files_with_words(scratch.path(), &["users-secret"]));
    observed.check(scratch.join("shadow/summary.json").is_file(), || ended.stderr.clone());
    Ok(observed)
}

/// Fewer than three blocks give no verdict, which is exit code 5.
pub(super) fn cases() -> Vec<Case> {
    let bound = CaseBounds::exit(&[5]).within(5.0, 128.0);
    let absent = new_case("proxy/shadow", "absent", bound.clone(), |goodput| {
        let mut gone = good_origin()?;
        // No server listens on the first port.
        gone.address.set_port(1);
        attack_as_candidate(goodput, &gone, false)
    });
    let candidates = CANDIDATES.iter().map(|&(name, reads, act)| {
        new_case("proxy/shadow", name, bound.clone(), move |goodput| {
            attack_as_candidate(goodput, &OriginServer::start(act)?, reads)
        })
    });
    candidates.chain([absent]).collect()
}
