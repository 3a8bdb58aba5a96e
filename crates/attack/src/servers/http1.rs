//! HTTP/1.1: floods, drips, silence, cuts, lengths that lie, and answers that are none.

use std::io;

use goodput_clock::pause;
use goodput_model::Nanos;

use super::peer::{
    Act, CHUNKED, DONE, FINISH, PeerConnection, STREAM, TOKEN, When, chunk, close, flood,
    good_events, hold, whole,
};
use super::{
    BAD_HTTP, CLOSED, CUT, Comes, LONG_EVENT, MARKUP, NO_FINISH, ServerRow, TIMEOUT, TOO_LARGE,
    rows_to_table,
};
use crate::program::KEY;
use Comes::{Fails, Lies, Passes};

const BAD_EVENT: Comes = Fails(&["bad_event"]);
const BAD_JSON: Comes = Fails(&["bad_json"]);
const IN_STREAM: Comes = Fails(&["stream_error"]);

pub(super) fn http1_rows() -> Vec<ServerRow> {
    [flood_rows(), wait_rows(), cut_rows(), length_rows(), head_rows(), body_rows(), odd_rows()]
        .into_iter()
        .flatten()
        .collect()
}

/// Behaviors without an end of their own, for stops.
pub(super) fn endless_rows() -> Vec<ServerRow> {
    rows_to_table([
        ("tokens", TOO_LARGE, flood(STREAM, TOKEN)),
        ("comments", TOO_LARGE, flood(STREAM, ": ping\n\n")),
        ("interim_answers", TIMEOUT, flood("", "HTTP/1.1 100 Continue\r\n\r\n")),
        ("trailers", TIMEOUT, flood([CHUNKED, "0\r\n"].concat(), "x: y\r\n")),
        ("silence", TIMEOUT, hold("")),
    ])
}

/// A stream with these events and a good end.
fn stream_act(events: &str) -> Act {
    close([STREAM, TOKEN, events, FINISH, DONE].concat())
}

fn flood_rows() -> Vec<ServerRow> {
    let text = [STREAM, "data: {\"choices\":[{\"delta\":{\"content\":\""].concat();
    let ended = [CHUNKED, &chunk(&[TOKEN, FINISH].concat()), "0\r\n"].concat();
    let rest = [CHUNKED, &chunk(&good_events()), "0\r\n"].concat();
    rows_to_table([
        ("comments", TOO_LARGE, flood(STREAM, ": ping\n\n")),
        ("tokens", TOO_LARGE, flood(STREAM, TOKEN)),
        ("tokens_in_chunks", TOO_LARGE, flood(CHUNKED, chunk(TOKEN))),
        // 16 MiB of one event come before 16.5 MiB of a body.
        ("text_in_one_event", Fails(&["event_too_large"]), flood(text, "aaaaaaaa")),
        ("data_lines", TOO_LARGE, flood(STREAM, "data: x\n")),
        // Each line is an event of its own: on some machines the second ends before 16.5 MiB of them do.
        ("blank_lines", Fails(&["answer_too_large", "timeout"]), flood(STREAM, "\n")),
        ("empty_events", TOO_LARGE, flood(STREAM, "data:\n\n")),
        ("one_line", LONG_EVENT, flood(STREAM, "x")),
        ("zeros", LONG_EVENT, flood(STREAM, "\0")),
        ("json_blanks", LONG_EVENT, flood(whole_head(), " ")),
        ("json_without_end", TOO_LARGE, flood(whole_head() + "{\"choices\":[", "{},")),
        ("choices", TOO_LARGE, Act::With(send_many_choices)),
        ("headers", BAD_HTTP, flood("HTTP/1.1 200 OK\r\n", "x: y\r\n")),
        ("header_line", BAD_HTTP, flood("HTTP/1.1 200 OK\r\nx: ", "a")),
        ("reason", BAD_HTTP, flood("HTTP/1.1 200 ", "a")),
        ("interim_answers", TIMEOUT, flood("", "HTTP/1.1 100 Continue\r\n\r\n")),
        ("chunk_extension", BAD_HTTP, flood([CHUNKED, "5;"].concat(), "a")),
        ("chunk_digits", BAD_HTTP, flood(CHUNKED, "0")),
        ("endless_chunk", TOO_LARGE, flood([CHUNKED, "7fffffffffffffff\r\n"].concat(), TOKEN)),
        ("trailers", TIMEOUT, flood(ended.clone(), "x: y\r\n")),
        ("trailer_line", BAD_HTTP, flood(ended, "a")),
        ("trailers_after_done", Passes, flood(rest, "x: y\r\n")),
        (
            "error_page",
            Fails(&["http_500"]),
            flood(response_head("500 Oops", "content-length: 104857600"), "a"),
        ),
        (
            "web_page",
            Fails(&["html"]),
            flood(response_head("200 OK", "content-type: text/html"), MARKUP),
        ),
    ])
}

