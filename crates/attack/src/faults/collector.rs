//! Collectors of traces (`--traces URL`) that misbehave. The load is over by then: no result may
//! suffer, and the report waits a bounded time.

use goodput_clock::pause;
use goodput_model::Nanos;

use super::peer::{HostConnection, Script, ScriptedServer};
use super::{MEASURED, MOCK, SHORT, Uses, new_case, number_at, read_summary};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, KEY, ScratchFolder, files_with_key};

/// A name, what the collector does, how long it may cost, and what a warning must say.
const BEHAVIORS: [(&str, Script, f64, &str); 11] = [
    (
        "hangs",
        |_, line| {
            line.hang();
            Ok(())
        },
        12.0,
        "warning",
    ),
    ("answers 500", |_, line| line.send(REFUSAL), 2.0, "500"),
    ("answers 500 with the key", |head, line| echo_request(head, line), 2.0, "500"),
    (
        "answers garbage",
        |_, line| line.send(&[0xff, 0x1b, b'[', b'2', b'J', 0, b'\n']),
        2.0,
        "warning",
    ),
    (
        "answers 200 with garbage",
        |_, line| line.send_answer("text/html", "<b>\u{1b}[2J</b>"),
        2.0,
        "",
    ),
    ("redirects", |_, line| line.send(REDIRECT), 2.0, "307"),
    ("closes at once", |_, _| Ok(()), 2.0, "warning"),
    (
        "closes in mid-body",
        |_, line| line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
        2.0,
        "",
    ),
    ("floods", flood_answer, 12.0, ""),
    ("drips", drip_answer, 12.0, "warning"),
    (
        "rejects with markup",
        |_, line| line.send_answer("application/json", PARTIAL),
        2.0,
        "rejected",
    ),
];

const REFUSAL: &[u8] = b"HTTP/1.1 500 Oops\r\nContent-Length: 9\r\n\r\n\x1b[2Jgone!";
const REDIRECT: &[u8] =
    b"HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/v1/traces\r\nContent-Length: 0\r\n\r\n";
const PARTIAL: &str = r#"{"partialSuccess":{"rejectedSpans":"18446744073709551615","errorMessage":"\u001b[2J<script>"}}"#;

pub(super) fn cases() -> Vec<Case> {
    let mut all: Vec<Case> = BEHAVIORS
        .iter()
        .map(|&(name, script, cost_s, warning)| {
            let expected = CaseBounds::exit(&MEASURED).within(4.0 + cost_s, 160.0);
            new_case("collector", name, expected, move |goodput| {
                send_traces_to(goodput, script, warning)
            })
        })
        .collect();
    let expected = CaseBounds::exit(&MEASURED).within(6.0, 160.0);
    all.push(new_case("collector", "refuses", expected, |goodput| {
        let scratch = ScratchFolder::new()?;
        send_traces(goodput, &scratch, "http://127.0.0.1:1", "warning")
    }));
    all
}

fn send_traces_to(goodput: &Binary, script: Script, warning: &str) -> Result<Observed, Skip> {
    let (scratch, host) = (ScratchFolder::new()?, ScriptedServer::start(script, "")?);
    let mut observed = send_traces(goodput, &scratch, &host.url(), warning)?;
    observed.check(!host.request_heads().is_empty(), || "the collector was not asked".to_owned());
    observed.check(!host.request_heads().iter().any(|head| head.contains(KEY)), || {
        "the key of the server went to the collector".to_owned()
    });
    observed
        .check(host.sent_bytes() < 64 << 20, || format!("{} bytes were read", host.sent_bytes()));
    Ok(observed)
}

/// A run whose traces go there: whole, whatever becomes of them.
fn send_traces(
    goodput: &Binary,
    scratch: &ScratchFolder,
    url: &str,
    warning: &str,
) -> Result<Observed, Skip> {
    let words = ["run", MOCK, "--rate", "40", "--duration", "1s", "--json", "--out", "run"];
    let traces = ["--traces", url, "--trace-share", "100%"];
    let ended = goodput.run(scratch.path(), &[&words[..], &traces, &SHORT].concat(), 40.0)?;
    let found = read_summary(&ended)?;
    let mut uses = Uses::default();
    uses.add_ended("run", &MEASURED, &ended);
    let ok = number_at(&found, "/requests/ok");
    uses.check(ok == 40.0 && number_at(&found, "/requests/failed") == 0.0, || {
        format!("{ok} of 40 requests are good")
    });
    uses.check(ended.stderr.contains(warning), || format!("no `{warning}` in: {}", ended.stderr));
    let files = files_with_key(scratch.path());
    uses.check(files.is_empty(), || format!("the key is in {files:?}"));
    Ok(uses.into_observed())
}

fn echo_request(_: &str, line: &mut HostConnection) -> std::io::Result<()> {
    let length = KEY.len();
    let head = format!("HTTP/1.1 500 {KEY}\r\nContent-Length: {length}\r\n\r\n{KEY}");
    line.send(head.as_bytes())
}

fn flood_answer(_: &str, line: &mut HostConnection) -> std::io::Result<()> {
    line.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"partialSuccess\":\"")?;
    line.flood("0123456789abcdef", 512)
}

fn drip_answer(_: &str, line: &mut HostConnection) -> std::io::Result<()> {
    line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")?;
    loop {
        line.send(b" ")?;
        pause(Nanos::from_millis(200));
    }
}
