//! What would be written into a job and may be a secret: refused, whether typed or in a plan that is
//! carried along.

use std::path::Path;

use goodput_model::{Plan, REDACTED};
use goodput_record::parse_plan;
use serde_json::Value;

use crate::error::Failed;
use crate::events::Observer;
use crate::serve::{is_secret_name, without_secrets};

/// Headers whose values are not secret. Others may be.
const HARMLESS: [&str; 7] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-type",
    "user-agent",
    "x-request-id",
];

/// The one value of a query that some servers need from everybody.
const VERSION: &str = "api-version";

/// The name of a member that sounds like a secret, and groups prompts.
const GROUP: &str = "prompt_cache_key";

/// What was typed for every rank, and may hold a secret.
#[derive(Debug)]
pub struct JobText<'a> {
    /// Where anything is sent or read.
    pub urls: Vec<&'a str>,
    /// `Name: value`
    pub headers: &'a [String],
    /// JSON that is added to every request.
    pub extra_body: Option<&'a str>,
    /// `key=value`
    pub meta: &'a [String],
    /// Flags with the commands behind them.
    pub commands: [(&'static str, Option<&'a str>); 2],
}

impl JobText<'_> {
    /// Refuses what would be a secret in the job.
    pub fn check(&self) -> Result<(), Failed> {
        self.urls.iter().try_for_each(|url| check_url(url))?;
        for line in self.headers {
            let name = line.split_once(':').map(|(name, _)| name.trim());
            check_header(name.ok_or_else(|| {
                Failed::usage("--header without a colon").hint("write --header 'Name: value'")
            })?)?;
        }
        check_body(self.extra_body)?;
        self.meta.iter().filter_map(|pair| pair.split_once('=')).try_for_each(check_meta)?;
        for (flag, command) in self.commands {
            if command.is_some_and(|command| without_secrets(command) != command) {
                return Err(exposed_secret_error(&format!("a secret in {flag}")));
            }
        }
        Ok(())
    }
}

/// Bytes of a plan that is carried along, at most: what a ConfigMap holds.
const MOST_PLAN: usize = 1_000_000;

/// A plan's text, to be written into what many can read: it holds no secret. It may name files of this
/// machine.
pub fn job_plan(path: &Path, observer: &dyn Observer) -> Result<String, Failed> {
    let text = goodput_files::read_text(path, goodput_files::MOST_TOML)
        .map_err(|error| Failed::usage(format!("cannot read `{}`: {error}", path.display())))?;
    if text.len() > MOST_PLAN {
        return Err(Failed::usage("the plan is too large to put into the job"));
    }
    let plan = parse_plan(&text).map_err(|error| Failed::usage(error.to_string()))?;
    check_plan(&plan)?;
    if let Some(file) = plan.target.cacert {
        observer.warn(format!("the plan uses `{file}`, which must exist on every rank"));
    }
    Ok(text)
}

/// Checks a plan that is carried along.
fn check_plan(plan: &Plan) -> Result<(), Failed> {
    let pages = plan.observe.metrics_urls.iter().chain(plan.observe.gpu.exporters());
    [&plan.target.url].into_iter().chain(pages).try_for_each(|url| check_url(url))?;
    for header in plan.target.headers.iter().filter(|header| header.value != REDACTED) {
        check_header(&header.name)?;
    }
    check_body(plan.target.extra_body.as_deref())?;
    plan.system.iter().try_for_each(|(name, value)| check_meta((name, value)))
}

/// The error for a secret that the job would contain as text.
fn exposed_secret_error(what: &str) -> Failed {
    Failed::usage(format!("{what} would be written into the job"))
        .hint("pass keys in the environment: --api-key-env NAME")
}

