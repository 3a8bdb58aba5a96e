//! Secrets are written nowhere, and what is exposed is said.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use goodput_testkit::{
    ArrivedRequest, LAST_CHUNK, STREAM_HEAD, Server, Step, answer, chunk, timed_stream,
};

use crate::support::{Session, ms, outcome_of};

const KEY: &str = "sk-TOPSECRET/0123456789-abcdef-ABCDEF-99";

/// A text byte by byte.
fn each(text: &str, write: &dyn Fn(u8) -> String) -> String {
    text.bytes().map(write).collect()
}

/// Standard base64, without padding.
fn base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = each(text, &|byte| format!("{byte:08b}"));
    let sextets = bits.as_bytes().chunks(6);
    let letter = |bits: &[u8]| {
        let text = format!("{:0<6}", str::from_utf8(bits).unwrap());
        char::from(ALPHABET[usize::from_str_radix(&text, 2).unwrap()])
    };
    sextets.map(letter).collect()
}

/// The key as servers may quote it.
fn ways() -> Vec<String> {
    let each = |write: &dyn Fn(u8) -> String| each(KEY, write);
    let url_safe = |text: String| text.replace('+', "-").replace('/', "_");
    let broken = |by: &str| KEY.replace("SECRET", &format!("SEC{by}RET"));
    vec![
        KEY.to_owned(),
        format!("Bearer {KEY}"),
        KEY.to_uppercase(),
        KEY.to_lowercase(),
        KEY.replace('/', "\\/"),
        KEY.replace('/', "\\\\\\/"),
        KEY.replace("sk", "\\u0073k"),
        each(&|byte| format!("\\u{byte:04x}")),
        each(&|byte| format!("\\\\u{byte:04X}")),
        each(&|byte| format!("\\\\x{byte:02x}")),
        KEY.replace('/', "%2F"),
        KEY.replace('/', "%252F"),
        each(&|byte| format!("%{byte:02x}")),
        KEY.replace('/', "&sol;"),
        KEY.replace('-', "&#45;"),
        each(&|byte| format!("&#{byte};")),
        each(&|byte| format!("&#x{byte:02X};")),
        base64(KEY),
        base64(&format!("a{KEY}")),
        base64(&format!("ab{KEY}")),
        base64(&format!("Bearer {KEY}")),
        base64(&format!("user:{KEY}, and more")),
        url_safe(base64(&format!("?{KEY}?"))),
        url_safe(base64(&format!("??{KEY}?"))),
        base64(KEY).replace('/', "\\/"),
        each(&|byte| format!("{byte:02x}")),
        each(&|byte| format!("{byte:02X} ")),
        broken("\r\n"),
        broken("\n    "),
        broken("\\n"),
        broken("\u{200b}"),
        broken("\\u200b"),
        broken("\u{ad}"),
        broken(" "),
        each(&|byte| format!("{} ", char::from(byte))),
        KEY[..KEY.len() - 1].to_owned(),
        KEY[..30].to_owned(),
        KEY[..16].to_owned(),
        KEY[3..].to_owned(),
    ]
}

/// Fails where any part of a quote is left that tells the key.
fn assert_clean(text: &str) {
    let bare: String = text.to_lowercase().split_whitespace().collect();
    for piece in KEY.to_lowercase().as_bytes().windows(16) {
        let piece = str::from_utf8(piece).unwrap();
        assert!(!bare.contains(piece), "`{piece}` was written");
    }
    for way in ways() {
        // White space is joined on the way.
        let way: String = way.split_whitespace().collect();
        let letters = way.chars().count();
        let piece: String = way.chars().skip(letters / 4).take(14).collect();
        let piece = piece.to_lowercase();
        assert!(!bare.contains(&piece), "`{piece}` of `{way}` was written");
    }
}

fn everything(session: &Session, output: &std::process::Output) -> String {
    let mut written = session.everything_written();
    written.extend(&output.stdout);
    written.extend(&output.stderr);
    String::from_utf8_lossy(&written).into_owned()
}

