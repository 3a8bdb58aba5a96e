//! `ui`, `--metrics-listen` and `mock`: strangers who ask, and folders of strangers.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::process::Signal;

use super::peer::{ReceivedBytes, find_bytes, open_many, send_and_receive};
use super::stand::{Stand, good_origin, new_case, parse_address, sleep_ms};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, ScratchFolder};

/// Longest wait for an answer.
const LIMIT_S: f64 = 5.0;

/// A file outside of what is served.
const OUTSIDE: &str = "outside-of-the-folder";

fn start_ui(goodput: &Binary, scratch: ScratchFolder) -> Result<Stand, Skip> {
    fs::write(scratch.join("outside.txt"), OUTSIDE)?;
    fs::create_dir_all(scratch.join("runs"))?;
    let args = ["ui", "runs", "--listen", "127.0.0.1:0"];
    Stand::start(goodput, scratch, &args, "results in runs: http://")
}

fn start_mock(goodput: &Binary) -> Result<Stand, Skip> {
    let args = ["mock", "--profile", "fast", "--listen", "127.0.0.1:0"];
    Stand::start(goodput, ScratchFolder::new()?, &args, "mock engine on http://")
}

fn http_get(to: SocketAddr, path: &str, host: &str) -> ReceivedBytes {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    send_and_receive(to, request.as_bytes(), LIMIT_S)
}

/// Its own name is answered to, so it serves.
fn find_serving_fault(to: SocketAddr, path: &str) -> Option<String> {
    let said = http_get(to, path, &to.to_string());
    (said.status() != Some(200)).then(|| format!("it no longer serves: {}", said.text()))
}

fn end_stand(stand: Stand, faults: Vec<String>) -> Result<Observed, Skip> {
    let mut observed = stand.end(Signal::INT)?.0;
    observed.faults.extend(faults);
    Ok(observed)
}

const PATHS: &[&str] = &[
    "/../outside.txt",
    "/..%2foutside.txt",
    "/%2e%2e/outside.txt",
    "/..\\outside.txt",
    "/run/../../outside.txt",
    "/run/..%2f..%2foutside.txt/report",
    "/run/%00/report",
    "/run//report",
    "//etc/passwd",
    "/run/../report",
    "/.goodput-index.sqlite",
    "/run/' OR 1=1 --/report",
    "/run/0/notes/../../../outside.txt",
    "/overlay?id=../../outside.txt&id=%00&id=%ff",
    "/?q=%25%27%22%3Cscript%3E&skip=18446744073709551616&kind=../../",
];

fn attack_ui_paths(goodput: &Binary) -> Result<Observed, Skip> {
    let stand = start_ui(goodput, ScratchFolder::new()?)?;
    let mut faults = Vec::new();
    for path in PATHS {
        let said = http_get(stand.address, path, &stand.address.to_string());
        let is_known = matches!(said.status(), Some(400 | 404)) || path.contains('?');
        let is_outside =
            find_bytes(&said.first, OUTSIDE.as_bytes()).or(find_bytes(&said.first, b"root:"));
        if !is_known || is_outside.is_some() || find_bytes(&said.first, b"<script>").is_some() {
            faults.push(format!("{path}: {}", said.text()));
        }
    }
    faults.extend(find_serving_fault(stand.address, "/"));
    end_stand(stand, faults)
}

const HOSTS: &[&str] = &[
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "localhost@evil.example",
    "[::1].evil.example",
    "0.0.0.0",
    "169.254.169.254",
    "",
    "localhost\r\nhost: evil.example",
];

/// Names that others may own are refused with a 403 (or 400 where they are not names).
fn host_faults(to: SocketAddr, path: &str) -> Vec<String> {
    let odd = |host: &&&str| {
        let said = http_get(to, path, host);
        !matches!(said.status(), Some(400 | 403))
    };
    HOSTS.iter().filter(odd).map(|host| format!("answered to the name `{host}`")).collect()
}

fn attack_ui_hosts(goodput: &Binary) -> Result<Observed, Skip> {
    let stand = start_ui(goodput, ScratchFolder::new()?)?;
    let mut faults = host_faults(stand.address, "/");
    faults.extend(find_serving_fault(stand.address, "/"));
    end_stand(stand, faults)
}