fn check_url(url: &str) -> Result<(), Failed> {
    let url = url.split_once('#').map_or(url, |(url, _)| url);
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    if rest.split('/').next().is_some_and(|host| host.contains('@')) {
        return Err(exposed_secret_error("the user in a URL"));
    }
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_harmless = |pair: &str| match pair.split_once('=') {
        Some((VERSION, value)) => value.bytes().all(is_bare),
        Some((_, value)) => value.is_empty() || value == REDACTED,
        None => pair.is_empty() || pair == REDACTED,
    };
    match query.split('&').find(|pair| !is_harmless(pair)) {
        None => Ok(()),
        Some(pair) => {
            let name = pair.split_once('=').map_or("…", |(name, _)| name);
            Err(exposed_secret_error(&format!("the value of `?{name}` in a URL")))
        }
    }
}

fn check_header(name: &str) -> Result<(), Failed> {
    if HARMLESS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    let known = HARMLESS.join(", ");
    Err(exposed_secret_error(&format!("the value of header `{name}`")).hint(format!(
        "pass keys in the environment with --api-key-env NAME; only these headers are known to hold no secret: {known}"
    )))
}

fn check_body(text: Option<&str>) -> Result<(), Failed> {
    let Some(text) = text else { return Ok(()) };
    let body = serde_json::from_str(text)
        .map_err(|error| Failed::usage(format!("the extra body is not valid JSON: {error}")))?;
    match secret_member(&body) {
        None => Ok(()),
        Some(name) => {
            Err(exposed_secret_error(&format!("the value of `{name}` of the extra body")))
        }
    }
}

/// The name of a text that sounds like a secret, at any depth.
fn secret_member(value: &Value) -> Option<&str> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, value)| match value {
            Value::String(text) => {
                (!text.is_empty() && sounds_secret(name)).then_some(name.as_str())
            }
            value => secret_member(value),
        }),
        Value::Array(values) => values.iter().find_map(secret_member),
        _ => None,
    }
}

fn check_meta((name, _): (&str, &str)) -> Result<(), Failed> {
    if sounds_secret(name) {
        return Err(exposed_secret_error(&format!("the value of `{name}`")));
    }
    Ok(())
}

/// `api_key`, `apiKey` or `apikey`.
fn sounds_secret(name: &str) -> bool {
    let parted: String =
        name.chars().flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain([c])).collect();
    name != GROUP
        && (is_secret_name(name)
            || is_secret_name(&parted)
            || name.to_ascii_lowercase().contains("apikey"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_queries_pass() {
        let table = [
            ("http://h:8000/v1", Ok(())),
            ("http://h/v1?api-version=2024-02-01", Ok(())),
            ("http://h/v1?api-version=1;key=x", Err("`?api-version`")),
            ("http://h/v1?api_key=SECRETQ", Err("`?api_key`")),
            ("http://h/v1?a=&b=SECRETQ", Err("`?b`")),
            ("http://h/v1?SECRETQ", Err("`?…`")),
            ("http://h/v1?a=[redacted]", Ok(())),
            ("http://me:SECRETQ@h/v1", Err("the user in a URL")),
            ("http://h/a@b", Ok(())),
        ];
        for (url, expected) in table {
            let said = check_url(url).map_err(|failed| failed.to_string());
            match (said, expected) {
                (Ok(()), Ok(())) => {}
                (Err(said), Err(expected)) => {
                    assert!(said.contains(expected) && !said.contains("SECRETQ"), "{url}: {said}");
                }
                (said, _) => panic!("{url}: {said:?}"),
            }
        }
    }

    #[test]
    fn only_texts_that_sound_like_secrets_are_refused_in_a_body() {
        for name in ["api_key", "apiKey", "apikey", "Authorization", "hf-token"] {
            let body = format!(r#"{{"a": [{{"{name}": "SECRETB"}}]}}"#);
            let said = check_body(Some(&body)).unwrap_err().to_string();
            assert!(said.contains(name) && !said.contains("SECRETB"), "{said}");
        }
        let fine =
            r#"{"stop_token_ids": [1], "max_tokens": 5, "prompt_cache_key": "a", "top_k": 1}"#;
        assert!(check_body(Some(fine)).is_ok());
        assert!(check_body(Some("{")).is_err());
    }
}