fn wait_rows() -> Vec<ServerRow> {
    let half = &TOKEN[..30];
    let refusal = response_head("503 Busy", "content-length: 9");
    let mut rows = rows_to_table([
        ("silence", TIMEOUT, hold("")),
        ("half_a_status", TIMEOUT, hold("HTTP/1.1 2")),
        ("half_a_head", TIMEOUT, hold("HTTP/1.1 200 OK\r\nx: y\r\n")),
        ("head_then_silence", TIMEOUT, hold(STREAM)),
        ("token_then_silence", TIMEOUT, hold([STREAM, TOKEN].concat())),
        ("half_an_event", TIMEOUT, hold([STREAM, half].concat())),
        ("finish_then_silence", TIMEOUT, hold([STREAM, TOKEN, FINISH].concat())),
        ("done_then_silence", Passes, hold([STREAM, &good_events()].concat())),
        ("drip_in_the_head", TIMEOUT, Act::Drip(b"HTTP/1.1 200 OK\r\nx: ".into(), b"a".into())),
        ("drip_of_comments", TIMEOUT, Act::Drip(STREAM.into(), b": a\n".into())),
        ("drip_in_an_event", TIMEOUT, Act::Drip(STREAM.into(), b"data: {".into())),
    ]);
    let busy = ServerRow::new("refusal_without_words", Fails(&["http_503"]), hold(refusal));
    rows.push(busy.with_args(&["--timeout", "3s"]).with_limits(9.0, 260.0));
    rows.push(ServerRow::new("never_reads", TIMEOUT, hold("")).with_timing(When::Opened));
    rows
}

fn cut_rows() -> Vec<ServerRow> {
    let token = [CHUNKED, &chunk(TOKEN)].concat();
    let mut rows = rows_to_table([
        ("close_after_request", CLOSED, close("")),
        ("reset_after_request", CLOSED, Act::Reset(Vec::new())),
        ("cut_in_status", CUT, close("HTTP/1.1 20")),
        ("cut_in_headers", CUT, close("HTTP/1.1 200 OK\r\ncontent-ty")),
        ("cut_after_interim", CUT, close("HTTP/1.1 100 Continue\r\n\r\nHTTP")),
        ("cut_after_head", CUT, close(CHUNKED)),
        ("cut_in_chunk_size", CUT, close([CHUNKED, "1f"].concat())),
        ("cut_in_event", CUT, close([CHUNKED, "ff\r\n", &TOKEN[..30]].concat())),
        ("cut_after_token", CUT, close(token.clone())),
        ("cut_after_finish", CUT, close(token.clone() + &chunk(FINISH))),
        ("reset_after_head", CUT, Act::Reset(CHUNKED.into())),
        ("reset_after_token", CUT, Act::Reset(token.clone().into())),
        ("done_then_cut", Passes, close(token + &chunk(&[FINISH, DONE].concat()))),
        ("end_without_finish", NO_FINISH, close([STREAM, TOKEN].concat())),
        ("done_without_finish", NO_FINISH, close([STREAM, TOKEN, DONE].concat())),
        ("finish_without_token", Fails(&["empty"]), close([STREAM, FINISH, DONE].concat())),
        ("nothing_but_done", NO_FINISH, close([STREAM, DONE].concat())),
    ]);
    rows.push(ServerRow::new("close_at_once", CLOSED, close("")).with_timing(When::Opened));
    rows.push(
        ServerRow::new("reset_at_once", CLOSED, Act::Reset(Vec::new())).with_timing(When::Accepted),
    );
    rows
}

