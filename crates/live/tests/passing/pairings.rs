//! Every version of HTTP on either side, with TLS and without.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Notes, settings, start, until};
use bytes::Bytes;
use goodput_live::{Backend, Ending, Limits, OwnRequest, Proxy, Settings, TlsFiles, Upstream};
use goodput_mock::MockServer;
use goodput_model::{Api, ConnectionPolicy, ErrorClass, Exchange, Http};
use goodput_testkit::{STREAM_HEAD, Server, Step, chunk, token_event};
use goodput_wire::{Client, Endpoint};

const BODY: &[u8] = br#"{"model":"mock","stream":true,"max_tokens":5,"ignore_eos":true,
    "stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi there"}]}"#;

pub(crate) struct Certificate {
    folder: tempfile::TempDir,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(folder.path().join("cert.pem"), cert.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
        Self { folder }
    }

    pub(crate) fn files(&self) -> TlsFiles {
        let path = |name: &str| self.folder.path().join(name);
        TlsFiles { certificate: path("cert.pem"), key: path("key.pem") }
    }
}

fn endpoint(url: &str, http: Http) -> Arc<Endpoint> {
    let settings = goodput_wire::EndpointSettings {
        url: url.parse().unwrap(),
        api: Api::Chat,
        stream: true,
        http,
        connections: ConnectionPolicy::Reuse,
        api_key: None,
        headers: Vec::new(),
        cacert: None,
        insecure: true,
        keep_text: false,
    };
    Arc::new(Endpoint::new(&settings).unwrap())
}

fn on_a_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, work)
}

/// Sends this number of requests at once.
pub(crate) fn ask(url: &str, http: Http, count: usize) -> Vec<Exchange> {
    on_a_runtime(async {
        let client = Rc::new(Client::new(endpoint(url, http)));
        let tasks: Vec<_> = (0..count)
            .map(|_| {
                let client = Rc::clone(&client);
                tokio::task::spawn_local(async move {
                    let mut exchange = Exchange::default();
                    client.send(Bytes::from_static(BODY), &mut exchange).await;
                    exchange
                })
            })
            .collect();
        let mut exchanges = Vec::new();
        for task in tasks {
            exchanges.push(task.await.unwrap());
        }
        exchanges
    })
}

fn proxy(upstream: Upstream, tls: Option<TlsFiles>, workers: usize) -> (Proxy, Arc<Notes>) {
    start(Settings { upstream, tls, workers, ..settings("http://127.0.0.1:1") })
}

fn essence(exchange: &Exchange) -> impl PartialEq + std::fmt::Debug {
    // The words of the mock are new for every request.
    let chunks: Vec<_> =
        exchange.chunks.iter().map(|c| (c.bytes > 0, c.tokens, c.choice)).collect();
    let class = exchange.failure.as_ref().map(|failure| failure.class);
    let counts = (exchange.input_tokens, exchange.output_tokens);
    (chunks, counts, exchange.finish.clone(), class, exchange.status)
}

#[test]
fn all_pairings_give_the_same_answer() {
    let certificate = Certificate::new();
    let TlsFiles { certificate: chain, key } = certificate.files();
    let files = goodput_mock::ServerTlsFiles { certificate: chain, key };
    let plain = MockServer::start("127.0.0.1:0", "".parse().unwrap(), None, None).unwrap();
    let tls = MockServer::start("127.0.0.1:0", "".parse().unwrap(), Some(&files), None).unwrap();
    let direct = ask(&format!("http://{}", plain.address()), Http::Http1, 1).remove(0);
    assert_eq!((direct.failure.clone(), direct.chunks.len()), (None, 5));
    let upstreams = [
        format!("http://{}", plain.address()),
        format!("https://localhost:{}", tls.address().port()),
    ];
    let cacert = Some(std::fs::read(&files.certificate).unwrap());
    for url in &upstreams {
        for http in [Http::Http1, Http::Http2] {
            for listens in [None, Some(certificate.files())] {
                let url = url.parse().unwrap();
                let upstream = Upstream { url, http, cacert: cacert.clone(), insecure: false };
                let scheme = if listens.is_some() { "https" } else { "http" };
                let (proxy, notes) = proxy(upstream, listens, 1);
                let through = format!("{scheme}://localhost:{}", proxy.address().port());
                for client in [Http::Http1, Http::Http2] {
                    let name = format!("{client:?} {through} to {http:?}");
                    for exchange in ask(&through, client, 3) {
                        assert_eq!(essence(&exchange), essence(&direct), "{name}");
                    }
                }
                let told = notes.answers(6);
                for told in told {
                    assert_eq!(told.ending, Ending::Whole);
                    assert_eq!(essence(&told.exchange), essence(&direct));
                }
                let bodies =
                    notes.questions().iter().all(|asked| asked.body.as_deref() == Some(BODY));
                assert!(bodies && notes.questions().len() == 6);
            }
        }
    }
}

#[test]
fn more_streams_than_a_connection_carries_get_another() {
    let mock = MockServer::start("127.0.0.1:0", "".parse().unwrap(), None, None).unwrap();
    let url = format!("http://{}", mock.address()).parse().unwrap();
    let upstream = Upstream { url, http: Http::Http2, cacert: None, insecure: false };
    let (proxy, notes) = proxy(upstream, None, 1);
    let exchanges = ask(&format!("http://{}", proxy.address()), Http::Http2, 230);
    assert!(exchanges.iter().all(|exchange| exchange.failure.is_none()));
    let mut links: Vec<_> =
        notes.answers(230).iter().map(|told| told.exchange.connection).collect();
    links.sort_unstable();
    links.dedup();
    assert!(links.len() > 1 && links.len() < 20, "{links:?}");
}

