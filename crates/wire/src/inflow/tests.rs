use super::*;
use proptest::prelude::*;

/// What an answer came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Came {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Vec<(String, Vec<u8>)>,
    fault: Option<&'static str>,
    is_over: bool,
    is_clean: bool,
}

fn pairs(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
}

/// An answer that comes in these pieces, each understood before the next, and then the end.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, may_have_body: bool, limit: usize) -> Came {
    let mut inflow = Inflow::new(limit);
    inflow.expect_answer(may_have_body);
    let mut came = Came::default();
    for piece in pieces {
        inflow.push(&mut piece.to_vec());
        take(&mut inflow, &mut came);
    }
    came.is_clean = inflow.is_clean();
    came.is_over = inflow.is_over() || inflow.end_of_stream();
    came
}

fn take(inflow: &mut Inflow, came: &mut Came) {
    match inflow.take_head() {
        Ok(None) => {}
        Ok(Some(head)) => {
            assert_eq!(came.status, 0, "two heads");
            (came.status, came.headers) = (head.status.as_u16(), pairs(&head.headers));
        }
        Err(fault) => came.fault = Some(fault),
    }
    loop {
        match inflow.take_part() {
            Ok(None) => return,
            Ok(Some(BodyPart::Data(bytes))) => {
                assert!(!bytes.is_empty());
                came.body.extend_from_slice(&bytes);
            }
            Ok(Some(BodyPart::Trailers(trailers))) => came.trailers = pairs(&trailers),
            Err(fault) => {
                came.fault = Some(fault);
                return;
            }
        }
    }
}

fn whole(text: &str) -> Came {
    read([text.as_bytes()], true, 1 << 10)
}

const CHUNKED: &str = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n\
    HTTP/1.1 200 OK\r\nx: 1\r\ntransfer-encoding: chunked\r\ntrailer: y\r\n\r\n\
    5\r\nhello\r\nB;a=\"b\"\r\n world, wor\r\n2 \r\nld\r\n0\r\ny: 2\r\ny: \x7e3\r\n\r\n";

fn chunked() -> Came {
    let pair = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    Came {
        status: 200,
        headers: vec![pair("x", "1"), pair("transfer-encoding", "chunked"), pair("trailer", "y")],
        body: b"hello world, world".to_vec(),
        trailers: vec![pair("y", "2"), pair("y", "~3")],
        fault: None,
        is_over: true,
        is_clean: true,
    }
}

#[test]
fn an_answer_is_the_same_wherever_it_is_cut() {
    let bytes = CHUNKED.as_bytes();
    assert_eq!(read([bytes], true, 1 << 10), chunked());
    assert_eq!(read(bytes.chunks(1), true, 1 << 10), chunked());
    for cut in 0..bytes.len() {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(read([first, second], true, 1 << 10), chunked(), "{cut}");
        // Without the second half it is not over.
        let half = read([first], true, 1 << 10);
        assert_eq!((half.is_over, half.is_clean, half.fault), (false, false, None), "{cut}");
        assert!(b"hello world, world".starts_with(&half.body));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_are_put_together_whatever_their_sizes_and_cuts(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..8),
        cuts in proptest::collection::vec(1_usize..30, 1..10),
    ) {
        let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for chunk in &chunks {
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        let (mut rest, mut pieces) = (bytes.as_slice(), Vec::new());
        for size in cuts.iter().cycle() {
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let came = read(pieces, true, 1 << 10);
        prop_assert_eq!(came.body, chunks.concat());
        prop_assert_eq!((came.is_over, came.is_clean, came.fault), (true, true, None));
    }

    #[test]
    fn noise_is_never_a_panic(
        begin in 0_usize..4,
        noise in proptest::collection::vec(
            prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'0'), Just(b';'), any::<u8>()],
            0..200,
        ),
        size in 1_usize..20,
    ) {
        let begins = [
            "",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
        ];
        let bytes = [begins[begin].as_bytes(), &noise].concat();
        read(bytes.chunks(size), true, 64);
    }
}