/// A head with one more line.
fn response_head(status: &str, line: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{line}\r\n\r\n")
}

fn whole_head() -> String {
    response_head("200 OK", "content-type: application/json")
}

/// A stream with this line in its head.
fn act_with_header(line: &str, body: &str) -> Act {
    close(response_head("200 OK", &format!("content-type: text/event-stream\r\n{line}")) + body)
}

fn length_rows() -> Vec<ServerRow> {
    let good = good_events();
    let all = chunk(&good) + "0\r\n\r\n";
    let two = format!("content-length: {}\r\ncontent-length: 5", good.len());
    let one_event = format!("content-length: {}", TOKEN.len());
    let plus = format!("content-length: +{}", good.len());
    let open = [TOKEN, FINISH].concat();
    rows_to_table([
        ("length_too_long", CUT, act_with_header("content-length: 100000", &open)),
        ("length_too_short", NO_FINISH, act_with_header(&one_event, &good)),
        ("length_zero", NO_FINISH, act_with_header("content-length: 0", &good)),
        ("length_negative", BAD_HTTP, act_with_header("content-length: -1", &good)),
        (
            "length_overflow",
            BAD_HTTP,
            act_with_header("content-length: 18446744073709551616", &good),
        ),
        ("length_with_plus", BAD_HTTP, act_with_header(&plus, &good)),
        ("length_in_hex", BAD_HTTP, act_with_header("content-length: 0x10", &good)),
        ("two_lengths", BAD_HTTP, act_with_header(&two, &good)),
        // RFC 9112, 6.3: the chunks decide.
        (
            "length_and_chunks",
            Passes,
            act_with_header("content-length: 5\r\ntransfer-encoding: chunked", &all),
        ),
        (
            "zipped_chunks",
            BAD_HTTP,
            act_with_header(
                "transfer-encoding: gzip, chunked",
                &(chunk("\u{1f}zip") + "0\r\n\r\n"),
            ),
        ),
        (
            "chunk_overflow",
            BAD_HTTP,
            act_with_header("transfer-encoding: chunked", "fffffffffffffffff\r\na"),
        ),
        (
            "chunk_negative",
            BAD_HTTP,
            act_with_header("transfer-encoding: chunked", "-5\r\nabcde\r\n"),
        ),
        (
            "chunk_without_size",
            BAD_HTTP,
            act_with_header("transfer-encoding: chunked", "\r\nabcde\r\n"),
        ),
        (
            "chunk_longer_than_said",
            BAD_HTTP,
            act_with_header("transfer-encoding: chunked", "3\r\nabcdef\r\n"),
        ),
        (
            "chunk_size_in_words",
            BAD_HTTP,
            act_with_header("transfer-encoding: chunked", "five\r\nabcde\r\n"),
        ),
    ])
}