#[test]
fn several_workers_share_the_load() {
    let mock = MockServer::start("127.0.0.1:0", "".parse().unwrap(), None, None).unwrap();
    let upstream = crate::support::upstream(&format!("http://{}", mock.address()));
    let (proxy, notes) = proxy(upstream, None, 3);
    let exchanges = ask(&format!("http://{}", proxy.address()), Http::Http1, 60);
    assert!(exchanges.iter().all(|exchange| exchange.failure.is_none()));
    let mut numbers: Vec<_> = notes.answers(60).iter().map(|told| told.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..60).collect::<Vec<_>>());
    assert!(proxy.is_running());
    assert_eq!(proxy.drain(Duration::from_secs(20)).cut, 0);
}

#[test]
fn a_cut_upstream_resets_its_http_2_stream_and_other_streams_live() {
    let server = Server::start(|request| {
        if request.number == 0 {
            let begin = format!("{STREAM_HEAD}{}", chunk(&token_event("a")));
            return vec![Step::write(begin), Step::Pause(Duration::from_millis(50)), Step::Reset];
        }
        goodput_testkit::timed_stream(Duration::ZERO, Duration::from_millis(40), 4)
    });
    let (proxy, notes) = start(settings(&server.url()));
    let url = format!("http://{}", proxy.address());
    let outcomes = on_a_runtime(async {
        let client = Rc::new(Client::new(endpoint(&url, Http::Http2)));
        let send = |client: Rc<Client>| async move {
            let mut exchange = Exchange::default();
            client.send(Bytes::from_static(BODY), &mut exchange).await;
            exchange
        };
        let first = tokio::task::spawn_local(send(Rc::clone(&client)));
        let seen = || server.requests().len();
        while seen() == 0 {
            tokio::task::yield_now().await;
        }
        let second = send(client).await;
        [first.await.unwrap(), second]
    });
    let classes = outcomes.each_ref().map(|e| e.failure.as_ref().map(|failure| failure.class));
    assert_eq!(classes, [Some(ErrorClass::Cut), None]);
    assert_eq!(outcomes.each_ref().map(|exchange| exchange.chunks.len()), [1, 4]);
    assert_eq!(notes.answers(2).iter().filter(|told| told.ending == Ending::Broken).count(), 1);
}

#[test]
fn a_stream_of_http_2_that_is_given_up_cancels_its_request() {
    for http in [Http::Http1, Http::Http2] {
        // Ten minutes to the first token: only a cancelled request ends before that.
        let mock =
            MockServer::start("127.0.0.1:0", "ttft=600s".parse().unwrap(), None, None).unwrap();
        let url = format!("http://{}", mock.address()).parse().unwrap();
        let upstream = Upstream { url, http, cacert: None, insecure: false };
        let (proxy, notes) = proxy(upstream, None, 1);
        let url = format!("http://{}", proxy.address());
        on_a_runtime(async {
            let client = Client::new(endpoint(&url, Http::Http2));
            let mut exchange = Exchange::default();
            let sent = client.send(Bytes::from_static(BODY), &mut exchange);
            assert!(tokio::time::timeout(Duration::from_millis(300), sent).await.is_err());
            // The connection stays; only the stream is given up.
            while notes.answered.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert_eq!(notes.answers(1)[0].ending, Ending::ClientGone, "{http:?}");
        until(|| proxy.tally().in_flight.get() == 0);
    }
}

#[test]
fn a_question_of_our_own_is_measured_like_one_that_passes() {
    let mock = MockServer::start("127.0.0.1:0", "".parse().unwrap(), None, None).unwrap();
    let direct = ask(&format!("http://{}", mock.address()), Http::Http1, 1).remove(0);
    for http in [Http::Http1, Http::Http2] {
        let url = format!("http://{}", mock.address()).parse().unwrap();
        let upstream = Upstream { url, http, cacert: None, insecure: false };
        let (exchanges, refused) = on_a_runtime(async {
            let backend = Backend::new(&upstream, &Limits::default()).unwrap();
            let head = |path: &str| {
                let request = http::Request::post(path).header("host", "h").body(()).unwrap();
                request.into_parts().0
            };
            let question = |path: &str, limit| OwnRequest {
                head: head(path),
                body: Bytes::from_static(BODY),
                via: None,
                keep_text: true,
                limit,
                most_bytes: 1 << 20,
            };
            let chat = "/v1/chat/completions";
            let long = Duration::from_secs(20);
            let first = backend.send_own(question(chat, long)).await;
            let second = backend.send_own(question(chat, long)).await;
            let refused = backend.send_own(question("/v1/nothing/chat/completions", long)).await;
            let late = backend.send_own(question(chat, Duration::ZERO)).await;
            assert_eq!(late.failure.unwrap().class, ErrorClass::Timeout);
            ([first, second], refused)
        });
        for exchange in &exchanges {
            assert_eq!(essence(exchange), essence(&direct), "{http:?}");
            assert!(exchange.text.as_ref().is_some_and(|text| !text.is_empty()));
        }
        assert!(exchanges[0].stamps.connect.is_some() && exchanges[1].stamps.connect.is_none());
        assert_eq!(refused.failure.unwrap().class, ErrorClass::Http(404), "{http:?}");
    }
}
