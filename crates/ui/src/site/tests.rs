//! Who may ask, what is answered, and that nothing leads out of the folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use goodput_model::{
    Exchange, HealthSample, HostSample, Nanos, Phase, Planned, RequestRecord, Scrape,
    ServerReading, Signal, SignalValue, Stamps, TokenCount, TokenSource,
};
use goodput_record::LogWriter;
use tempfile::TempDir;

use super::ResultsSite;
use crate::guard::{Guard, Ruling};
use crate::index::Index;
use crate::notes::Notes;
use crate::watch::Following;
use goodput_http::{HttpReply, HttpRequest, Site};

const TOKEN: &str = "0123456789abcdef-token";
const KEY: &str = "the key of the forms";

fn request(text: &str) -> HttpRequest {
    HttpRequest::parse(text.replace('\n', "\r\n").as_bytes()).unwrap()
}

fn get(path: &str) -> HttpRequest {
    request(&format!("GET {path} HTTP/1.1\nHost: localhost:8642"))
}

#[test]
fn a_head_is_taken_apart_or_refused() {
    let asked = request("GET /?q=a%20b+c&kind=&id=1&id=2 HTTP/1.1\nHost: h\nCookie: x=1; y=2=3");
    assert_eq!(
        (asked.path.as_str(), asked.query_value("q"), asked.query_value("kind")),
        ("/", Some("a b c"), Some(""))
    );
    assert_eq!(asked.query.iter().filter(|(name, _)| name == "id").count(), 2);
    assert_eq!(asked.cookie_values("y").collect::<Vec<_>>(), ["2=3"]);
    // Broken escapes, and what is not text, are left out.
    assert_eq!(request("GET /?a=%zz&b=%ff&c=1 HTTP/1.1").query, [("c".to_owned(), "1".to_owned())]);
    let twice = request("GET / HTTP/1.1\nHost: a\nhost: b\nContent-Length: 1\nContent-Length: 2");
    assert_eq!((twice.header("host"), twice.body_length()), (None, None));
    assert_eq!(request("POST / HTTP/1.1\nContent-Length: +5").body_length(), None);
    let chunked = "POST / HTTP/1.1\nContent-Length: 5\nTransfer-Encoding: chunked";
    assert_eq!(request(chunked).body_length(), None);
    for broken in [
        "",
        "GET /",
        "GET / HTTP/1.1 x",
        "GET http://h/ HTTP/1.1",
        "GET / HTTP/2",
        "GET / HTTP/1.1\r\nHost : h",
    ] {
        assert_eq!(HttpRequest::parse(broken.as_bytes()), None, "{broken}");
    }
    assert_eq!(HttpRequest::parse(b"GET /\xff HTTP/1.1"), None);
}

#[test]
fn on_the_loopback_only_names_of_this_machine_lead_here() {
    let guard = Guard::new(true, None, 8642);
    let rule = |host: &str| guard.admit(&request(&format!("GET / HTTP/1.1\nHost: {host}")));
    for own in ["localhost", "LOCALHOST:8642", "127.0.0.1:1", "127.8.8.8", "[::1]:8642", "[::1]"] {
        assert_eq!(rule(own), Ruling::Welcome, "{own}");
    }
    for other in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:8642",
        "10.0.0.1",
        "[::2]",
        "localhost:x",
        "[::1",
        "",
        "a b",
        "localhost@evil",
        "127.0.0.1:8642:1",
    ] {
        assert!(matches!(rule(other), Ruling::Refused(_)), "{other}");
    }
    assert!(matches!(guard.admit(&request("GET / HTTP/1.1")), Ruling::Refused(_)));
    let post =
        |more: &str| guard.admit(&request(&format!("POST / HTTP/1.1\nHost: localhost:9{more}")));
    assert_eq!(post("\nOrigin: http://localhost:9"), Ruling::Welcome);
    assert_eq!(post("\nOrigin: http://localhost:9\nSec-Fetch-Site: same-origin"), Ruling::Welcome);
    for foreign in [
        "",
        "\nOrigin: null",
        "\nOrigin: http://evil.example",
        "\nOrigin: http://localhost:8",
        "\nOrigin: http://localhost:9\nOrigin: http://evil.example",
        "\nOrigin: http://localhost:9\nSec-Fetch-Site: cross-site",
    ] {
        assert!(matches!(post(foreign), Ruling::Refused(_)), "{foreign}");
    }
}

