//! What a mirror sends on, seen by its candidate.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::support::{exchange, post, settings, start, until, upstream};
use bytes::Bytes;
use goodput_clock::{now, pause};
use goodput_live::{
    By, CandidateAnswer, Caps, Half, HalfSender, HeadRules, Limits, Mirror, MirrorSettings,
    ObservedRequest, Rules, StopAt,
};
use goodput_model::{Api, ErrorClass, Nanos};
use goodput_testkit::{Server, answer};

const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
const CHAT: &str = "/v1/chat/completions";

/// What a mirror says, one after the other.
pub(crate) struct MirroredHalves(Receiver<Half>, Mutex<Vec<Option<CandidateAnswer>>>);

impl MirroredHalves {
    /// All so far.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Option<CandidateAnswer>>> {
        let mut heard = self.1.lock().unwrap();
        heard.extend(self.0.try_iter().map(|half| match half {
            Half::Candidate(answer, _) => Some(*answer),
            Half::Left(_) | Half::Primary(..) => None,
        }));
        heard
    }
}

pub(crate) fn mirror(candidate: &str, caps: Caps) -> (Mirror, MirroredHalves) {
    let settings = MirrorSettings {
        candidate: upstream(candidate),
        limits: Limits::default(),
        share: 1.0,
        seed: 1,
        by: By::Request,
        rules: Rules::default(),
        model: None,
        head: HeadRules::default(),
        caps,
        stop_at: StopAt::default(),
        keep_text: false,
    };
    let (halves, heard) = HalfSender::new();
    (Mirror::start(settings, halves).unwrap(), MirroredHalves(heard, Mutex::default()))
}

fn word(heard: &MirroredHalves) -> Option<CandidateAnswer> {
    until(|| !heard.lock().is_empty());
    heard.lock().remove(0)
}

#[test]
fn a_request_that_comes_back_through_the_candidate_is_known() {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let (proxy, notes) = start(settings(&server.url()));
    exchange(proxy.address(), post(CHAT, BODY).as_bytes());
    notes.answers(1);
    let asked = notes.questions().remove(0);
    let (mirror, heard) = mirror(&format!("http://{}", proxy.address()), Caps::default());
    assert!(mirror.offer(&asked));
    let mirrored = word(&heard).unwrap();
    assert_eq!(mirrored.exchange.failure.unwrap().class, ErrorClass::Http(508));
    assert_eq!((server.requests().len(), proxy.tally().refused.get()), (1, 1));
    mirror.drain(Duration::ZERO);
}

#[test]
fn a_slow_upload_is_no_wait_in_our_queue() {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let wait = Duration::from_secs(1);
    let (mirror, heard) = mirror(&server.url(), Caps { wait, ..Caps::default() });
    let arrived = now();
    pause(Nanos::from(wait) + Nanos::from_millis(50));
    let request = http::Request::post(CHAT).body(()).unwrap();
    let asked = ObservedRequest {
        number: 0,
        arrived,
        api: Some(Api::Chat),
        head: Arc::new(request.into_parts().0),
        via: http::HeaderValue::from_static("1.1 goodput-7"),
        session: None,
        body: Some(Bytes::from_static(BODY.as_bytes())),
    };
    assert!(mirror.offer(&asked));
    assert!(word(&heard).is_some());
    assert_eq!((mirror.tally().sent(), server.requests().len()), (1, 1));
    assert_eq!(server.requests()[0].header("via"), Some("1.1 goodput-7"));
    mirror.drain(Duration::ZERO);
}