/// Statuses and first lines; each quotes the key.
fn head_rows() -> Vec<ServerRow> {
    let quoted = format!("{{\"error\":{{\"message\":\"\\u001b[31m{MARKUP} {KEY}\"}}}}");
    let refusal =
        |status: &str| close(whole(&format!("{status} {KEY}"), "application/json", &quoted));
    let line = |text: &str| close(format!("{text} {KEY}\r\n\r\n"));
    let later = format!(
        "HTTP/1.1 429 Wait\r\nretry-after: 1000000000\r\ncontent-length: {}\r\n\r\n{quoted}",
        quoted.len()
    );
    rows_to_table([
        ("status_400", Fails(&["http_400"]), refusal("400")),
        ("status_401", Fails(&["http_401"]), refusal("401")),
        ("status_403", Fails(&["http_403"]), refusal("403")),
        ("status_404", Fails(&["http_404"]), refusal("404")),
        ("status_429_for_31_years", Fails(&["http_429"]), close(later)),
        ("status_500", Fails(&["http_500"]), refusal("500")),
        ("status_999", Fails(&["http_999"]), refusal("999")),
        ("status_101", Fails(&["http_101"]), refusal("101")),
        (
            "status_204_with_body",
            NO_FINISH,
            close(whole("204 No", "text/event-stream", &good_events())),
        ),
        ("status_304_with_body", Fails(&["http_304"]), refusal("304")),
        (
            "redirect_to_itself",
            Fails(&["http_307"]),
            close(response_head(
                "307 Again",
                "location: /v1/chat/completions\r\ncontent-length: 0",
            )),
        ),
        ("redirect_elsewhere", Fails(&["http_308"]), Act::With(redirect_in_circles)),
        (
            "redirect_with_key",
            Fails(&["http_302"]),
            close(response_head(
                "302 Found",
                &format!("location: http://127.0.0.1:1/?{KEY}\r\ncontent-length: 0"),
            )),
        ),
        ("bad_status", BAD_HTTP, line("HTTP/1.1 2x0")),
        ("short_status", BAD_HTTP, line("HTTP/1.1 20")),
        ("long_status", BAD_HTTP, line("HTTP/1.1 2000")),
        ("no_status", BAD_HTTP, line("HTTP/1.1")),
        ("other_version", BAD_HTTP, line("HTTP/3.0 200")),
        ("other_protocol", BAD_HTTP, line("SSH-2.0-OpenSSH_9")),
        ("page_without_head", BAD_HTTP, line("<html>")),
        ("escape_in_reason", BAD_HTTP, line("HTTP/1.1 200 \u{1b}[2J")),
        ("zero_in_header", BAD_HTTP, close("HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n")),
        ("header_without_colon", BAD_HTTP, close(format!("HTTP/1.1 200 OK\r\n{KEY}\r\n\r\n"))),
        ("zipped", BAD_HTTP, act_with_header("content-encoding: gzip", "\u{1f}zip")),
    ])
}

fn body_rows() -> Vec<ServerRow> {
    let deep = "[".repeat(100_000);
    let json = |body: &str| close(whole("200 OK", "application/json", body));
    let event = |data: &str| stream_act(&format!("data: {data}\n\n"));
    let error = format!("{{\"error\":{{\"message\":\"\\u001b[31m{MARKUP} {KEY}\"}}}}");
    let invalid = [STREAM.as_bytes(), b"data: \xff\xfe{\n\n"].concat();
    rows_to_table([
        ("bad_json", BAD_JSON, json("{\"choices\":")),
        ("json_of_others", NO_FINISH, json("{\"hello\":1}")),
        ("deep_json", BAD_JSON, json(&format!("{{\"choices\":{deep}"))),
        ("deep_error", BAD_JSON, json(&format!("{{\"error\":{deep}"))),
        ("deep_event", BAD_EVENT, event(&format!("{{\"choices\":{deep}"))),
        ("bad_event", BAD_EVENT, event(&format!("\u{1b}[31m{MARKUP} {KEY}"))),
        ("event_of_zeros", BAD_EVENT, event("\0\0\0")),
        ("invalid_utf8", BAD_EVENT, Act::Close(invalid)),
        (
            "web_page_200",
            Fails(&["html"]),
            close(whole("200 OK", "text/html", &format!("{MARKUP}{KEY}"))),
        ),
        ("error_event", IN_STREAM, event(&error)),
        ("error_by_name", IN_STREAM, stream_act(&format!("event: error\ndata: {KEY}\n\n"))),
        ("error_in_one_piece", IN_STREAM, json(&error)),
        ("million_digits", Passes, event(&format!("{{\"created\":{}}}", "9".repeat(1 << 20)))),
        ("huge_number", Passes, event("{\"created\":1e400}")),
        ("huge_index", BAD_EVENT, event("{\"choices\":[{\"index\":1e400,\"delta\":{}}]}")),
        (
            "not_a_number",
            Passes,
            event(
                "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"logprobs\":{\"x\":NaN}}]}",
            ),
        ),
        ("usage_2_to_the_32", Lies, event(&usage_event("4294967295"))),
        ("usage_2_to_the_35", Lies, event(&usage_event("34359738368"))),
        ("usage_negative", Lies, event(&usage_event("-8"))),
        ("usage_infinite", Lies, event(&usage_event("1e308"))),
        ("usage_in_words", Lies, event(&usage_event(&format!("\"{KEY}\"")))),
    ])
}