#[test]
fn elsewhere_a_token_is_asked_for() {
    let guard = Guard::new(false, Some(TOKEN), 7);
    let rule = |path: &str, more: &str| {
        guard.admit(&request(&format!("GET {path} HTTP/1.1\nHost: bench.example:7{more}")))
    };
    assert_eq!(rule("/", ""), Ruling::Stranger);
    for wrong in ["/?token=", "/?token=0123456789abcdef-tokem", "/?token=0123456789abcdef-token1"] {
        assert_eq!(rule(wrong, ""), Ruling::Stranger, "{wrong}");
    }
    let Ruling::Admitted { cookie } = rule(&format!("/?token={TOKEN}"), "") else { panic!() };
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite"), "{cookie}");
    assert!(!cookie.contains(TOKEN), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(rule("/", &format!("\nCookie: a=b; {pair}")), Ruling::Welcome);
    assert_eq!(
        rule("/", &format!("\nCookie: {}", pair.replace("goodput-7", "goodput-8"))),
        Ruling::Stranger
    );
    assert_eq!(rule("/", &format!("\nCookie: goodput-7={TOKEN}")), Ruling::Stranger);
    assert_eq!(rule("/", &format!("\nAuthorization: Bearer {TOKEN}")), Ruling::Welcome);
    assert_eq!(rule("/", "\nAuthorization: Bearer x"), Ruling::Stranger);
}

/// A folder with one run, one run that holds a link, and a site over it.
fn site() -> (TempDir, ResultsSite) {
    let root = tempfile::tempdir().unwrap();
    for name in ["run", "linked"] {
        run(&root.path().join(name));
    }
    symlink("/etc/passwd", root.path().join("linked/report.html")).unwrap();
    let mut index = Index::open(root.path(), false).unwrap();
    index.refresh();
    let render = |_: &Path| Err("the log has no requests".to_owned());
    let guard = Guard::new(true, None, 8642);
    (root, ResultsSite::new(index, guard, KEY.to_owned(), Box::new(render)))
}

fn run(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let manifest = r#"{"state": "complete", "started": "2026-11-16T10:00:00Z",
        "target": {"url": "http://host", "model": "<b>llama"}}"#;
    fs::write(folder.join("manifest.json"), manifest).unwrap();
    for name in ["plan.toml", "requests.log"] {
        fs::write(folder.join(name), "").unwrap();
    }
}

/// The whole answer.
fn answer(site: &ResultsSite, request: &HttpRequest) -> String {
    let reply = site.check(request).map_or_else(HttpReply::from, |()| site.reply(request));
    let HttpReply::Whole(answer) = reply else { panic!("{request:?} is a live view") };
    String::from_utf8(site.finish(answer).to_bytes(false)).unwrap()
}

fn id(site: &ResultsSite, name: &str) -> String {
    let page = answer(site, &get(&format!("/?q={name}")));
    let id = page.split("data-id=\"").nth(1).and_then(|rest| rest.split('"').next());
    id.unwrap_or_else(|| panic!("{page}")).to_owned()
}

#[test]
fn nothing_that_is_asked_leads_out_of_the_folder() {
    let (_root, site) = site();
    let run = id(&site, "run");
    for path in [
        "/..",
        "/../etc/passwd",
        "/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/run/..",
        "/run/../../etc/passwd",
        "/run/%2e%2e%2f%2e%2e",
        "/run//etc/passwd",
        "/run/\0",
        "/run/%00",
        "/etc/passwd",
        "/run/etc%2Fpasswd/report",
        "/run/0000000000000000",
        "/run/run/report",
        "/run/",
        "/overlay/x",
        &format!("/run/{run}/../linked"),
        &format!("/run/{run}/manifest.json"),
        &format!("/run/{run}%00"),
    ] {
        let answer = answer(&site, &get(path));
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        assert!(!answer.contains("root:"), "{path}");
    }
    // A link inside a folder is not followed either.
    let linked = answer(&site, &get(&format!("/run/{}/report", id(&site, "linked"))));
    assert!(linked.starts_with("HTTP/1.1 403") && !linked.contains("root:"), "{linked}");
    let page = answer(&site, &get(&format!("/run/{run}")));
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("&lt;b&gt;llama"), "{page}");
    for header in [
        "Content-Security-Policy: default-src 'none'; style-src 'self'; script-src 'self'",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: same-origin",
        "Cache-Control: no-store",
    ] {
        assert!(page.contains(header), "{header}: {page}");
    }
    for method in ["PUT", "DELETE", "OPTIONS", "POST"] {
        let refused =
            request(&format!("{method} / HTTP/1.1\nHost: localhost\nOrigin: http://localhost"));
        assert!(answer(&site, &refused).starts_with("HTTP/1.1 405"), "{method}");
    }
}

