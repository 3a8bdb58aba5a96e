//! Embeddings: unit vectors that are a function of the tokens.

use super::ask::{AnswerKind, CheckedRequest};
use super::parts::{EventHead, push_formatted, push_list};
use super::{hash_bytes, mix_bits};

const DIMENSIONS: u32 = 64;

/// The answer to an embedding request.
pub(crate) fn embeddings_response(head: &EventHead<'_>, ask: &CheckedRequest) -> Vec<u8> {
    let dimensions = ask.dimensions.unwrap_or(DIMENSIONS);
    let mut out = Vec::with_capacity(256 + ask.prompts.len() * dimensions as usize * 12);
    head.push_head(&mut out, AnswerKind::Embedding, false);
    out.extend_from_slice(br#","data":"#);
    push_list(&mut out, ask.prompts.iter().enumerate(), |out, (index, prompt)| {
        push_formatted(out, format_args!(r#"{{"index":{index},"object":"embedding","embedding":"#));
        let vector = embedding_vector(prompt, dimensions);
        if ask.is_base64 {
            let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
            out.push(b'"');
            push_base64(out, &bytes);
            out.push(b'"');
        } else {
            push_list(out, vector, |out, value| push_formatted(out, format_args!("{value}")));
        }
        out.push(b'}');
    });
    let tokens = ask.prompt_tokens();
    push_formatted(
        &mut out,
        format_args!(r#","usage":{{"prompt_tokens":{tokens},"total_tokens":{tokens}}}}}"#),
    );
    out
}

fn embedding_vector(prompt: &[u32], dimensions: u32) -> Vec<f32> {
    let seed = hash_bytes(prompt.iter().map(|id| u64::from(*id)));
    // Never exactly zero, so the length never is either.
    let value = |at: u32| {
        let bits = mix_bits(seed.wrapping_add(u64::from(at))) >> 40;
        (bits as f64 + 0.5) / f64::from(1u32 << 23) - 1.0
    };
    let values: Vec<f64> = (0..dimensions).map(value).collect();
    let length = values.iter().map(|value| value * value).sum::<f64>().sqrt();
    values.into_iter().map(|value| (value / length) as f32).collect()
}

fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let is_padding = digit > chunk.len();
            let value = (bits >> (18 - 6 * digit) & 63) as usize;
            out.push(if is_padding { b'=' } else { DIGITS[value] });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_usual_one() {
        // The test vectors of RFC 4648.
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, expected) in cases {
            let mut out = Vec::new();
            push_base64(&mut out, plain.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn vectors_have_length_one_and_tell_texts_apart() {
        for dimensions in [1, 2, 64, 1536] {
            let vector = embedding_vector(&[1, 2, 3], dimensions);
            let length: f32 = vector.iter().map(|value| value * value).sum();
            assert!((length - 1.0).abs() < 1e-5, "{length}");
        }
        assert_eq!(embedding_vector(&[1, 2], 8), embedding_vector(&[1, 2], 8));
        assert_ne!(embedding_vector(&[1, 2], 8), embedding_vector(&[2, 1], 8));
    }
}
