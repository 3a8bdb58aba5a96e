use super::*;

fn target(url: &str, http: Http) -> RequestTarget {
    RequestTarget::new(&url.parse().unwrap(), http).unwrap()
}

fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = http::Request::post(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn passed(target: &RequestTarget, parts: &Parts) -> http::Request<()> {
    target.upstream_head(&parts.method, &parts.uri, &parts.headers, None).unwrap()
}

#[test]
fn paths_go_behind_the_base_and_queries_stay() {
    let cases = [
        ("http://h", "/v1/x?a=%20&b", "/v1/x?a=%20&b"),
        ("http://h/", "/", "/"),
        ("http://h/v1", "/v1/chat/completions", "/v1/chat/completions"),
        ("http://h/v1", "/chat/completions?x", "/v1/chat/completions?x"),
        ("http://h/v1", "/v1x", "/v1/v1x"),
        ("http://h/a/v1/chat/completions", "/v1/models", "/a/v1/v1/models"),
        ("http://h/a/v1/chat/completions", "/chat/completions", "/a/v1/chat/completions"),
        ("http://h/v1?api-version=7", "/v1/x", "/v1/x?api-version=7"),
        ("http://h/v1?api-version=7", "/x?a=1", "/v1/x?a=1&api-version=7"),
        ("http://h", "/a//b/../c/%2e%2e?", "/a//b/../c/%2e%2e?"),
    ];
    for (url, path, expected) in cases {
        let request = passed(&target(url, Http::Http1), &parts(path, &[]));
        assert_eq!(request.uri().to_string(), expected, "{url} {path}");
    }
    let request = passed(&target("https://h:8/v1", Http::Http2), &parts("/x", &[]));
    assert_eq!(request.uri().to_string(), "https://h:8/v1/x");
    assert!(!request.headers().contains_key("host"));
    let absolute =
        passed(&target("http://h", Http::Http1), &parts("http://evil/x", &[("host", "e")]));
    assert_eq!(absolute.uri().to_string(), "/x");
    assert_eq!(absolute.headers()["host"], "h");
}

#[test]
fn what_belongs_to_a_connection_stays_there() {
    let sent = parts(
        "/x",
        &[
            ("connection", "close, X-A"),
            ("connection", "x-b"),
            ("x-a", "1"),
            ("x-b", "1"),
            ("keep-alive", "1"),
            ("proxy-anything", "1"),
            ("te", "gzip, Trailers;q=1"),
            ("trailer", "x-sum"),
            ("upgrade", "h2c"),
            ("http2-settings", "a"),
            ("content-length", "9"),
            ("expect", "100-continue"),
            ("x-forwarded-for", "1.2.3.4"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("accept", "a"),
            ("accept", "b"),
        ],
    );
    let request = passed(&target("http://h", Http::Http1), &sent);
    let mut names: Vec<_> =
        request.headers().iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
    names.sort();
    let expected = [
        "accept: a",
        "accept: b",
        "cookie: a=1; b=2",
        "host: h",
        "te: trailers",
        "trailer: x-sum",
        "x-forwarded-for: 1.2.3.4",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_loop_is_known_by_our_name_alone() {
    let via = HeaderValue::from_static("1.1 goodput-7");
    let sent = |value: &str| parts("/x", &[("host", "h"), ("via", value)]);
    assert_eq!(refusal_reason(&sent("1.1 other, 1.1 goodput-7"), &via), Some(Own::Loop));
    assert_eq!(refusal_reason(&sent("1.1 goodput-8"), &via), None);
}

#[test]
fn apis_are_known_by_their_paths() {
    let api = |path| api_of_request(&Method::POST, path);
    assert_eq!(api("/v1/chat/completions"), Some(Api::Chat));
    assert_eq!(api("/openai/deployments/x/chat/completions/"), Some(Api::Chat));
    assert_eq!(api("/v1/completions"), Some(Api::Completions));
    assert_eq!((api("/v1/embeddings"), api("/v1/mycompletions"), api("/")), (None, None, None));
    assert_eq!(api_of_request(&Method::GET, "/v1/completions"), None);
}
