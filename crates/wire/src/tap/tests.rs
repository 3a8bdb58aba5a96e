use goodput_model::{FailureStage, TokenSource};
use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn read(at: u64) -> Read {
    Read { at: Nanos(at), sequence: at, lag_us: None }
}

fn headers(kind: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))])
}

fn passing(status: u16, kind: &'static str) -> AnswerTap {
    let mut passing = AnswerTap::new(true, false);
    passing.take_head(PassedHead { status, headers: &headers(kind), read: read(1) });
    passing
}

fn class(exchange: &Exchange) -> Option<ErrorClass> {
    exchange.failure.as_ref().map(|failure| failure.class)
}

const TOKEN: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n";
const FINISH: &[u8] =
    b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const WHOLE: &[u8] =
    br#"{"choices":[{"index":0,"message":{"content":"secret"},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":7,"completion_tokens":3}}"#;

#[test]
fn a_stream_is_stamped_by_its_reads() {
    let mut passing = passing(200, "text/event-stream; charset=utf-8");
    passing.take_bytes(TOKEN, read(5));
    passing.take_bytes(TOKEN, read(9));
    passing.take_bytes(FINISH, read(11));
    assert!(passing.is_done());
    let exchange = passing.end(read(12));
    assert_eq!(exchange.failure, None);
    let stamps = exchange.stamps;
    let expected = [Some(Nanos(1)), Some(Nanos(5)), Some(Nanos(9)), Some(Nanos(11))];
    assert_eq!([stamps.headers, stamps.first_token, stamps.last_token, stamps.done], expected);
    assert_eq!(exchange.chunks.len(), 2);
    assert_eq!(exchange.finish.as_deref(), Some("stop"));
    assert_eq!(exchange.text, None);
}

#[test]
fn an_answer_in_one_piece_is_read_at_its_end() {
    let mut whole = passing(200, "application/json");
    let (first, second) = WHOLE.split_at(20);
    whole.take_bytes(first, read(3));
    whole.take_bytes(second, read(4));
    let exchange = whole.end(read(4));
    assert_eq!(exchange.failure, None);
    assert_eq!(exchange.output_tokens.map(|count| count.n), Some(3));
    assert_eq!((exchange.stamps.done, exchange.stamps.first_token), (Some(Nanos(4)), None));
}

#[test]
fn text_is_kept_when_asked_for_and_up_to_a_limit() {
    let mut passing = AnswerTap::new(true, true);
    let headers = headers("text/event-stream");
    passing.take_head(PassedHead { status: 200, headers: &headers, read: read(1) });
    let long = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "é".repeat(300_001)
    );
    for at in 2..5 {
        passing.take_bytes(long.as_bytes(), read(at));
    }
    passing.take_bytes(FINISH, read(6));
    let exchange = passing.end(read(7));
    assert_eq!(exchange.failure, None);
    let text = exchange.text.unwrap();
    assert!(text.len() <= BOUNDS.text && text.len() > BOUNDS.text - 2);
    assert!(text.chars().all(|c| c == 'é'));
}

#[test]
fn chunks_beyond_the_limit_are_counted() {
    let mut passing = passing(200, "text/event-stream");
    let many = BOUNDS.chunks + 100;
    for at in 0..many {
        passing.take_bytes(TOKEN, read(at as u64 + 2));
    }
    passing.take_bytes(FINISH, read(1 << 40));
    let exchange = passing.end(read(1 << 40));
    assert_eq!(exchange.chunks.len(), BOUNDS.chunks);
    assert_eq!(exchange.output_tokens.map(|count| count.n as usize), Some(many));
    assert_eq!(exchange.stamps.last_token, Some(Nanos(many as u64 + 1)));
}

#[test]
fn what_is_wrong_with_an_answer_is_a_class_in_our_words() {
    let secret = b"data: {\"secret\": \xff\xfe\n\n";
    let endless = vec![b'x'; BOUNDS.event + 1];
    let large = [&b"{"[..], &vec![b' '; WHOLE_LIMIT]].concat();
    let error = br#"{"error":{"message":"no such secret"}}"#;
    let cases: [(u16, &str, &[u8], ErrorClass); 8] = [
        (200, "text/event-stream", secret, ErrorClass::BadEvent),
        (200, "text/event-stream", b"data: [DONE]\n\n", ErrorClass::NoFinish),
        (200, "text/event-stream", &endless, ErrorClass::EventTooLarge),
        (200, "application/json", b"{\"secret\xff", ErrorClass::BadJson),
        (200, "application/json", error, ErrorClass::StreamError),
        (200, "application/json", &large, ErrorClass::EventTooLarge),
        (200, "text/html", b"<html>secret", ErrorClass::Html),
        (404, "application/json", error, ErrorClass::Http(404)),
    ];
    for (status, kind, body, expected) in cases {
        let mut passing = passing(status, kind);
        passing.take_bytes(body, read(2));
        let exchange = passing.end(read(4));
        assert_eq!(class(&exchange), Some(expected), "{kind}");
        assert!(!exchange.failure.unwrap().message.contains("secret"), "{expected:?}");
    }
}

