//! Fetching files over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;

use goodput_model::{ConnectionPolicy, ErrorClass};
use goodput_testkit::{LAST_CHUNK, Server, Step, answer, chunk};
use goodput_wire::{
    DownloadError, Endpoint, EndpointSettings, FetchedPage, PageError, PagePlace, download,
    fetch_metrics_page,
};

fn fetch(url: &str, token: Option<&str>, limit: u64) -> Result<Vec<u8>, DownloadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut file = Vec::new();
    let fetched =
        tokio::task::LocalSet::new().block_on(&runtime, download(url, token, &mut file, limit));
    fetched.map(|length| {
        assert_eq!(length, file.len() as u64);
        file
    })
}

fn redirect(to: &str) -> Vec<Step> {
    vec![Step::write(format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"))]
}

fn file(body: &str) -> Vec<Step> {
    vec![answer("200 OK", "application/octet-stream", body)]
}

#[test]
fn a_file_comes_whole() {
    let body: String = (0..200_000).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
    let (whole, pieces) = (body.clone(), body.clone());
    let server = Server::start(move |_| file(&whole));
    let url = format!("{}/repo/file.json?v=1", server.url());
    assert_eq!(fetch(&url, Some("hf_token"), 1 << 20).unwrap(), body.as_bytes());
    let [request] = &server.requests()[..] else { panic!() };
    assert_eq!(request.line, "GET /repo/file.json?v=1 HTTP/1.1");
    assert_eq!(request.header("authorization"), Some("Bearer hf_token"));
    assert_eq!(request.header("content-type"), None);
    let chunked = Server::start(move |_| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
        let (one, two) = pieces.split_at(77_777);
        vec![Step::write(head + &chunk(one) + &chunk(two) + LAST_CHUNK)]
    });
    assert_eq!(fetch(&chunked.url(), None, 200_000).unwrap(), body.as_bytes());
    assert_eq!(chunked.requests()[0].header("authorization"), None);
}

#[test]
fn the_token_stays_with_its_host() {
    let cdn = Server::start(|request| match request.line.as_str() {
        "GET /a HTTP/1.1" => redirect("/b"),
        _ => file("data"),
    });
    let to = format!("{}/a", cdn.url());
    let hub = Server::start(move |request| match request.line.as_str() {
        "GET /r/x HTTP/1.1" => redirect("../r/y?z=1"),
        _ => redirect(&to),
    });
    let url = format!("{}/r/x", hub.url());
    assert_eq!(fetch(&url, Some("hf_token"), 9).unwrap(), b"data");
    let said = |server: &Server| {
        let requests = server.requests().into_iter();
        requests
            .map(|r| (r.line.clone(), r.header("authorization").map(str::to_owned)))
            .collect::<Vec<_>>()
    };
    let token = Some("Bearer hf_token".to_owned());
    assert_eq!(
        said(&hub),
        [
            ("GET /r/x HTTP/1.1".to_owned(), token.clone()),
            ("GET /r/y?z=1 HTTP/1.1".to_owned(), token),
        ]
    );
    assert_eq!(
        said(&cdn),
        [("GET /a HTTP/1.1".to_owned(), None), ("GET /b HTTP/1.1".to_owned(), None),]
    );
}

#[test]
fn redirects_end() {
    let steps = |n: usize| {
        Server::start(move |request| {
            if request.number < n { redirect(&format!("/{}", request.number)) } else { file("x") }
        })
    };
    assert_eq!(fetch(&steps(5).url(), None, 9).unwrap(), b"x");
    let six = steps(6);
    let error = fetch(&six.url(), None, 9).unwrap_err();
    assert!(matches!(error, DownloadError::Redirect { .. }), "{error}");
    assert!(error.to_string().ends_with("redirected more than 5 times"), "{error}");
    assert_eq!(six.requests().len(), 6);
    let odd = Server::start(|_| redirect("ftp://x/y"));
    assert!(matches!(fetch(&odd.url(), None, 9), Err(DownloadError::Url(_))));
    let nowhere = Server::start(|_| vec![answer("302 Found", "text/plain", "")]);
    let error = fetch(&nowhere.url(), None, 9).unwrap_err();
    assert!(matches!(error, DownloadError::Status { status: 302, .. }), "{error}");
}

#[test]
fn refusals_say_what_the_server_says() {
    let body = format!("no \u{1b}[31m hf_verysecret {}", "x".repeat(5000));
    let server = Server::start(move |_| vec![answer("404 Not Found", "text/plain", &body)]);
    let url = format!("{}/repo?sig=secret", server.url());
    let error = fetch(&url, Some("hf_verysecret"), 9).unwrap_err().to_string();
    let expected = format!(
        "{}/repo?sig=[redacted]: HTTP 404: no \\u{{1b}}[31m [redacted] {}",
        server.url(),
        "x".repeat(80 - 20)
    );
    assert_eq!(error, expected);
}

#[test]
fn a_file_that_is_not_whole_is_none() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n";
    let none = "";
    for (text, class) in [
        (format!("{head}abcde"), ErrorClass::Cut),
        (chunked.to_owned(), ErrorClass::Cut),
        (none.to_owned(), ErrorClass::Closed),
        ("220 smtp\r\n\r\n".to_owned(), ErrorClass::BadHttp),
    ] {
        let server = Server::start(move |_| vec![Step::write(text.clone()), Step::Close]);
        match fetch(&server.url(), None, 99) {
            Err(DownloadError::Failed { failure, .. }) => assert_eq!(failure.class, class),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn nothing_beyond_the_limit() {
    let server = Server::start(|_| file("0123456789"));
    assert_eq!(fetch(&server.url(), None, 10).unwrap(), b"0123456789");
    let error = fetch(&server.url(), None, 9).unwrap_err();
    assert!(matches!(error, DownloadError::TooLarge { limit: 9, .. }), "{error}");
}

#[test]
fn a_full_disk_is_said() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let server = Server::start(|_| file("x"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = server.url();
    let mut full = Full;
    let fetching = download(&url, None, &mut full, 9);
    let error = tokio::task::LocalSet::new().block_on(&runtime, fetching).unwrap_err();
    assert!(matches!(error, DownloadError::Write { .. }), "{error}");
}

/// The target's metrics page, read this many times.
fn pages(server: &Server, times: usize) -> Vec<Result<FetchedPage, PageError>> {
    let endpoint = endpoint(server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut reader = PagePlace::next_to(&endpoint, "metrics").to_reader();
        let mut pages = Vec::new();
        for _ in 0..times {
            pages.push(reader.read(Duration::from_secs(20)).await);
        }
        pages
    })
}

fn endpoint(server: &Server) -> Arc<Endpoint> {
    let settings = EndpointSettings {
        connections: ConnectionPolicy::PerRequest,
        api_key: Some("sesame".to_owned()),
        ..EndpointSettings::new(format!("{}/llm/v1", server.url()).parse().unwrap())
    };
    Arc::new(Endpoint::new(&settings).unwrap())
}

#[test]
fn a_page_is_found_once_and_read_over_one_connection() {
    let server = Server::start(|request| match request.line.as_str() {
        "GET /metrics HTTP/1.1" => file("up 1\n"),
        _ => vec![answer("404 Not Found", "text/plain", "no")],
    });
    let read = pages(&server, 2);
    assert!(read.iter().flatten().all(|page| page.text == "up 1\n"), "{read:?}");
    let [first, second] = [0, 1].map(|place| read[place].clone().unwrap());
    assert!(first.asked <= first.answered && first.answered <= second.asked);
    let asked = server.requests();
    let lines: Vec<&str> = asked.iter().map(|request| request.line.as_str()).collect();
    let [one, two, three] =
        ["/llm/metrics", "/llm/v1/metrics", "/metrics"].map(|path| format!("GET {path} HTTP/1.1"));
    assert_eq!(lines, [one, two, three.clone(), three]);
    assert!(asked.iter().all(|request| request.connection == 0));
    assert!(asked.iter().all(|request| request.header("authorization") == Some("Bearer sesame")));
}

#[test]
fn a_page_without_end_is_left() {
    // The length is not said beforehand.
    let endless = Server::start(|_| {
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_owned();
        vec![Step::write(head), Step::Write(vec![b'#'; (16 << 20) + 1]), Step::Close]
    });
    assert_eq!(pages(&endless, 1), [Err(PageError::TooLarge)]);
    // It is said, and not waited for.
    let huge = Server::start(|_| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", (16 << 20) + 1);
        vec![Step::write(head), Step::Pause(Duration::from_secs(30))]
    });
    assert_eq!(pages(&huge, 1), [Err(PageError::TooLarge)]);
    let none = Server::start(|_| vec![answer("403 No", "text/plain", "no")]);
    assert_eq!(pages(&none, 1), [Err(PageError::Status(403))]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (endpoint, limit) = (endpoint(&none), Duration::from_secs(20));
    let page =
        tokio::task::LocalSet::new().block_on(&runtime, fetch_metrics_page(&endpoint, limit));
    assert_eq!(page, Ok(None));
}