#[test]
fn a_length_is_a_number_that_all_agree_on() {
    let answer = |lines: &str| whole(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\nhello"));
    for good in
        ["content-length: 5", "content-length: 5\r\nContent-Length: 5", "content-length: 5, 5"]
    {
        let came = answer(good);
        assert_eq!((came.body.as_slice(), came.fault), (&b"hello"[..], None), "{good}");
        assert_eq!(came.headers, [("content-length".to_owned(), b"5".to_vec())], "{good}");
        assert!(came.is_clean, "{good}");
    }
    for bad in [
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5, 6",
        "content-length: +5",
        "content-length: -5",
        "content-length: 0x5",
        "content-length: 5 5",
        "content-length:",
        "content-length: 5,",
        "content-length: 99999999999999999999",
        "content-length: 5\r\n content-length: 6",
        "x: a\r\n b\r\ncontent-length: 5",
        "x: a\rb\r\ncontent-length: 5",
        "x: a\0b\r\ncontent-length: 5",
        "x : a\r\ncontent-length: 5",
        "transfer-encoding: chunked\r\ncontent-length: x",
    ] {
        let came = answer(bad);
        assert!(came.fault.is_some(), "{bad:?}");
        assert!(!came.is_over && !came.is_clean, "{bad:?}");
    }
}

#[test]
fn of_two_framings_chunks_win_and_the_connection_ends() {
    for (first, second) in [
        ("content-length: 3", "transfer-encoding: chunked"),
        ("transfer-encoding: chunked", "content-length: 3"),
    ] {
        let came = whole(&format!(
            "HTTP/1.1 200 OK\r\n{first}\r\n{second}\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        ));
        assert_eq!(came.headers, [("transfer-encoding".to_owned(), b"chunked".to_vec())]);
        assert_eq!(
            (came.body.as_slice(), came.is_over, came.is_clean),
            (&b"hello"[..], true, false)
        );
    }
    let old = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    assert!(whole(old).fault.is_some());
}

#[test]
fn chunks_that_cheat_are_faults_after_what_was_right() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n";
    for bad in [
        "5\r\nhelloX0\r\n\r\n",
        "\r\n\r\n",
        "5\nhello\n0\n\n",
        "zz\r\n",
        "-5\r\n",
        "+5\r\n",
        " 5\r\nhello\r\n",
        "fffffffffffffffff\r\n",
        "5;\nx\r\nhello\r\n",
        "5\rhello\r\n",
        "0\r\nbad line\r\n\r\n",
        "0\r\n\n",
        "0\r\nx: 1\n\r\n",
    ] {
        let came = whole(&format!("{head}{bad}"));
        assert!(came.body.starts_with(b"ok") && came.fault.is_some(), "{bad:?}");
        assert!(!came.is_over, "{bad:?}");
    }
    let long = format!("{head}2;{}", "x".repeat(5000));
    assert!(whole(&long).fault.is_some());
    assert!(whole(&format!("{long}\r\nok\r\n")).fault.is_some());
    let trailers = format!("{head}0\r\nx: {}", "y".repeat(1 << 10));
    assert!(whole(&trailers).fault.is_some());
}

#[test]
fn a_head_may_be_as_long_as_the_limit() {
    let begin = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: ";
    let limit = 1 << 10;
    let of = |length: usize| format!("{begin}{}\r\n\r\n", "y".repeat(length - begin.len() - 4));
    for step in [1, 100, limit + 1] {
        let fits = of(limit);
        let came = read(fits.as_bytes().chunks(step), true, limit);
        assert_eq!((came.status, came.fault, came.is_clean), (200, None, true), "{step}");
        let over = of(limit + 1);
        assert!(read(over.as_bytes().chunks(step), true, limit).fault.is_some(), "{step}");
    }
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
    assert!(whole(&many).fault.is_some());
}

#[test]
fn some_answers_have_no_body_and_some_end_with_their_connection() {
    let sized = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    assert!(read([sized.as_bytes()], false, 1 << 10).is_clean);
    for status in ["204 No Content", "304 Not Modified"] {
        let came = whole(&format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\n\r\n"));
        assert!(came.is_clean, "{status}");
        // Unexpected bytes.
        let came = whole(&format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\n\r\nhello"));
        assert!(came.is_over && !came.is_clean && came.body.is_empty(), "{status}");
    }
    let came = whole("HTTP/1.1 200 OK\r\n\r\nto the end");
    assert_eq!(
        (came.body.as_slice(), came.is_over, came.is_clean),
        (&b"to the end"[..], true, false)
    );
    let switched = whole("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n");
    assert_eq!((switched.status, switched.is_clean), (101, false));
}

#[test]
fn a_connection_is_kept_unless_a_side_says_close() {
    let kept = |version: &str, lines: &str| {
        whole(&format!("HTTP/{version} 200 OK\r\ncontent-length: 0\r\n{lines}\r\n")).is_clean
    };
    assert!(kept("1.1", "") && kept("1.1", "connection: close-not\r\n"));
    assert!(kept("1.0", "connection: Keep-Alive\r\n") && !kept("1.0", ""));
    assert!(!kept("1.1", "connection: x, Close\r\n"));
    assert!(!kept("1.1", "connection: close\r\nconnection: keep-alive\r\n"));
}

#[test]
fn any_byte_that_a_header_may_have_passes() {
    let mut bytes = b"HTTP/1.1 200 \xe9\r\ncontent-length: 0\r\nx: a\tb\xe9\xff\r\n\r\n".to_vec();
    let mut inflow = Inflow::new(1 << 10);
    inflow.expect_answer(true);
    inflow.push(&mut bytes);
    let head = inflow.take_head().unwrap().unwrap();
    assert_eq!(head.headers["x"].as_bytes(), b"a\tb\xe9\xff");
    assert_eq!((head.reason, inflow.body_bytes_left()), (Some(Bytes::new()), Some(0)));
}

#[test]
fn a_long_head_is_too_large_however_it_comes() {
    // No HTTP beyond the limit of 64 bytes: that is not looked at, in one piece or byte by byte.
    let text = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\0\0\r\n\r\n", "y".repeat(60));
    let at_once = read([text.as_bytes()], true, 64);
    assert_eq!(at_once.fault, Some("the response headers are too large"));
    assert_eq!(read(text.as_bytes().chunks(1), true, 64).fault, at_once.fault);
    // Within the limit it is what it is.
    let early = "HTTP/1.1 200 OK\r\n\0: y\r\n\r\n";
    assert_eq!(
        read([early.as_bytes()], true, 64).fault,
        Some("the response headers are not valid HTTP")
    );
}