#[test]
fn a_compressed_answer_is_not_judged() {
    let mut headers = headers("text/event-stream");
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let mut passing = AnswerTap::new(true, false);
    passing.take_head(PassedHead { status: 200, headers: &headers, read: read(1) });
    passing.take_bytes(b"\x1f\x8b", read(2));
    let exchange = passing.end(read(3));
    assert_eq!(class(&exchange), Some(ErrorClass::BadHttp));
    assert!(is_unread_success(&exchange));
    // A fault of the framing has the same class, and so has an answer that is too long as a whole.
    for fault in [ErrorClass::BadHttp, ErrorClass::EventTooLarge, ErrorClass::Cut] {
        let failure =
            Failure { class: fault, stage: exchange.stamps.stage(), message: "other".to_owned() };
        assert!(!is_unread_success(&Exchange { failure: Some(failure), ..exchange.clone() }));
    }
    assert!(!is_unread_success(&Exchange { status: Some(502), ..exchange.clone() }));
    assert!(!is_unread_success(&Exchange { failure: None, ..exchange }));
}

#[test]
fn other_paths_have_stamps_and_a_status() {
    let mut passing = AnswerTap::new(false, true);
    let headers = headers("application/json");
    passing.take_head(PassedHead { status: 200, headers: &headers, read: read(1) });
    passing.take_bytes(b"{\"broken", read(2));
    let exchange = passing.end(read(3));
    assert_eq!((exchange.failure, exchange.status), (None, Some(200)));
    assert_eq!(
        (exchange.stamps.first_byte, exchange.stamps.done),
        (Some(Nanos(2)), Some(Nanos(3)))
    );
    assert_eq!(exchange.text, None);
}

#[test]
fn a_break_after_done_loses_nothing_and_one_before_does() {
    let gone = || Failure {
        class: ErrorClass::Cut,
        stage: FailureStage::Stream,
        message: "gone".to_owned(),
    };
    let mut whole = passing(200, "text/event-stream");
    whole.take_bytes(TOKEN, read(2));
    whole.take_bytes(FINISH, read(3));
    assert_eq!(whole.break_off(gone(), Nanos(4)).failure, None);
    let mut half = passing(200, "text/event-stream");
    half.take_bytes(TOKEN, read(2));
    let exchange = half.break_off(gone(), Nanos(4));
    assert_eq!(class(&exchange), Some(ErrorClass::Cut));
    assert_eq!((exchange.chunks.len(), exchange.stamps.ended), (1, Nanos(4)));
}

#[test]
fn what_a_broken_stream_had_said_is_counted() {
    let gone = || Failure {
        class: ErrorClass::Cut,
        stage: FailureStage::Stream,
        message: "gone".to_owned(),
    };
    let counted = |exchange: &Exchange| exchange.output_tokens.map(|count| (count.n, count.source));
    let mut long = passing(200, "text/event-stream");
    let many = BOUNDS.chunks + 100;
    for at in 0..many {
        long.take_bytes(TOKEN, read(at as u64 + 2));
    }
    let exchange = long.break_off(gone(), Nanos(1 << 40));
    assert_eq!(counted(&exchange), Some((many as u32, TokenSource::Events)));
    assert_eq!((class(&exchange), exchange.stamps.done), (Some(ErrorClass::Cut), None));
    // Usage on every chunk: the last that came holds.
    let mut running = passing(200, "text/event-stream");
    for tokens in [2, 5] {
        let event = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}}}}],\"usage\":\
             {{\"prompt_tokens\":9,\"completion_tokens\":{tokens}}}}}\n\n"
        );
        running.take_bytes(event.as_bytes(), read(tokens));
    }
    let exchange = running.break_off(gone(), Nanos(8));
    assert_eq!(counted(&exchange), Some((5, TokenSource::Usage)));
    assert_eq!(exchange.input_tokens.map(|count| count.n), Some(9));
    // Nothing said is nothing counted.
    let silent = passing(200, "text/event-stream").break_off(gone(), Nanos(2));
    assert_eq!((silent.output_tokens, silent.input_tokens), (None, None));
}

