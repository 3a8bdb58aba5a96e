//! The command line as it was typed, for the result that it begins: without secrets.

use goodput_lab::serve::{is_secret_name, without_secrets};
use goodput_lab::shell_word;
use goodput_model::{REDACTED, url_without_secrets};

use crate::args::words;

/// Flags whose value is a header.
const HEADERS: [&str; 2] = ["--header", "-H"];

/// Flags whose value is a command for a shell.
const COMMANDS: [&str; 4] = ["--serve", "--switch-cmd", "--before-cmd", "--after-cmd"];

/// The command that this process was started with, quoted for a shell. Values of headers and of
/// queries, users of URLs, and what looks like a key in the commands that it runs are left out.
pub(crate) fn typed_command() -> String {
    let words = words().into_iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    shown(&words.collect::<Vec<_>>())
}

fn shown(words: &[String]) -> String {
    let mut all = vec!["goodput".to_owned()];
    let mut flag = "";
    for word in words {
        let own = match word.split_once('=').filter(|_| word.starts_with("--")) {
            Some((name, value)) => format!("{name}={}", value_of(name, value)),
            // `-HName: value` is one word.
            None if word.starts_with("-H") && word.len() > 2 => {
                format!("-H{}", value_of("-H", &word["-H".len()..]))
            }
            None => value_of(flag, word),
        };
        flag = if word.starts_with('-') && !word.contains('=') { word } else { "" };
        all.push(own);
    }
    all.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The value of a flag; that of none is a target.
fn value_of(flag: &str, value: &str) -> String {
    if HEADERS.contains(&flag) {
        let name = value.split_once(':').map_or("", |(name, _)| name);
        return format!("{name}: {REDACTED}");
    }
    if COMMANDS.contains(&flag) {
        return without_secrets(value);
    }
    match value.split_once('=') {
        Some((name, _)) if flag == "--meta" && is_secret_name(name) => format!("{name}={REDACTED}"),
        _ if value.contains("://") => {
            let urls: Vec<String> = value.split(',').map(url_without_secrets).collect();
            urls.join(",")
        }
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_and_the_rest_stays() {
        let words = [
            "sweep",
            "http://user:s3cret@host:8000/v1?key=s3cret&plain",
            "--rates",
            "1,2",
            "-H",
            "Authorization: Bearer s3cret",
            "--header=X-Api-Key: s3cret",
            "-HX-Other: s3cret",
            "--api-key-env",
            "MY_KEY",
            "--slo",
            "p99 ttft < 500ms",
            "--meta",
            "hf-token=s3cret",
            "--meta=gpu=H200",
            "--metrics-url=http://a:s3cret@h/metrics,http://b/m?sig=s3cret",
            "--before-cmd",
            "curl -H 'Authorization: Bearer s3cret' http://h",
            "b=http://x:s3cret@h",
        ];
        let text = shown(&words.map(str::to_owned));
        assert!(!text.contains("s3cret"), "{text}");
        let kept = [
            "goodput sweep 'http://[redacted]@host:8000/v1?key=[redacted]&[redacted]' --rates 1,2",
            "'Authorization: [redacted]' '--header=X-Api-Key: [redacted]'",
            "--api-key-env MY_KEY --slo 'p99 ttft < 500ms'",
            "'hf-token=[redacted]' --meta=gpu=H200",
            "'b=http://[redacted]@h'",
        ];
        for part in kept {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
}
