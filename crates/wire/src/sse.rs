//! A push parser for server-sent events (WHATWG HTML, section 9.2).
//!
//! Bytes may arrive split anywhere; every byte is looked at once. Line ends may be CR, LF or CRLF,
//! a byte-order mark may lead, comments and unknown fields are skipped. One leniency: an event
//! that the end of the body leaves without its blank line is delivered by [`SseParser::finish`],
//! because servers do end with a bare `data: [DONE]`.

use memchr::memchr2;

/// One event of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event:` field, empty when there was none.
    pub kind: &'a [u8],
    /// The `data:` lines, joined by line feeds.
    pub data: &'a [u8],
}

/// An event grew past the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {limit} bytes")]
pub struct EventTooLarge {
    limit: usize,
}

/// Turns bytes into events.
#[derive(Debug)]
pub struct SseParser {
    /// The line that the last push left unfinished.
    line: Vec<u8>,
    /// The data lines of the event so far, each followed by a line feed.
    data: Vec<u8>,
    kind: Vec<u8>,
    /// The last byte was a CR: a LF now belongs to it.
    after_cr: bool,
    /// No line has been seen yet, so a byte-order mark may lead.
    at_start: bool,
    limit: usize,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl SseParser {
    /// A parser that refuses events of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            kind: Vec::new(),
            after_cr: false,
            at_start: true,
            limit,
        }
    }

    /// Bytes that are held of the event that is not whole yet.
    pub(crate) fn held_bytes(&self) -> usize {
        self.line.capacity() + self.data.capacity() + self.kind.capacity()
    }

    /// Refuses events of more than this many bytes from here on.
    pub(crate) fn limit_to(&mut self, limit: usize) {
        self.limit = self.limit.min(limit);
    }

    /// Takes the next bytes and hands every event they complete to `sink`.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        mut sink: impl FnMut(SseEvent<'_>),
    ) -> Result<(), EventTooLarge> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (head, rest) = bytes.split_at(end);
            if let Some((data, rest)) = self.whole_event(head, rest) {
                self.check_size(head.len())?;
                sink(SseEvent { kind: &self.kind, data });
                self.kind.clear();
                bytes = rest;
                continue;
            }
            if self.line.is_empty() {
                self.take_line(head, &mut sink)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(head);
                self.take_line(&line, &mut sink)?;
                line.clear();
                self.line = line;
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
                [_, rest @ ..] => {
                    self.after_cr = rest.is_empty();
                    rest
                }
                [] => rest,
            };
        }
        self.line.extend_from_slice(bytes);
        self.check_size(self.line.len())
    }

    /// Almost every event is one data line and its blank line, all there at once: it needs no copy.
    /// Its data, and what follows.
    fn whole_event<'a>(&self, line: &'a [u8], rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let is_alone = self.line.is_empty() && self.data.is_empty() && !self.at_start;
        let rest = is_alone.then(|| rest.strip_prefix(b"\n\n")).flatten()?;
        Some((field_value(line, b"data")?, rest))
    }

    /// The body has ended in good order: delivers an event that lacks only its blank line.
    pub fn finish(&mut self, mut sink: impl FnMut(SseEvent<'_>)) -> Result<(), EventTooLarge> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut sink)?;
        }
        self.emit_event(&mut sink);
        Ok(())
    }

    fn take_line(
        &mut self,
        mut line: &[u8],
        sink: &mut impl FnMut(SseEvent<'_>),
    ) -> Result<(), EventTooLarge> {
        // A line that came in one piece has the limit of one that came in several.
        self.check_size(line.len())?;
        if self.at_start {
            self.at_start = false;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.emit_event(sink);
        } else if let Some(value) = field_value(line, b"data") {
            self.check_size(self.data.len() + value.len())?;
            self.data.extend_from_slice(value);
            self.data.push(b'\n');
        } else if let Some(value) = field_value(line, b"event") {
            self.kind.clear();
            self.kind.extend_from_slice(value);
        }
        Ok(())
    }

    fn emit_event(&mut self, sink: &mut impl FnMut(SseEvent<'_>)) {
        if let [data @ .., b'\n'] = self.data.as_slice() {
            sink(SseEvent { kind: &self.kind, data });
        }
        self.data.clear();
        self.kind.clear();
    }

    fn check_size(&self, size: usize) -> Result<(), EventTooLarge> {
        if size > self.limit { Err(EventTooLarge { limit: self.limit }) } else { Ok(()) }
    }
}

/// The value of `line` if its field is `name`. One space after the colon belongs to the syntax.
fn field_value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Owned = (String, String);

    fn parse(pieces: &[&[u8]]) -> Vec<Owned> {
        let mut parser = SseParser::new(1 << 20);
        let mut events = Vec::new();
        let mut keep = |event: SseEvent<'_>| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            events.push((text(event.kind), text(event.data)));
        };
        for piece in pieces {
            parser.push(piece, &mut keep).unwrap();
        }
        parser.finish(&mut keep).unwrap();
        events
    }

    fn data(events: &[Owned]) -> Vec<&str> {
        events.iter().map(|(_, data)| data.as_str()).collect()
    }

    #[test]
    fn every_line_end_ends_a_line() {
        for text in
            ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"]
        {
            assert_eq!(data(&parse(&[text.as_bytes()])), ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn fields_comments_and_marks() {
        let cases: [(&str, &[&str]); 10] = [
            ("data:no space\n\n", &["no space"]),
            ("data:  two spaces\n\n", &[" two spaces"]),
            ("data: a\ndata: b\n\n", &["a\nb"]),
            (": ping - 2026\n\n:\n\ndata: x\n\n", &["x"]),
            ("event: ping\n\n", &[]),
            ("id: 7\nretry: 10\nunknown: y\ndata: x\n\n", &["x"]),
            ("\u{feff}data: x\n\n", &["x"]),
            ("data: x\n\ndata: [DONE]", &["x", "[DONE]"]),
            ("data\n\n", &[""]),
            ("database: x\n\n", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(data(&parse(&[text.as_bytes()])), expected, "{text:?}");
        }
        assert_eq!(parse(&[b"event: error\ndata: {}\n\n"]), [("error".into(), "{}".into())]);
    }

    #[test]
    fn size_is_bounded_with_and_without_line_ends() {
        let mut parser = SseParser::new(100);
        assert!(parser.push(&[b'x'; 101], |_| ()).is_err());
        let mut parser = SseParser::new(100);
        let line = [b"data: ".as_slice(), &[b'x'; 60], b"\n"].concat();
        assert!(parser.push(&line, |_| ()).is_ok());
        assert!(parser.push(&line, |_| ()).is_err());
    }

    #[test]
    fn a_long_event_in_many_pieces_is_read_in_linear_time() {
        let mut parser = SseParser::new(16 << 20);
        let piece = [b'x'; 1000];
        parser.push(b"data: ", |_| ()).unwrap();
        for _ in 0..8000 {
            parser.push(&piece, |_| ()).unwrap();
        }
        let mut size = 0;
        parser.push(b"\n\n", |event| size = event.data.len()).unwrap();
        assert_eq!(size, 8_000_000);
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(
            lines in prop::collection::vec("(data|event|: c|x)?:? ?[a-zé€]{0,5}", 0..12),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r", "\n\n"]), 12),
            cuts in prop::collection::vec(0usize..80, 0..6),
        ) {
            let text: String =
                lines.iter().zip(&ends).flat_map(|(line, end)| [line.as_str(), end]).collect();
            let bytes = text.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(parse(&pieces), parse(&[bytes]));
        }

        #[test]
        fn nor_do_they_for_what_is_too_large(
            parts in prop::collection::vec(
                prop::sample::select(vec!["data: ", ": ", "event: ", "x", "1234567", "\n", "\r\n", "\n\n"]),
                0..24,
            ),
            cut in 1usize..20,
        ) {
            let text = parts.concat();
            let read = |mut pieces: std::slice::Chunks<'_, u8>| {
                let (mut parser, mut events) = (SseParser::new(20), Vec::new());
                let mut keep = |event: SseEvent<'_>| events.push((event.kind.to_vec(), event.data.to_vec()));
                let outcome = pieces
                    .try_for_each(|piece| parser.push(piece, &mut keep))
                    .and_then(|()| parser.finish(&mut keep));
                (outcome, events)
            };
            let whole = read(text.as_bytes().chunks(usize::MAX));
            prop_assert_eq!(read(text.as_bytes().chunks(cut)), whole);
        }

        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut parser = SseParser::new(64);
            let _ = parser.push(&bytes, |_| ()).and_then(|()| parser.finish(|_| ()));
        }
    }
}