#[test]
fn where_no_more_may_be_held_tokens_are_counted_and_what_is_long_is_not_judged() {
    let mut stream = passing(200, "text/event-stream");
    stream.take_bytes(TOKEN, read(2));
    assert!(stream.held_bytes() >= size_of::<Chunk>());
    stream.stop_buffering();
    stream.take_bytes(TOKEN, read(3));
    stream.take_bytes(TOKEN, read(4));
    stream.take_bytes(FINISH, read(5));
    let exchange = stream.end(read(6));
    assert_eq!((exchange.chunks.len(), exchange.failure), (1, None));
    assert_eq!(exchange.output_tokens.map(|count| count.n), Some(3));
    assert_eq!(exchange.stamps.last_token, Some(Nanos(4)));

    let mut endless = passing(200, "text/event-stream");
    endless.take_bytes(&vec![b'x'; 20_000], read(2));
    assert!(endless.held_bytes() >= 20_000);
    endless.stop_buffering();
    endless.take_bytes(b"x", read(3));
    assert_eq!(endless.held_bytes(), 0);
    assert_eq!(class(&endless.end(read(4))), Some(ErrorClass::EventTooLarge));

    let mut whole = passing(200, "application/json");
    whole.take_bytes(WHOLE, read(2));
    assert!(whole.held_bytes() >= WHOLE.len());
    whole.stop_buffering();
    assert_eq!(whole.held_bytes(), 0);
    assert_eq!(class(&whole.end(read(4))), Some(ErrorClass::EventTooLarge));
}

#[test]
fn an_answer_whose_reader_failed_is_no_success() {
    let mut passing = passing(200, "text/event-stream");
    passing.exchange_mut().stamps.dispatched = Nanos(1);
    passing.take_bytes(TOKEN, read(2));
    passing.give_up();
    passing.take_bytes(FINISH, read(3));
    let exchange = passing.end(read(4));
    assert_eq!(class(&exchange), Some(ErrorClass::BadEvent));
    assert_eq!((exchange.stamps.dispatched, exchange.status), (Nanos(1), Some(200)));
}

/// An answer whose body comes in these pieces, at one instant.
fn in_pieces<'a>(kind: &'static str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Exchange {
    let mut passing = passing(200, kind);
    for piece in pieces {
        passing.take_bytes(piece, read(2));
    }
    passing.end(read(2))
}

#[test]
fn blanks_in_front_count_in_whichever_read_they_come() {
    // A line that begins with a blank has no field and no event.
    for cut in 0..7 {
        let (first, second) = b" data:0".split_at(cut);
        let exchange = in_pieces("", [first, second]);
        assert_eq!(class(&exchange), Some(ErrorClass::NoFinish), "{cut}");
    }
    let blank = vec![b' '; WHOLE_LIMIT];
    let exchange = in_pieces("application/json", [&blank[..], b"{}"]);
    assert_eq!(class(&exchange), Some(ErrorClass::EventTooLarge));
    let exchange = in_pieces("application/json", [&blank[..], &blank[..1]]);
    assert_eq!(class(&exchange), Some(ErrorClass::EventTooLarge), "no more is held");
}

proptest! {
    #[test]
    fn an_answer_is_the_same_however_it_is_cut(
        kind in prop::sample::select(vec!["", "application/json", "text/event-stream"]),
        parts in prop::collection::vec(prop::sample::select(vec![
            &b" "[..], b"\n", b"\r", b"\t", b"\x0c", b"\xef\xbb\xbf", b"data:0", b"data: {}", b"event: error",
            b": ping", b"\n\n", b"{", b"}", b"[", b"]", b"data: [DONE]\n\n", TOKEN, FINISH, WHOLE,
            b"{\"error\":{\"message\":\"m\"}}",
        ]), 1..8),
        cuts in prop::collection::vec(0usize..400, 0..8),
    ) {
        let bytes = parts.concat();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        let one_by_one = in_pieces(kind, bytes.chunks(1));
        prop_assert_eq!(&in_pieces(kind, pieces), &one_by_one);
        prop_assert_eq!(&in_pieces(kind, [&bytes[..]]), &one_by_one);
    }
}
