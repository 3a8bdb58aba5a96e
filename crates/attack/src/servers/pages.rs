//! Pages other than answers: models, token counts, facts, metrics; and the other verbs.

use std::io;

use super::peer::{Act, HostileServer, PeerConnection, Script, close, flood, hold, whole};
use super::{Comes, FIRST, MARKUP, ServerRow, observe_run};
use crate::case::{Case, CaseBounds};
use crate::program::{Binary, KEY, ScratchFolder};
use Comes::{Passes, Refused};

/// The head of a page of text without end.
const TEXT: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
const JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";

fn page(name: &'static str, path: &'static str, comes: Comes, act: Act) -> ServerRow {
    let mut row = ServerRow::new(name, comes, act).only_from(FIRST);
    row.script.path = path;
    row
}

fn json(body: &str) -> Act {
    close(whole("200 OK", "application/json", body))
}

pub(super) fn rows() -> Vec<ServerRow> {
    [models(), counts(), facts()].into_iter().flatten().collect()
}

fn models() -> Vec<ServerRow> {
    let named = |name: &str| json(&format!("{{\"data\":[{{\"id\":\"{name}\"}}]}}"));
    let deep = format!("{{\"data\":{}", "[".repeat(100_000));
    let odd = format!("\\u001b[31m{MARKUP}\\u202e\\n\\u0000");
    let table = [
        ("model_of_a_megabyte", Refused("characters"), named(&"m".repeat(1 << 20))),
        ("model_with_markup", Passes, named(&odd)),
        ("model_named_like_the_key", Passes, named(KEY)),
        ("model_list_of_others", Passes, json("{\"data\":7}")),
        ("deep_model_list", Passes, json(&deep)),
        ("million_models", Passes, Act::With(million_models)),
        ("endless_model_list", Passes, flood(JSON, "{\"data\":[")),
        ("silent_model_list", Passes, hold("")),
        ("status_of_model_list", Passes, close(format!("HTTP/1.1 2x0 {KEY}\r\n\r\n"))),
    ];
    // A list is read up to 64 MiB, as any answer in one piece, and twice that while it grows.
    let row = |(name, comes, act)| {
        page(name, "/models", comes, act).with_args(&["without --model"]).with_limits(8.0, 300.0)
    };
    table.into_iter().map(row).collect()
}

fn million_models(peer: &mut PeerConnection) -> io::Result<()> {
    let all: Vec<String> = (0..1_000_000).map(|n| format!("{{\"id\":\"m{n}\"}}")).collect();
    peer.send(whole("200 OK", "application/json", &format!("{{\"data\":[{}]}}", all.join(","))))
}

fn counts() -> Vec<ServerRow> {
    let table = [
        ("count_of_2_to_the_63", json("{\"count\":9223372036854775808,\"tokens\":[]}")),
        ("count_negative", json("{\"count\":-1,\"tokens\":[]}")),
        ("count_of_nothing", json("{\"count\":0,\"max_model_len\":0,\"tokens\":[]}")),
        ("count_in_words", json(&format!("{{\"count\":\"{MARKUP} {KEY}\"}}"))),
        ("endless_tokens", flood(format!("{JSON}{{\"tokens\":["), "1,")),
        ("silent_count", hold("")),
        ("half_a_count", hold(JSON)),
        ("status_of_count", close(format!("HTTP/1.1 2x0 {KEY}\r\n\r\n"))),
    ];
    // Each question has the time limit of a request, and a few are asked. Room as above, and what is
    // made of the text.
    let row = |(name, act)| {
        page(name, "/tokenize", Passes, act)
            .with_args(&["without --no-length-check"])
            .with_limits(12.0, 350.0)
    };
    table.into_iter().map(row).collect()
}

fn facts() -> Vec<ServerRow> {
    let odd = format!("{{\"version\":\"\\u001b[31m{MARKUP}\",\"x\":\"{KEY}\"}}");
    let table = [
        ("fact_with_markup", json(&odd)),
        ("endless_fact", flood(format!("{JSON}{{\"version\":\""), "a")),
        ("silent_fact", hold("")),
        ("deep_fact", json(&"[".repeat(100_000))),
    ];
    table.into_iter().map(|(name, act)| page(name, "/version", Passes, act)).collect()
}

