use super::*;

const KEY: &str = "sk-TOPSECRET/0123456789-abcdef-ABCDEF-99";

fn secrets() -> Secrets {
    Secrets::new(vec![KEY.to_owned(), "hunter2".to_owned()])
}

fn each(of: &str, write: impl Fn(u8) -> String) -> String {
    of.bytes().map(write).collect()
}

#[test]
fn every_form_of_a_quote_is_taken_out_and_the_rest_stays() {
    let encoded = |before: &str| {
        let text = format!("{before}{KEY}!");
        let whole: String = fold_free_base64(text.as_bytes());
        whole
    };
    let url_safe = |text: String| text.replace('+', "-").replace('/', "_");
    let quotes = [
        KEY.to_owned(),
        KEY.to_lowercase(),
        KEY.to_uppercase(),
        KEY.replace('/', "\\/"),
        KEY.replace('/', "\\\\\\/"),
        each(KEY, |byte| format!("\\u{byte:04x}")),
        each(KEY, |byte| format!("\\\\u{byte:04X}")),
        each(KEY, |byte| format!("\\x{byte:02x}")),
        each(KEY, |byte| format!("\\u{{{byte:x}}}")),
        KEY.replace('/', "%2F"),
        KEY.replace('/', "%252f"),
        each(KEY, |byte| format!("%{byte:02X}")),
        each(KEY, |byte| format!("&#{byte};")),
        each(KEY, |byte| format!("&#x{byte:x};")),
        each(KEY, |byte| format!("&amp;#{byte};")),
        KEY.replace('/', "&sol;").replace('-', "&#45"),
        encoded(""),
        encoded("B"),
        encoded("Be"),
        encoded("Bearer "),
        url_safe(encoded("")),
        url_safe(encoded("?")),
        url_safe(encoded("??")),
        encoded("x").replace('/', "\\/"),
        each(KEY, |byte| format!("{byte:02x}")),
        each(KEY, |byte| format!("{byte:02X} ")),
        KEY.replace("SECRET", "SEC\r\n  RET"),
        KEY.replace("SECRET", "SEC\\nRET"),
        KEY.replace("SECRET", "SEC\u{200b}RET"),
        KEY.replace("SECRET", "SEC\\u200bRET"),
        KEY.replace("SECRET", "SEC%E2%80%8BRET"),
        each(KEY, |byte| format!("{} ", char::from(byte))),
        KEY[..KEY.len() - 1].to_owned(),
        KEY[..16].to_owned(),
        KEY[5..].to_owned(),
    ];
    let secrets = secrets();
    for quote in quotes {
        let clean = secrets.scrub(format!("refused: <{quote}>, ask again"));
        assert!(clean.starts_with("refused: <") && clean.ends_with(">, ask again"), "{clean}");
        assert!(clean.contains(REDACTED), "{quote}: {clean}");
        // Around what is certain, base64 has a character with bits of its neighbors on each side.
        assert!(clean.len() <= "refused: <>, ask again".len() + REDACTED.len() + 16, "{clean}");
    }
}

/// With its padding, in the standard alphabet.
fn fold_free_base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let held =
            (0..3).fold(0u32, |held, at| held << 8 | u32::from(*group.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let letter = ALPHABET[(held >> (18 - 6 * at)) as usize & 63];
            out.push(if at > group.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

#[test]
fn innocent_text_stays_as_it_is() {
    let secrets = secrets();
    let texts = [
        "",
        "keys begin with sk-",
        "sk-TOPSECRET", // shorter than what tells a key from its kind
        "0123456789",
        "100% of \\ & &amp; %zz \\u12 \\u{zzzz} &#; &#x; &nothing; \\",
        "hunter22 and hunter2nd are other words",
        "é\u{200b}\u{feff} — 日本語 %E6%97%A5",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}",
    ];
    for text in texts {
        assert_eq!(secrets.scrub(text.to_owned()), text);
    }
    assert_eq!(secrets.scrub("(hunter2)".to_owned()), "([redacted])");
    assert_eq!(secrets.scrub("hunter2".to_owned()), REDACTED);
}

#[test]
fn several_quotes_are_taken_out_each() {
    let secrets = secrets();
    let text = format!("é {KEY}, hunter2; {KEY}{KEY} é");
    assert_eq!(secrets.scrub(text), "é [redacted], [redacted]; [redacted] é");
    assert!(!format!("{secrets:?}").contains("TOP"));
}

#[test]
fn a_secret_that_is_escaped_itself_is_found_as_it_stands_and_as_it_means() {
    let secrets = Secrets::new(vec!["a%2Fb%20c%2Bd-e".to_owned(), r"x\ny&lt;z\\12345".to_owned()]);
    for quote in ["a%2Fb%20c%2Bd-e", "a/b c+d-e", r"x\ny&lt;z\\12345", r"x\\ny&lt;z\\\\12345"] {
        assert_eq!(secrets.scrub(format!("<{quote}>")), "<[redacted]>", "{quote}");
    }
}

#[test]
fn pages_are_scrubbed_line_by_line() {
    remember_secrets([KEY.to_owned(), "x".to_owned()]);
    let page = format!("a 1\nb{{k=\"{KEY}\"}} 2\nc 3");
    assert_eq!(scrub_secret_lines(page), "a 1\nb{k=\"[redacted]\"} 2\nc 3");
    assert_eq!(scrub_secret_lines("a 1\nb 2\n".to_owned()), "a 1\nb 2\n");
    let (class, stage) = (goodput_model::ErrorClass::BadHttp, goodput_model::FailureStage::Headers);
    let failure = Failure { class, stage, message: format!("{KEY}{}", "y".repeat(300)) };
    assert_eq!(scrub_failure(failure).message.chars().count(), MESSAGE_LIMIT);
}

proptest::proptest! {
    /// Any text, any secret: no panic, and what is left is text that was there or the mark.
    #[test]
    fn any_text_can_be_scrubbed(text in "\\PC*", secret in "\\PC{6,40}", cut in 0usize..9) {
        let secrets = Secrets::new(vec![secret.clone()]);
        let quoted = format!("{text}{secret}{}", &"\\u00%2&#x"[..cut]);
        let clean = secrets.scrub(quoted);
        proptest::prop_assert!(secret.trim().len() < 24 || !clean.contains(&secret));
        secrets.scrub(text);
    }
}
