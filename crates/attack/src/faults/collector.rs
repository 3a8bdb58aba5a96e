//! Collectors of traces (`--traces URL`) that misbehave. The load is over by then: no result may
//! suffer, and the report waits a bounded time.

use goodput_clock::pause;
use goodput_model::Nanos;

use super::peer::{HostConnection, Script, ScriptedServer};
use super::{MEASURED, MOCK, SHORT, Uses, case, number, summary};
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
    ("answers 500 with the key", |head, line| echo(head, line), 2.0, "500"),
    (
        "answers garbage",
        |_, line| line.send(&[0xff, 0x1b, b'[', b'2', b'J', 0, b'\n']),
        2.0,
        "warning",
    ),
    ("answers 200 with garbage", |_, line| line.answer("text/html", "<b>\u{1b}[2J</b>"), 2.0, ""),
    ("redirects", |_, line| line.send(REDIRECT), 2.0, "307"),
    ("closes at once", |_, _| Ok(()), 2.0, "warning"),
    (
        "closes in mid-body",
        |_, line| line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
        2.0,
        "",
    ),
    ("floods", flood, 12.0, ""),
    ("drips", drip, 12.0, "warning"),
    ("rejects with markup", |_, line| line.answer("application/json", PARTIAL), 2.0, "rejected"),
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
            case("collector", name, expected, move |goodput| attack(goodput, script, warning))
        })
        .collect();
    let expected = CaseBounds::exit(&MEASURED).within(6.0, 160.0);
    all.push(case("collector", "refuses", expected, |goodput| {
        let scratch = ScratchFolder::new()?;
        send(goodput, &scratch, "http://127.0.0.1:1", "warning")
    }));
    all
}

fn attack(goodput: &Binary, script: Script, warning: &str) -> Result<Observed, Skip> {
    let (scratch, host) = (ScratchFolder::new()?, ScriptedServer::start(script, "")?);
    let mut observed = send(goodput, &scratch, &host.url(), warning)?;
    observed.check(!host.heads().is_empty(), || "the collector was not asked".to_owned());
    observed.check(!host.heads().iter().any(|head| head.contains(KEY)), || {
        "the key of the server went to the collector".to_owned()
    });
    observed.check(host.sent() < 64 << 20, || format!("{} bytes were read", host.sent()));
    Ok(observed)
}

/// A run whose traces go there: whole, whatever becomes of them.
fn send(
    goodput: &Binary,
    scratch: &ScratchFolder,
    url: &str,
    warning: &str,
) -> Result<Observed, Skip> {
    let words = ["run", MOCK, "--rate", "40", "--duration", "1s", "--json", "--out", "run"];
    let traces = ["--traces", url, "--trace-share", "100%"];
    let ended = goodput.run(scratch.path(), &[&words[..], &traces, &SHORT].concat(), 40.0)?;
    let found = summary(&ended)?;
    let mut uses = Uses::default();
    uses.add("run", &MEASURED, &ended);
    let ok = number(&found, "/requests/ok");
    uses.check(ok == 40.0 && number(&found, "/requests/failed") == 0.0, || {
        format!("{ok} of 40 requests are good")
    });
    uses.check(ended.stderr.contains(warning), || format!("no `{warning}` in: {}", ended.stderr));
    let files = files_with_key(scratch.path());
    uses.check(files.is_empty(), || format!("the key is in {files:?}"));
    Ok(uses.done())
}

fn echo(_: &str, line: &mut HostConnection) -> std::io::Result<()> {
    let length = KEY.len();
    let head = format!("HTTP/1.1 500 {KEY}\r\nContent-Length: {length}\r\n\r\n{KEY}");
    line.send(head.as_bytes())
}

fn flood(_: &str, line: &mut HostConnection) -> std::io::Result<()> {
    line.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"partialSuccess\":\"")?;
    line.flood("0123456789abcdef", 512)
}

fn drip(_: &str, line: &mut HostConnection) -> std::io::Result<()> {
    line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")?;
    loop {
        line.send(b" ")?;
        pause(Nanos::from_millis(200));
    }
}