/// Forms of other sites, methods that change things, and heads and bodies that are too long.
fn attack_ui_posts(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    make_run(goodput, &scratch)?;
    let stand = start_ui(goodput, scratch)?;
    let own = stand.address.to_string();
    let list = http_get(stand.address, "/", &own);
    let text = String::from_utf8_lossy(&list.first).into_owned();
    let id = text.split("data-id=\"").nth(1).and_then(|rest| rest.split('"').next());
    let id = id.ok_or_else(|| Skip::Broken(format!("no result in the list: {text}")))?;
    let post = |more: &str, body: &str| {
        let length = body.len();
        format!(
            "POST /run/{id}/notes HTTP/1.1\r\nhost: {own}\r\n{more}content-type: \
             application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    let origin = format!("origin: http://{own}\r\n");
    let cross = format!("{origin}sec-fetch-site: cross-site\r\n");
    let form = "tags=evil&notes=evil&key=0";
    let many = "x: y\r\n".repeat(20_000);
    let rows: [(&str, String, &[u16]); 8] = [
        ("no origin", post("", form), &[403]),
        ("another origin", post("origin: http://evil.example\r\n", form), &[403]),
        ("origin null", post("origin: null\r\n", form), &[403]),
        ("cross-site", post(&cross, form), &[403]),
        ("wrong key", post(&origin, form), &[403]),
        ("too long", post(&origin, &"x".repeat(1 << 20)), &[413]),
        ("long head", format!("GET / HTTP/1.1\r\nhost: {own}\r\n{many}\r\n"), &[431]),
        ("delete", format!("DELETE /run/{id} HTTP/1.1\r\nhost: {own}\r\n\r\n"), &[405]),
    ];
    let mut faults = Vec::new();
    for (name, request, statuses) in rows {
        let said = send_and_receive(stand.address, request.as_bytes(), LIMIT_S);
        if !said.status().is_some_and(|status| statuses.contains(&status)) {
            faults.push(format!("{name}: {}", said.text()));
        }
    }
    if stand.scratch.join("runs/real/notes.json").exists() {
        faults.push("a stranger's notes were kept".to_owned());
    }
    faults.extend(find_serving_fault(stand.address, "/"));
    end_stand(stand, faults)
}

/// Clients that say nothing: a silent one is gone after three seconds, then others are served.
fn idle_on_ui(goodput: &Binary) -> Result<Observed, Skip> {
    let stand = start_ui(goodput, ScratchFolder::new()?)?;
    let silent = open_many(stand.address, 500, b"")?;
    sleep_ms(4_000);
    let faults = find_serving_fault(stand.address, "/").into_iter().collect();
    drop(silent);
    end_stand(stand, faults)
}

/// A real result.
fn make_run(goodput: &Binary, scratch: &ScratchFolder) -> Result<(), Skip> {
    fs::create_dir_all(scratch.join("runs"))?;
    let mut args = vec!["run", "mock:ttft=1ms,itl=1ms", "--rate", "inf", "--num-requests", "8"];
    args.extend([
        "--osl",
        "4",
        "--isl",
        "16",
        "--out",
        "runs/real",
        "--quiet",
        "--no-length-check",
    ]);
    let ended = goodput.run(scratch.path(), &args, 30.0)?;
    let is_made = scratch.join("runs/real/manifest.json").is_file();
    if is_made { Ok(()) } else { Err(Skip::Broken(ended.stderr)) }
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)?.flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Folders next to a real one whose files are links, pipes, devices, deep JSON and odd names.
fn make_strangers(runs: &Path) -> Result<(), Skip> {
    let odd = "<img src=x onerror=alert(1)>\u{1b}[31m";
    for (name, file, target) in [
        ("link", "manifest.json", Some("../../outside.txt")),
        ("zero", "requests.log", Some("/dev/zero")),
        ("zero-manifest", "manifest.json", Some("/dev/zero")),
        ("loop", "loop", Some(".")),
        ("pipe", "manifest.json", None),
        ("pipe-summary", "summary.json", None),
    ] {
        let folder = runs.join(name);
        copy_tree(&runs.join("real"), &folder)?;
        let path = folder.join(file);
        let _ = fs::remove_file(&path);
        match target {
            Some(target) => symlink(target, path)?,
            None => mkfifo(&path)?,
        }
    }
    let manifest = fs::read_to_string(runs.join("real/manifest.json"))?;
    for (name, file, text) in [
        ("deep", "manifest.json", "[".repeat(1 << 20)),
        ("deep-summary", "summary.json", r#"{"a":"#.repeat(1 << 18)),
        (
            "model",
            "manifest.json",
            manifest.replace("\"mock\"", r#""\u001b[31m<script>alert(1)</script>""#),
        ),
        (
            "notes",
            "notes.json",
            format!(
                r#"{{"schema":"goodput.notes/1","tags":["<script>alert(1)</script>"],"text":"{}"}}"#,
                "<script>alert(1)</script>".repeat(999)
            ),
        ),
        (odd, "text.txt", String::new()),
    ] {
        let folder = runs.join(name);
        copy_tree(&runs.join("real"), &folder)?;
        fs::write(folder.join(file), text)?;
    }
    symlink("/etc", runs.join("etc"))?;
    Ok(())
}

fn mkfifo(path: &Path) -> Result<(), Skip> {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    match made {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Skip::Unavailable("mkfifo".to_owned())),
    }
}

fn serve_strangers_folder(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    make_run(goodput, &scratch)?;
    make_strangers(&scratch.join("runs"))?;
    let stand = start_ui(goodput, scratch)?;
    let own = stand.address.to_string();
    let list = http_get(stand.address, "/", &own);
    let text = String::from_utf8_lossy(&list.first).into_owned();
    let ids: Vec<&str> =
        text.split("data-id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let pages = ids.iter().flat_map(|id| [format!("/run/{id}"), format!("/run/{id}/report")]);
    let (mut faults, mut good) = (Vec::new(), 0);
    for path in pages.chain(["/".to_owned()]) {
        let said = http_get(stand.address, &path, &own);
        good += u32::from(said.status() == Some(200));
        let held = ["<script>alert", "<img src=x", "\u{1b}", OUTSIDE, "root:x:"]
            .into_iter()
            .find(|held| find_bytes(&said.first, held.as_bytes()).is_some());
        faults.extend(held.map(|held| format!("{path} holds {}", held.escape_debug())));
        if said.seconds > 3.0 || said.status().is_none_or(|status| status >= 500) {
            faults.push(format!("{path} after {:.1} s: {}", said.seconds, said.text()));
        }
    }
    if !text.contains("&lt;script") && !text.contains("&#60;script") {
        faults.push("the list does not show the odd names".to_owned());
    }
    // The real one, its page and its report, and the list.
    if good < 3 {
        faults.push(format!("{good} pages were served of {} results", ids.len()));
    }
    end_stand(stand, faults)
}

/// The page of `--metrics-listen`, next to a recording.
fn attack_metrics_page(goodput: &Binary) -> Result<Observed, Skip> {
    let origin = good_origin()?;
    let more = ["--metrics-listen", "127.0.0.1:0"];
    let mut stand = Stand::record(goodput, &origin.url(), &more)?;
    let page = parse_address(&stand.process.word_after("metrics of this run: http://", 5.0)?)?;
    let mut faults = host_faults(page, "/metrics");
    let many = "x: y\r\n".repeat(17_000);
    for (request, status) in [
        (format!("POST /metrics HTTP/1.1\r\nhost: {page}\r\ncontent-length: 0\r\n\r\n"), 405),
        (format!("GET /metrics HTTP/1.1\r\nhost: {page}\r\n{many}\r\n"), 431),
        (format!("GET /../etc/passwd HTTP/1.1\r\nhost: {page}\r\n\r\n"), 404),
        ("GET /metrics\r\n\r\n".to_owned(), 400),
        ("GET /metrics HTTP/1.1\r\n\r\n".to_owned(), 200),
    ] {
        let said = send_and_receive(page, request.as_bytes(), LIMIT_S);
        if said.status() != Some(status) {
            faults.push(format!("{status} was due: {}", said.text()));
        }
    }
    // A head may take two seconds, and so may its answer; of more than eight clients the others get a 503.
    let silent = open_many(page, 200, b"GET")?;
    sleep_ms(100);
    let said = http_get(page, "/metrics", "localhost");
    if said.status() != Some(503) {
        faults.push(format!("the ninth client: {}", said.text()));
    }
    faults.extend(stand.check_bystanders(2));
    sleep_ms(4_500);
    faults.extend(find_serving_fault(page, "/metrics"));
    drop(silent);
    let mut observed = stand.end_recording(Signal::TERM, Some(2))?;
    observed.faults.extend(faults);
    Ok(observed)
}

fn chat_request(body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

const SHORT: &str = r#"{"messages":[{"role":"user","content":"hi"}],"max_tokens":2}"#;

/// Bodies that are refused in words, and none of which ends the server.
fn attack_mock_bodies(goodput: &Binary) -> Result<Observed, Skip> {
    let stand = start_mock(goodput)?;
    let with = |field: &str| SHORT.replace(r#""max_tokens":2"#, field);
    let long =
        format!(r#"{{"messages":[{{"role":"user","content":"{}"}}]}}"#, "word ".repeat(10 << 20));
    let mut faults = Vec::new();
    for (name, body, status) in [
        ("no JSON", "nope".to_owned(), 400),
        ("deep arrays", "[".repeat(1 << 20), 400),
        ("deep objects", r#"{"a":"#.repeat(1 << 18), 400),
        (
            "deep content",
            SHORT.replace("\"hi\"", &format!("{}{}", "[".repeat(5_000), "]".repeat(5_000))),
            400,
        ),
        ("messages of another type", r#"{"messages":7}"#.to_owned(), 400),
        ("2^63", with(r#""max_tokens":9223372036854775808"#), 400),
        ("2^64 and more", with(r#""max_tokens":99999999999999999999999"#), 400),
        ("negative", with(r#""max_tokens":-1"#), 400),
        ("a number out of range", with(r#""max_tokens":1e999"#), 400),
        ("choices", with(r#""n":4294967296"#), 400),
        ("a lone surrogate", SHORT.replace("hi", r"\ud800"), 400),
        ("50 MB of prompt", long, 400),
        ("70 MB", "x".repeat(70 << 20), 413),
        ("good", SHORT.to_owned(), 200),
    ] {
        let said = send_and_receive(stand.address, &chat_request(&body), 10.0);
        if said.status() != Some(status) {
            faults.push(format!("{name}: expected {status}: {}", said.text()));
        }
    }
    end_stand(stand, faults)
}

fn idle_on_mock(goodput: &Binary) -> Result<Observed, Skip> {
    let stand = start_mock(goodput)?;
    let silent = open_many(stand.address, 1_500, b"")?;
    let half = open_many(
        stand.address,
        1_500,
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: 99\r\n\r\n{",
    )?;
    let said = send_and_receive(stand.address, &chat_request(SHORT), 2.0);
    let mut observed = stand.end(Signal::TERM)?.0;
    observed.check(said.status() == Some(200), || said.text());
    drop((silent, half));
    Ok(observed)
}

type Attack = fn(&Binary) -> Result<Observed, Skip>;

pub(super) fn cases() -> Vec<Case> {
    let bound = CaseBounds::exit(&[0]).within(4.0, 96.0);
    let large = CaseBounds::exit(&[0]).within(4.0, 512.0);
    let rows: [(&str, &CaseBounds, Attack); 8] = [
        ("ui-paths", &bound, attack_ui_paths),
        ("ui-hosts", &bound, attack_ui_hosts),
        ("ui-posts", &bound, attack_ui_posts),
        ("ui-idle-500", &bound, idle_on_ui),
        ("ui-folders-of-strangers", &bound, serve_strangers_folder),
        ("metrics", &bound, attack_metrics_page),
        ("mock-bodies", &large, attack_mock_bodies),
        ("mock-idle-3000", &bound, idle_on_mock),
    ];
    rows.into_iter()
        .map(|(name, expected, attack)| new_case("listener", name, expected.clone(), attack))
        .collect()
}
