//! What would be written into a job and may be a secret: refused, whether typed or in a plan that is
//! carried along.

use goodput_model::{GpuPlan, Plan, REDACTED};
use serde_json::Value;

use crate::args::EndpointArgs;
use crate::error::Failed;
use crate::serve::{is_secret, without_secrets};

/// Headers whose values are nobody's secret. Of all others it is not known.
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

/// Checks what was typed.
pub(super) fn check_words(target: Option<&str>, args: &EndpointArgs) -> Result<(), Failed> {
    let traces = args.beside.traces.as_deref().filter(|traces| traces.contains("://"));
    let gpu = args.observe.gpu.as_ref().map(exporters).unwrap_or_default();
    let pages = args.observe.metrics_urls.iter().chain(gpu).map(String::as_str);
    target.into_iter().chain(traces).chain(pages).try_for_each(check_url)?;
    for line in &args.headers {
        let name = line.split_once(':').map(|(name, _)| name.trim());
        check_header(name.ok_or_else(|| {
            Failed::usage("a --header has no colon").hint("write --header 'Name: value'")
        })?)?;
    }
    check_body(args.extra_body.as_deref())?;
    args.observe.meta.iter().filter_map(|pair| pair.split_once('=')).try_for_each(check_meta)?;
    let beside =
        [("--before-cmd", &args.beside.before_cmd), ("--after-cmd", &args.beside.after_cmd)];
    for (flag, command) in beside {
        if command.as_ref().is_some_and(|command| without_secrets(command) != *command) {
            return Err(written(&format!("a secret in {flag}")));
        }
    }
    Ok(())
}

/// Checks a plan that is carried along.
pub(super) fn check_plan(plan: &Plan) -> Result<(), Failed> {
    let pages = plan.observe.metrics_urls.iter().chain(exporters(&plan.observe.gpu));
    [&plan.target.url].into_iter().chain(pages).try_for_each(|url| check_url(url))?;
    for header in plan.target.headers.iter().filter(|header| header.value != REDACTED) {
        check_header(&header.name)?;
    }
    check_body(plan.target.extra_body.as_deref())?;
    plan.system.iter().try_for_each(|(name, value)| check_meta((name, value)))
}

fn written(what: &str) -> Failed {
    Failed::usage(format!("{what} would be written into the job"))
        .hint("keys go by the environment: --api-key-env NAME")
}

fn exporters(gpu: &GpuPlan) -> &[String] {
    match gpu {
        GpuPlan::Exporters(urls) => urls,
        _ => &[],
    }
}

fn check_url(url: &str) -> Result<(), Failed> {
    let url = url.split_once('#').map_or(url, |(url, _)| url);
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    if rest.split('/').next().is_some_and(|host| host.contains('@')) {
        return Err(written("the user in a URL"));
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
            Err(written(&format!("the value of `?{name}` in a URL")))
        }
    }
}

fn check_header(name: &str) -> Result<(), Failed> {
    if HARMLESS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    let known = HARMLESS.join(", ");
    Err(written(&format!("the value of header `{name}`")).hint(format!(
        "keys go by the environment: --api-key-env NAME; only these headers are known to hold none: {known}"
    )))
}

fn check_body(text: Option<&str>) -> Result<(), Failed> {
    let Some(text) = text else { return Ok(()) };
    let body = serde_json::from_str(text)
        .map_err(|error| Failed::usage(format!("the extra body is no JSON: {error}")))?;
    match secret_member(&body) {
        None => Ok(()),
        Some(name) => Err(written(&format!("the value of `{name}` of the extra body"))),
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
        return Err(written(&format!("the value of `{name}`")));
    }
    Ok(())
}

/// `api_key`, `apiKey` or `apikey`.
fn sounds_secret(name: &str) -> bool {
    let parted: String =
        name.chars().flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain([c])).collect();
    name != GROUP
        && (is_secret(name) || is_secret(&parted) || name.to_ascii_lowercase().contains("apikey"))
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