/// A count that wins over the one at the end, as the latest of its answer.
fn usage_event(tokens: &str) -> String {
    format!(
        "{{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":{tokens},\"completion_tokens\":{tokens}}}}}\n\ndata: [DONE]"
    )
}

/// What is strange, and an answer all the same.
fn odd_rows() -> Vec<ServerRow> {
    let reason = |text: &str| {
        close(
            [
                STREAM,
                TOKEN,
                "data: {\"choices\":[{\"index\":0,\"finish_reason\":\"",
                text,
                "\"}]}\n\n",
            ]
            .concat(),
        )
    };
    let carriage = [STREAM, &good_events().replace('\n', "\r")].concat();
    let next = whole("200 OK", "text/plain", KEY);
    let pipelined = [CHUNKED, &chunk(&good_events()), "0\r\n\r\n", &next].concat();
    let long = "m".repeat(1 << 20);
    let mut rows = rows_to_table([
        ("bom", Passes, close([STREAM, "\u{feff}", &good_events()].concat())),
        ("carriage_returns", Passes, close(carriage)),
        (
            "more_after_done",
            Passes,
            close([STREAM, &good_events(), TOKEN, "data: garbage\n\n"].concat()),
        ),
        ("flood_after_done", Passes, flood([STREAM, &good_events()].concat(), TOKEN)),
        ("second_answer", Passes, close(pipelined)),
        (
            "closes_after_each",
            Passes,
            close([CHUNKED, &chunk(&good_events()), "0\r\n\r\n"].concat()),
        ),
        ("byte_by_byte", Passes, Act::With(byte_by_byte)),
        (
            "retry_and_ids",
            Passes,
            stream_act("retry: 99999999999999999999\nid: \0\nevent: \u{1b}\n\n"),
        ),
        ("finish_with_markup", Passes, reason(MARKUP)),
        ("finish_with_escapes", Passes, reason("\\u001b[31m\\u0000\\u202e")),
        ("finish_with_key", Passes, reason(KEY)),
        ("finish_of_a_megabyte", Passes, reason(&long)),
    ]);
    rows.push(
        ServerRow::new("answers_unread", Passes, Act::With(answer_unread))
            .with_timing(When::Accepted),
    );
    rows
}

/// An answer before a byte of the request is read.
fn answer_unread(peer: &mut PeerConnection) -> io::Result<()> {
    peer.send([CHUNKED, &chunk(&good_events()), "0\r\n\r\n"].concat())?;
    // Closing with the request unread would be a reset.
    peer.read_request().map(drop)
}

fn redirect_in_circles(peer: &mut PeerConnection) -> io::Result<()> {
    let to = peer.elsewhere()?;
    let line = format!("location: http://{to}/v1/chat/completions\r\ncontent-length: 0");
    peer.send(response_head("308 Elsewhere", &line))
}

/// A hundred thousand answers where one was asked for.
fn send_many_choices(peer: &mut PeerConnection) -> io::Result<()> {
    let choice = |index| format!("{{\"index\":{index},\"delta\":{{\"content\":\"a\"}}}}");
    let all: Vec<String> = (0..100_000).map(choice).collect();
    peer.send([STREAM, "data: {\"choices\":[", &all.join(","), "]}\n\n", FINISH, DONE].concat())
}

/// Every byte in a read of its own, inside of characters too.
fn byte_by_byte(peer: &mut PeerConnection) -> io::Result<()> {
    let token = TOKEN.replace("a ", "\u{1f600}é");
    peer.send(STREAM)?;
    for byte in token.bytes() {
        peer.send([byte])?;
        pause(Nanos::from_millis(1));
    }
    peer.send([FINISH, DONE].concat())
}
