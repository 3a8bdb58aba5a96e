//! The bytes of an answer, prepared so that a token costs twenty digits.

use goodput_model::Nanos;

/// Digits of an instant in the text of a token: as many as the largest number has.
pub const DIGITS: usize = 20;

/// Head of every answer.
pub(crate) const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One token's event in its chunk, with a place for the instant.
#[derive(Debug)]
pub(crate) struct TokenTemplate {
    bytes: Vec<u8>,
    digits_at: usize,
}

impl TokenTemplate {
    pub(crate) fn new() -> Self {
        let (before, after) = (
            r#"data: {"id":"chatcmpl-truth","object":"chat.completion.chunk","created":1794711920,"model":"truth","choices":[{"index":0,"delta":{"content":""#,
            "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
        );
        let bytes = http_chunk(&format!("{before}{}{after}", "0".repeat(DIGITS)));
        // The payload is followed by the line end of its chunk.
        let digits_at = bytes.len() - 2 - after.len() - DIGITS;
        Self { bytes, digits_at }
    }

    /// The bytes to write for a token whose write begins now.
    pub(crate) fn with_instant(&mut self, instant: Nanos) -> &[u8] {
        let mut rest = instant.0;
        for digit in self.bytes[self.digits_at..][..DIGITS].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.bytes
    }
}

/// What follows the last token.
pub(crate) fn end_events(tokens: u32, usage: bool) -> Vec<u8> {
    const ID: &str = r#"data: {"id":"chatcmpl-truth","object":"chat.completion.chunk","created":1794711920,"model":"truth","choices":"#;
    let finish = format!("{ID}[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"length\"}}]}}\n\n");
    let mut bytes = http_chunk(&finish);
    if usage {
        let total = u64::from(tokens) + 1;
        bytes.extend(http_chunk(&format!(
            "{ID}[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":{tokens},\"total_tokens\":{total}}}}}\n\n"
        )));
    }
    bytes.extend(http_chunk("data: [DONE]\n\n"));
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// An answer in one piece.
pub(crate) fn response_page(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn http_chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// The instants in the text of an answer, token by token; ends where the text is something else.
pub fn instants_in(text: &str) -> Vec<Nanos> {
    text.as_bytes().chunks(DIGITS).map_while(parse_instant).collect()
}

/// The instant in the text of one token: exactly twenty digits.
pub fn parse_instant(digits: &[u8]) -> Option<Nanos> {
    let digits: &[u8; DIGITS] = digits.try_into().ok()?;
    let value = digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        let value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        (digit < 10).then_some(value)
    });
    value.map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_carries_its_instant() {
        let mut token = TokenTemplate::new();
        for value in [0, 7, 123_456_789_012_345, u64::MAX] {
            let text = String::from_utf8(token.with_instant(Nanos(value)).to_vec()).unwrap();
            let (size, rest) = text.split_once("\r\n").unwrap();
            let payload = rest.strip_suffix("\r\n").unwrap();
            assert_eq!(usize::from_str_radix(size, 16).unwrap(), payload.len());
            let json = payload.strip_prefix("data: ").unwrap();
            let event: serde_json::Value = serde_json::from_str(json).unwrap();
            let content = event["choices"][0]["delta"]["content"].as_str().unwrap();
            assert_eq!(content, format!("{value:020}"));
            assert_eq!(instants_in(content), [Nanos(value)]);
        }
    }

    #[test]
    fn other_text_holds_no_instants() {
        assert_eq!(instants_in(""), []);
        assert_eq!(instants_in("0000000000000000012"), []);
        assert_eq!(instants_in("99999999999999999999"), []);
        let mixed = "00000000000000000005000000000000000000x6";
        assert_eq!(instants_in(mixed), [Nanos(5)]);
    }
}
