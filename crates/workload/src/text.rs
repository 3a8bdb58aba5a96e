//! Natural-looking text: varied sentences of common words, because one repeated word would flatter
//! speculative decoding and prefix caches alike.

use goodput_random::Stream;

/// Common words, each a single token in the usual vocabularies.
const WORDS: &str = "the of and to in is that for it was on are with as his they be at one have \
    this from had by hot word but what some we can out other were all there when up use your how \
    said an each she which do their time if will way about many then them write would like so \
    these her long make thing see him two has look more day could go come did number sound no \
    most people my over know water than call first who may down side been now find any new work \
    part take get place made live where after back little only round man year came show every \
    good me give our under name very through just form sentence great think say help low line \
    differ turn cause much mean before move right boy old too same tell does set three want air \
    well also play small end put home read hand port large spell add even land here must big high \
    such follow act why ask men change went light kind off need house picture try us again animal \
    point mother world near build self earth father head stand own page should country found \
    answer school grow study still learn plant cover food sun four between state keep eye never \
    last let thought city tree cross farm hard start might story saw far sea draw left late run";

/// Tokens that the nonce takes, about.
const NONCE_TOKENS: u32 = 10;

/// A prompt of about this many tokens. It starts with a nonce, so that no prefix cache can answer.
pub(crate) fn prompt(tokens: u32, stream: &mut Stream) -> String {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut text = format!("[{:012x}]", stream.bits() >> 16);
    let mut left = tokens.saturating_sub(NONCE_TOKENS);
    while left > 0 {
        let length = (4 + stream.below(12) as u32).min(left);
        for position in 0..length {
            let word = words[stream.below(words.len() as u64) as usize];
            text.push(' ');
            if position == 0 {
                text.extend(word.chars().take(1).flat_map(char::to_uppercase));
                text.push_str(&word[1..]);
            } else {
                text.push_str(word);
            }
        }
        text.push('.');
        // The full stop is a token of its own.
        left = left.saturating_sub(length + 1);
    }
    text
}