#[test]
fn no_way_of_quoting_a_secret_gets_into_a_message() {
    let count = ways().len();
    assert!(count >= 30);
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |request: &ArrivedRequest| {
        if !request.line.starts_with("POST") {
            return vec![answer("404 Not Found", "text/plain", "")];
        }
        let number = asked.fetch_add(1, Ordering::Relaxed) % (2 * count);
        let way = &ways()[number / 2];
        let sig = request.line.split("sig=").nth(1).and_then(|rest| rest.split(' ').next());
        let more = request.header("x-secret").unwrap_or_default();
        let said = format!("way {number:02} <{way}> {more} {}", sig.unwrap_or_default());
        if number.is_multiple_of(2) {
            return vec![answer("429 Too Many", "text/plain", &said)];
        }
        let body = format!(r#"{{"error":{{"message":"{said}"}}}}"#);
        vec![answer("429 Too Many", "application/json", &body)]
    });
    let session = Session::new();
    let url = format!("{}/v1?sig=query%2Fsecret77", server.url());
    let number = (2 * count).to_string();
    let args = ["run", &url, "--rate", "inf", "--num-requests", &number, "--model", "m"];
    let more = ["--header", "x-secret: hunter2hunter2", "--no-probe", "-v", "--out", "out"];
    let output = session.command(&args).args(more).env("OPENAI_API_KEY", KEY).output().unwrap();
    let text = everything(&session, &output);
    for number in 0..2 * count {
        assert!(text.contains(&format!("way {number:02} <")), "way {number} was not kept");
    }
    assert!(text.contains("[redacted]> [redacted] [redacted]"), "{text}");
    assert_clean(&text);
    assert!(!text.contains("hunter2hunter2") && !text.contains("secret77"));
    let command = format!(
        "goodput run '{}/v1?sig=[redacted]' --rate inf --num-requests {number} --model m --header \
         'x-secret: [redacted]' --no-probe -v --out out",
        server.url()
    );
    let summary = std::fs::read_to_string(session.path("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["run"]["command"], command.as_str());
    let page = std::fs::read_to_string(session.path("out/report.html")).unwrap();
    assert!(page.contains(&command.replace('\'', "&#39;")), "not under *Reproduce*");
}

#[test]
fn no_place_that_a_server_writes_to_leaks_a_secret() {
    let quoted = |way: &str| {
        let event = |more: &str| {
            format!(r#"data: {{"id":"{way}","choices":[{{"index":0,{more}}}]}}"#) + "\n\n"
        };
        let text = event(&format!(r#""delta":{{"content":"my key is {way}."}}"#));
        let end = event(&format!(r#""delta":{{}},"finish_reason":"{way}""#));
        let body = chunk(&format!("{text}{end}data: [DONE]\n\n"));
        vec![Step::write(STREAM_HEAD), Step::write(body), Step::write(LAST_CHUNK)]
    };
    let encoded = each(KEY, &|byte| format!("%{byte:02x}"));
    let server = Server::start(move |request: &ArrivedRequest| {
        let json = |body: String| vec![answer("200 OK", "application/json", &body)];
        match request.line.split(' ').nth(1).unwrap_or_default() {
            "/v1/models" => json(format!(r#"{{"data":[{{"id":"{KEY}"}}]}}"#)),
            "/version" => json(format!(r#"{{"version":"{encoded}","{KEY}":"x"}}"#)),
            "/metrics" => {
                let page = format!("vllm:num_requests_running{{model_name=\"{KEY}\"}} 1\n");
                vec![answer("200 OK", "text/plain", &page)]
            }
            "/tokenize" => vec![Step::write(format!("HTTP/1.1 2x0 {KEY}\r\n\r\n")), Step::Close],
            _ if request.number.is_multiple_of(2) => quoted(KEY),
            _ => quoted(&encoded),
        }
    });
    let session = Session::new();
    let url = server.url();
    let args = ["run", &url, "--rate", "inf", "--num-requests", "6", "--isl", "32", "--osl", "4"];
    let output = session
        .command(&args)
        .args(["--save-text", "-v", "--out", "out"])
        .env("OPENAI_API_KEY", KEY)
        .output()
        .unwrap();
    let text = everything(&session, &output);
    assert_clean(&text);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("invalid response status: HTTP/1.1 2x0 [redacted]"), "{said}");
    assert!(said.contains("using the name `default`"), "{said}");
    let texts = std::fs::read_to_string(session.path("out/text.jsonl")).unwrap();
    assert_eq!(texts.matches(r#""answer":"my key is [redacted].""#).count(), 6, "{texts}");
    let log = std::fs::read(session.path("out/requests.log")).unwrap();
    assert!(String::from_utf8_lossy(&log).contains("[redacted]"), "no finish reason was kept");
    // Nor does it come back from the folder.
    for format in ["text", "html", "csv"] {
        assert_clean(&session.run(&["report", "-v", "out", "--format", format]).stdout);
    }
}

#[test]
fn a_file_that_chooses_whose_key_goes_where_is_said() {
    let server = Server::start(|_| timed_stream(ms(1), ms(1), 2));
    let session = Session::new();
    let url = server.url();
    let run = |args: &[&str]| {
        let mut command = session.command(&["run", "--quiet"]);
        command.args(args).env("OTHER_SECRET", "sk-other-secret").env("OPENAI_API_KEY", KEY);
        outcome_of(&mut command)
    };
    let load = ["--rate", "inf", "--num-requests", "2", "--model", "m", "--no-length-check"];
    let typed =
        run(&[&[url.as_str(), "--api-key-env", "OTHER_SECRET", "--out", "a"], &load[..]].concat());
    typed.assert_finished("");
    assert!(!typed.stderr.contains("OTHER_SECRET"), "{}", typed.stderr);
    let planned = run(&["--plan", "a/plan.toml", "--out", "b"]);
    planned.assert_finished("");
    let host = server.address();
    let line = format!("warning: the key in $OTHER_SECRET goes to {host}: a file names both\n");
    assert_eq!(planned.stderr.matches(&line).count(), 1, "{}", planned.stderr);
    let sent = server.requests();
    assert_eq!(sent.last().unwrap().header("authorization"), Some("Bearer sk-other-secret"));
    // The host was typed: the variable alone is the file's.
    let again = run(&[&url, "--plan", "a/plan.toml", "--out", "c"]);
    let line = format!("note: the key in $OTHER_SECRET goes to {host}: a file names that variable");
    assert!(again.stderr.contains(&line), "{}", again.stderr);
    // Naming the usual variable is not a choice.
    run(&[&[url.as_str(), "--out", "d"], &load[..]].concat()).assert_finished("");
    let usual = run(&["--plan", "d/plan.toml", "--out", "e"]);
    usual.assert_finished("");
    assert!(!usual.stderr.contains("the key in"), "{}", usual.stderr);
}

#[test]
fn lists_of_targets_that_choose_keys_are_said_before_the_first_request() {
    let session = Session::new();
    // Closed again: nothing is there to be asked.
    let host = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let one = |name: &str| {
        format!(
            "[[target]]\nname = '{name}'\nurl = 'http://{host}'\napi_key_env = 'OTHER_SECRET'\n"
        )
    };
    std::fs::write(session.path("targets.toml"), one("a") + &one("b")).unwrap();
    let args = ["compare", "--targets", "targets.toml", "--rate", "1", "--model", "m"];
    let outcome = outcome_of(session.command(&args).env("OTHER_SECRET", "sk-other-secret"));
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    let line = format!("warning: the key in $OTHER_SECRET goes to {host}: a file names both");
    assert!(outcome.stderr.contains(&line), "{}", outcome.stderr);
}

#[test]
fn files_with_texts_are_for_the_user_alone() {
    let session = Session::new();
    let mode =
        |name: &str| std::fs::metadata(session.path(name)).unwrap().permissions().mode() & 0o777;
    let args = ["--rate", "inf", "--num-requests", "2", "--isl", "30", "--osl", "4", "--save-text"];
    session.measure("mock:ttft=1ms,itl=1ms", &args);
    assert_eq!(mode("out/text.jsonl"), 0o600);
    let outcome = session.run(&[
        "workload",
        "make",
        "--workload",
        "chat",
        "--num-requests",
        "3",
        "--output",
        "w.jsonl",
    ]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(mode("w.jsonl"), 0o600);
}

#[test]
fn listeners_that_other_machines_can_reach_say_so() {
    let session = Session::new();
    let run = |address: &str| {
        let args = ["run", "mock:ttft=1ms,itl=1ms", "--rate", "inf", "--num-requests", "1"];
        let more = ["--quiet", "--isl", "30", "--osl", "2", "--metrics-listen", address];
        session.run(&[&args[..], &more[..]].concat()).stderr
    };
    let said = run("0.0.0.0:0");
    assert!(said.contains("warning: other machines can reach 0.0.0.0:"), "{said}");
    let said = run("127.0.0.1:0");
    assert!(!said.contains("other machines"), "{said}");
    for (address, is_said) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let mut child = session.spawn(&["mock", "--listen", address]);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.starts_with("mock engine on"), "{first}");
        // Its end closes the pipe, so that there is a next line or none.
        goodput_clock::pause(goodput_model::Nanos::from_millis(300));
        child.kill().unwrap();
        child.wait().unwrap();
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        let has = rest.iter().any(|line| line.contains("warning: other machines can reach"));
        assert_eq!(has, is_said, "{address}: {rest:?}");
    }
}