#[test]
fn a_saved_page_is_never_shown() {
    let (root, site) = site();
    let address = format!("/run/{}/report", id(&site, "run"));
    // As much like ours as a stranger can make it.
    let policy = goodput_document::render::page::content_security_policy().replace('\'', "&#39;");
    let page = format!(
        "<!doctype html><meta content=\"{policy}\"><meta http-equiv=\"refresh\" \
         content=\"0;url=http://evil.example/\"><p>saved"
    );
    fs::write(root.path().join("run/report.html"), page).unwrap();
    let shown = answer(&site, &get(&address));
    assert!(!shown.contains("saved") && !shown.contains("evil.example"), "{shown}");
    assert!(shown.starts_with("HTTP/1.1 404"), "of this log no page can be made: {shown}");
    // One page is made at a time, and no request waits for it.
    let turn = site.making.lock().unwrap();
    let busy = answer(&site, &get(&address));
    assert!(busy.starts_with("HTTP/1.1 503") && busy.contains("Retry-After: "), "{busy}");
    drop(turn);
}

fn form(path: &str, body: &str) -> HttpRequest {
    let mut request = request(&format!(
        "POST {path} HTTP/1.1\nHost: localhost\nOrigin: http://localhost\n\
         Content-Type: application/x-www-form-urlencoded"
    ));
    request.body = body.as_bytes().to_vec();
    request
}

#[test]
fn notes_are_kept_for_who_sends_our_form_and_saw_what_there_was() {
    let (root, site) = site();
    let folder = root.path().join("run");
    let path = format!("/run/{}/notes", id(&site, "run"));
    let mark = Notes::default().version_mark();
    let key = KEY.replace(' ', "+");
    let body = format!("key={key}&mark={mark}&tags=h200%2C+%3Cb%3E&notes=one%0D%0Atwo");
    for (wrong, status) in [
        (form(&path, &body.replace("key=the", "key=thy")), "403"),
        (
            request(&format!("POST {path} HTTP/1.1\nHost: localhost\nOrigin: http://localhost")),
            "415",
        ),
        (request(&format!("POST {path} HTTP/1.1\nHost: localhost\nOrigin: http://evil")), "403"),
        (get(&path), "405"),
        (form(&path, &body.replace("one", &"x".repeat(70_000))), "409"),
    ] {
        let answer = answer(&site, &wrong);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(!folder.join("notes.json").exists());
    }
    let kept = answer(&site, &form(&path, &body));
    assert!(kept.starts_with("HTTP/1.1 303") && kept.contains("Location: /run/"), "{kept}");
    let notes = Notes::read(&folder);
    assert_eq!(
        (notes.tags, notes.text.as_str()),
        (vec!["h200".to_owned(), "<b>".to_owned()], "one\ntwo")
    );
    // They are found at once, and shown harmless.
    let found = answer(&site, &get("/?q=H200+two"));
    assert!(found.contains("1 in total") && found.contains("&lt;b&gt;</a>"), "{found}");
    // Who did not see them does not write over them, and loses nothing.
    let late = answer(&site, &form(&path, &body.replace("one", "other")));
    assert!(late.starts_with("HTTP/1.1 409") && late.contains("other\ntwo</textarea>"), "{late}");
    // The saved notes appear next to it, and may be overwritten now that they were seen.
    let (now, mark_now) =
        ("<pre id=\"theirs\">one\ntwo\n</pre>", Notes::read(&folder).version_mark());
    assert!(late.contains(now) && late.contains(&mark_now), "{late}");
    // Who is refused for another reason has not seen it.
    let long = answer(&site, &form(&path, &body.replace("one", &"x".repeat(70_000))));
    assert!(long.contains(&mark) && !long.contains(&mark_now) && !long.contains(now), "{long}");
    assert_eq!(Notes::read(&folder).text, "one\ntwo");
}