/// Pages of metrics during a load that must not be affected.
pub(super) fn metrics() -> Vec<ServerRow> {
    let odd = format!(
        "{MARKUP} 1\nvllm:num_requests_running{{model_name=\"\u{1b}[31m{MARKUP} {KEY}\"}} 1\n"
    );
    let label = format!("{TEXT}vllm:num_requests_running{{model_name=\"");
    let table = [
        ("million_series", Act::With(million_series)),
        ("label_of_200_megabytes", flood(label, "a")),
        ("endless_page", flood(TEXT, "vllm:num_requests_running 1\n")),
        ("slow_page", Act::Drip(TEXT.into(), b"vllm:num_requests_running 1\n".into())),
        ("silent_page", hold("")),
        ("random_page", Act::With(random_page)),
        ("page_with_markup", close(whole("200 OK", "text/plain", &odd))),
        ("impossible_numbers", close(whole("200 OK", "text/plain", NUMBERS))),
        ("status_of_page", close(format!("HTTP/1.1 2x0 {KEY}\r\n\r\n"))),
        (
            "zipped_page",
            close([&TEXT[..TEXT.len() - 2], "content-encoding: gzip\r\n\r\nzip"].concat()),
        ),
    ];
    let load =
        "--metrics on --metrics-interval 250ms --arrivals constant --rate 10 --num-requests 15";
    let load: Vec<&str> = load.split(' ').collect();
    // One page is read up to 16 MiB, and taken apart.
    table
        .into_iter()
        .map(|(name, act)| {
            page(name, "/metrics", Passes, act).with_args(&load).with_limits(10.0, 250.0)
        })
        .collect()
}

const NUMBERS: &str = "vllm:num_requests_running NaN\nvllm:num_requests_waiting -1e308\n\
    vllm:generation_tokens_total +Inf\nvllm:generation_tokens_total 1e400\n\
    vllm:time_to_first_token_seconds_bucket{le=\"-1\"} 9\nvllm:kv_cache_usage_perc 1e300\n";

fn million_series(peer: &mut PeerConnection) -> io::Result<()> {
    peer.send(TEXT)?;
    for n in 0..1_000 {
        let lines: Vec<String> =
            (0..1_000).map(|m| format!("vllm:num_requests_running{{a=\"{n}-{m}\"}} 1\n")).collect();
        peer.send(lines.concat())?;
    }
    Ok(())
}

fn random_page(peer: &mut PeerConnection) -> io::Result<()> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let bytes: Vec<u8> = (0..1 << 20).map(|_| next()).collect();
    peer.send(TEXT)?;
    peer.send(bytes)
}

/// The readiness of the other verbs.
pub(super) fn verbs() -> Vec<Case> {
    let garbage = || close(format!("SSH-2.0 {KEY}\r\n\r\n"));
    let refusal =
        || close(whole("401 No", "application/json", &format!("{{\"error\":\"{KEY}\"}}")));
    let oops = || close(whole("500 Oops", "text/plain", KEY));
    let sweep = "sweep URL --rates 20,40 --num-requests 20 --slo ttft<1s";
    let compare = "compare mock URL --rate 20 --duration 1s --blocks 6";
    [
        ("sweep_of_garbage", sweep, garbage()),
        ("sweep_of_silence", sweep, hold("")),
        ("sweep_of_refusals", sweep, refusal()),
        ("sweep_of_errors", sweep, oops()),
        ("compare_with_garbage", compare, garbage()),
        ("compare_with_silence", compare, hold("")),
        ("compare_with_refusals", compare, refusal()),
    ]
    .map(|(name, words, act)| verb(name, words, act))
    .into()
}

fn verb(name: &str, words: &'static str, act: Act) -> Case {
    let attack = move |goodput: &Binary| {
        let scratch = ScratchFolder::new()?;
        let server = HostileServer::start(Script::new(act.clone()))?;
        let words = words.replace("URL", &format!("http://127.0.0.1:{}", server.port()));
        let usual = " --model mock --timeout 1s --isl 32 --osl 8 --out out --screen off --gpu off --metrics off --no-length-check";
        let words = words + usual;
        let ended = goodput.run(scratch.path(), &words.split(' ').collect::<Vec<_>>(), 30.0)?;
        let mut observed = observe_run(&ended, &scratch, &server);
        observed.classes.clear();
        observed.check(server.asked() > 0, || format!("no request was sent: {}", ended.stderr));
        Ok(observed)
    };
    let expected = CaseBounds::exit(&[3]).within(15.0, 200.0);
    Case { area: "server/verbs", name: name.to_owned(), expected, attack: Box::new(attack) }
}
