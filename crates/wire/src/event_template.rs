//! [`EventTemplate`]: events of one stream differ in their text and in nothing else.
//!
//! An event that was read once as JSON, and was a plain piece of text, is remembered as what stands
//! before and behind that text. A later event with the same bytes around another text needs no
//! reading: everything but the length of the text is known (docs/design/007).

/// Misses in a row after which a stream is taken to have no such pattern.
const PATIENCE: u8 = 4;

/// Where a text can stand: what opens it, and what opens the object that it belongs to.
const PLACES: [(&[u8], &[u8]); 2] =
    [(b"\"content\":\"", b"\"delta\":"), (b"\"text\":\"", b"\"choices\":[")];

/// What stood around the text of the last plain event.
#[derive(Debug, Default)]
pub(crate) struct EventTemplate {
    before: Vec<u8>,
    behind: Vec<u8>,
    /// Which answer it belonged to.
    pub(crate) answer: u32,
    misses: u8,
}

impl EventTemplate {
    /// Bytes of text in an event like the one remembered; `None` if it has to be read.
    pub(crate) fn text_bytes(&self, data: &[u8]) -> Option<u32> {
        let text =
            data.strip_prefix(self.before.as_slice())?.strip_suffix(self.behind.as_slice())?;
        // Quotes and backslashes would end the text or change its length, control characters and
        // broken UTF-8 are not JSON, and no text at all means something else.
        let is_plain = !self.before.is_empty()
            && !text.is_empty()
            && text.iter().all(|byte| *byte >= b' ' && *byte != b'"' && *byte != b'\\')
            && str::from_utf8(text).is_ok();
        is_plain.then_some(text.len() as u32)
    }

    /// Remembers an event that was read: nothing but this many bytes of text, of this answer.
    pub(crate) fn remember_event(&mut self, data: &[u8], text_bytes: u32, answer: u32) {
        if self.misses >= PATIENCE {
            return;
        }
        self.misses += 1;
        self.before.clear();
        self.behind.clear();
        let found = PLACES.iter().find_map(|place| text_range(data, place));
        let Some(range) = found.filter(|range| range.len() == text_bytes as usize) else { return };
        self.answer = answer;
        self.before.extend_from_slice(&data[..range.start]);
        self.behind.extend_from_slice(&data[range.end..]);
    }

    /// Remembers nothing, ever.
    #[cfg(test)]
    pub(crate) fn disabled() -> Self {
        Self { misses: PATIENCE, ..Self::default() }
    }

    /// An event was like the one remembered.
    pub(crate) fn note_match(&mut self) {
        self.misses = 0;
    }
}

/// Where a text such as that of `"delta":{…"content":"…"` lies. An unescaped quote cannot stand inside
/// a string, so the key is one; and its object is the owner's if no brace comes between them.
fn text_range(data: &[u8], (key, owner): &(&[u8], &[u8])) -> Option<std::ops::Range<usize>> {
    let start = memchr::memmem::find(data, key)? + key.len();
    let brace = memchr::memrchr2(b'{', b'}', &data[..start])?;
    let is_its = data[brace] == b'{' && data[..brace].ends_with(owner);
    let length = memchr::memchr2(b'"', b'\\', &data[start..])?;
    let is_whole = data[start + length] == b'"';
    (is_its && is_whole).then_some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> String {
        format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{{"role":"a","content":"{text}"}},"finish_reason":null}}]}}"#
        )
    }

    fn learned(data: &str, bytes: u32) -> EventTemplate {
        let mut likeness = EventTemplate::default();
        likeness.remember_event(data.as_bytes(), bytes, 0);
        likeness
    }

    #[test]
    fn another_text_in_the_same_place_is_known() {
        let likeness = learned(&event("one"), 3);
        assert_eq!(likeness.text_bytes(event(" two").as_bytes()), Some(4));
        assert_eq!(likeness.text_bytes(event("é€").as_bytes()), Some(5));
    }

    #[test]
    fn anything_else_is_read() {
        let likeness = learned(&event("one"), 3);
        let mut broken = event("%").into_bytes();
        broken.iter_mut().filter(|byte| **byte == b'%').for_each(|byte| *byte = 0xff);
        let cases = [
            event("").into_bytes(),
            event(r"\n").into_bytes(),
            event(r#"","x":""#).into_bytes(),
            event("\u{1}").into_bytes(),
            event("b").replace("null", "\"stop\"").into_bytes(),
            event("b").replace("\"c\"", "\"d\"").into_bytes(),
            broken,
            Vec::new(),
        ];
        for case in cases {
            assert_eq!(likeness.text_bytes(&case), None, "{}", String::from_utf8_lossy(&case));
        }
        assert_eq!(EventTemplate::default().text_bytes(b"abc"), None);
    }

    #[test]
    fn only_the_content_of_a_delta_is_learned() {
        for (data, bytes) in [
            // Another object's content, a length that is not the text's, an escape, a nested one.
            (r#"{"choices":[{"meta":{"content":"abc"},"delta":{"reasoning":"abc"}}]}"#, 3),
            (&*event("one"), 4),
            (&*event(r"a\n"), 2),
            (r#"{"choices":[{"delta":{"x":{},"content":"abc"}}]}"#, 3),
            (r#"{"choices":[{"x":[{}],"text":"abc"}]}"#, 3),
            (r#"{"text":"abc","choices":[{"text":"ab"}]}"#, 2),
        ] {
            let likeness = learned(data, bytes);
            assert_eq!(likeness.text_bytes(data.as_bytes()), None, "{data}");
        }
    }

    #[test]
    fn a_stream_without_a_pattern_is_let_be() {
        let mut likeness = EventTemplate::default();
        for number in 0..10 {
            let data = event("x").replace("\"c\"", &number.to_string());
            assert_eq!(likeness.text_bytes(data.as_bytes()), None);
            likeness.remember_event(data.as_bytes(), 1, 0);
        }
        assert_eq!(likeness.misses, PATIENCE);
    }
}