#[test]
fn notes_come_back_from_their_form_as_they_were_typed() {
    let (root, site) = site();
    let folder = root.path().join("run");
    let path = format!("/run/{}", id(&site, "run"));
    let head = format!("key={}&mark={}", KEY.replace(' ', "+"), Notes::default().version_mark());
    // A tab, and marks for the direction of Arabic.
    let body = format!("{head}&tags=%E2%80%8Fa&notes=a%09b%0D%0A%E2%80%8F%E2%80%ABc%E2%80%AC%26");
    let kept = answer(&site, &form(&format!("{path}/notes"), &body));
    assert!(kept.starts_with("HTTP/1.1 303"), "{kept}");
    let text = "a\tb\n\u{200f}\u{202b}c\u{202c}&";
    assert_eq!(Notes::read(&folder).text, text);
    let page = answer(&site, &get(&path));
    let area = page.split("<textarea").nth(1).unwrap().split("</textarea>").next().unwrap();
    let shown = area.split_once(">\n").unwrap().1;
    assert_eq!(shown, text.replace('&', "&amp;"));
    assert!(page.contains("name=\"tags\" value=\"\u{200f}a\""), "{page}");
}

/// Ended at this millisecond, 400 ms after it was due, with eleven tokens from 100 ms on.
fn record(index: u64, end: u64) -> RequestRecord {
    let ms = Nanos::from_millis;
    let stamps = Stamps {
        first_token: Some(ms(end - 300)),
        last_token: Some(ms(end)),
        done: Some(ms(end)),
        ended: ms(end),
        ..Stamps::default()
    };
    let output_tokens = Some(TokenCount { n: 11, source: TokenSource::Usage });
    RequestRecord {
        index,
        phase: Phase::Measured,
        worker: 0,
        scheduled: ms(end - 400),
        pacer_lag: None,
        cap_wait: Nanos::ZERO,
        planned: Planned::new("chat", 9, None),
        exchange: Exchange { stamps, output_tokens, ..Exchange::default() },
        prompt: None,
    }
}

#[test]
fn a_log_that_grows_is_seen_by_its_last_ten_seconds() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().to_owned();
    let mut log = LogWriter::create(&folder.join("requests.log")).unwrap();
    let mut following = Following::new(&folder, folder.clone()).unwrap();
    following.read_new();
    assert_eq!(following.seen_requests(0.0).ended, 0);
    // One every half second, for twenty seconds.
    for index in 1..=40 {
        log.append(&record(index, 500 * index));
        if index == 10 {
            log.flush();
            following.read_new();
            let seen = following.seen_requests(0.0);
            assert_eq!((seen.ended, seen.rate, seen.ttft_p50_ms), (10, 2.0, Some(100.0)));
        }
    }
    log.flush();
    following.read_new();
    let seen = following.seen_requests(0.0);
    assert_eq!((seen.ended, seen.known, seen.failed), (40, 40, 0));
    // From 10 s to 20 s, both included.
    assert!((seen.rate - 2.1).abs() < 1e-9 && (seen.output_tps - 23.1).abs() < 1e-9, "{seen:?}");
    assert!((seen.in_flight - 0.84).abs() < 1e-9, "{seen:?}");
    assert_eq!((seen.tpot_p50_ms, seen.ttft_p99_ms), (Some(30.0), Some(100.0)));
}

#[test]
fn every_page_of_metrics_counts_once() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().to_owned();
    drop(LogWriter::create(&folder.join("requests.log")).unwrap());
    let mut log = LogWriter::create(&folder.join("server.log")).unwrap();
    let scrape = |endpoint, running: Option<f64>| {
        let values = running.map(|value| (Signal::Running, SignalValue::Number(value)));
        let reading =
            ServerReading { values: values.into_iter().collect(), ..ServerReading::default() };
        let outcome = running.map(|_| reading).ok_or_else(|| "late".to_owned());
        Scrape { at: Nanos::ZERO, took: Nanos::ZERO, endpoint, outcome }
    };
    let sample = |scrapes| HealthSample {
        at: Nanos::ZERO,
        host: HostSample::default(),
        beats: Vec::new(),
        canary: Vec::new(),
        scrapes,
        gpus: Vec::new(),
    };
    let mut following = Following::new(&folder, folder.clone()).unwrap();
    let mut look = |scrapes| {
        log.append(&sample(scrapes));
        log.flush();
        following.read_new();
        following.seen_requests(0.0).server_running
    };
    // Two of the first page and one of the second in one sample: the last of each.
    let all = vec![scrape(0, Some(4.0)), scrape(1, Some(3.0)), scrape(0, Some(5.0))];
    assert_eq!(look(all), Some(8.0));
    assert_eq!(look(vec![scrape(0, Some(6.0))]), Some(9.0));
    assert_eq!(look(vec![scrape(1, None)]), Some(6.0));
}
