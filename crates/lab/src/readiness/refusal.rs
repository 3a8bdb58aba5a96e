//! Why a run would be pointless, and what to do about it.

use std::fmt::Write as _;

use goodput_model::{ErrorClass, Failure, Plan};

use crate::Failed;

/// Why a run would be pointless.
pub(super) enum ProbeRefusal {
    /// The server refuses a field that can be left out.
    Fields(OptionalField, Failure),
    /// The target does not answer.
    Unreachable(Failure),
    /// The answer will be the same for every request.
    Final(Failure),
    /// Two small requests failed in a way that a later one may not.
    Failing(Failure),
    /// It answers, but never in a way that would let a run begin.
    NeverReady(Failure),
}

/// Fields that a run can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionalField {
    /// `stream_options`
    Usage,
    /// `min_tokens`, `ignore_eos`
    Exact,
}

/// The field that a refusal is about.
pub(super) fn refused_field(failure: &Failure) -> Option<OptionalField> {
    let is_about = |name: &str| failure.message.contains(name);
    match failure.class {
        ErrorClass::Http(400 | 422) if is_about("stream_options") => Some(OptionalField::Usage),
        ErrorClass::Http(400 | 422) if is_about("ignore_eos") || is_about("min_tokens") => {
            Some(OptionalField::Exact)
        }
        _ => None,
    }
}

/// The target, as its errors name it.
pub(super) struct TargetNames<'a> {
    /// Its URL without secrets, or the mock's specification.
    pub(super) shown: &'a str,
    /// The URL that requests are posted to.
    pub(super) posted_to: &'a str,
    /// The model that was requested.
    pub(super) model: &'a str,
    /// The models that the server lists; empty if unknown.
    pub(super) listed: &'a [String],
}

impl ProbeRefusal {
    /// Whether a wrong model name may be the cause.
    pub(super) fn may_be_about_model(&self) -> bool {
        let (Self::Final(failure) | Self::Fields(_, failure)) = self else { return false };
        matches!(failure.class, ErrorClass::Http(400 | 403 | 404 | 422))
    }

    /// The error that the user reads.
    pub(super) fn explain(self, plan: &Plan, target: &TargetNames<'_>) -> Failed {
        let TargetNames { shown, posted_to, model, listed } = target;
        let failure = match self {
            Self::Unreachable(failure) => return unreachable_error(shown, &failure),
            Self::NeverReady(failure) => {
                return Failed::target(format!(
                    "{shown} did not become ready: {}",
                    failure_text(&failure)
                ))
                .hint(
                    "check the server's log, wait longer, or remove --wait-ready to measure the failures",
                );
            }
            Self::Failing(failure) => {
                return Failed::target(format!(
                    "POST {posted_to}: {}; a second small request failed too",
                    failure_text(&failure)
                ))
                .hint(
                    "check the server's log; --wait-ready 5m waits for a server that is starting, \
                     --no-probe measures the failures",
                );
            }
            Self::Final(failure) | Self::Fields(_, failure) => failure,
        };
        let failed = Failed::target(format!("POST {posted_to}: {}", failure_text(&failure)));
        let is_unlisted = !listed.is_empty() && !listed.iter().any(|name| name == model);
        if is_unlisted && matches!(failure.class, ErrorClass::Http(400 | 403 | 404 | 422)) {
            let names = quoted_list(listed);
            return failed.hint(format!(
                "the server has no model `{model}`; choose one with --model: {names}"
            ));
        }
        match failure.class {
            ErrorClass::Http(401 | 403) => failed.hint(format!(
                "set {}, or name another variable with --api-key-env NAME",
                plan.target.api_key_env
            )),
            ErrorClass::Html => {
                failed.hint("give the base URL of the API, such as http://localhost:8000")
            }
            ErrorClass::Http(300..=399) => {
                failed.hint("goodput does not follow redirects: give the new URL as the target")
            }
            ErrorClass::Http(404 | 405) => failed.hint(format!(
                "the path or the model `{model}` is unknown: check the base URL, --api and --model"
            )),
            _ => failed
                .hint("check --model, --api, --extra-body and --ignore-eos against the server"),
        }
    }
}

/// The most names of models in an error.
const MOST_LISTED: usize = 10;

fn quoted_list(names: &[String]) -> String {
    let mut list = names.iter().take(MOST_LISTED).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST_LISTED {
        let _ = write!(list, " and {} more", names.len() - MOST_LISTED);
    }
    list
}

/// The failure as people know it: `HTTP 401 Unauthorized: …`. Of a web page only the title.
pub(super) fn failure_text(failure: &Failure) -> String {
    let message = page_title(&failure.message);
    let class = match failure.class {
        ErrorClass::Http(status) => match reason_phrase(status) {
            "" => format!("HTTP {status}"),
            phrase if message == phrase => return format!("HTTP {status} {phrase}"),
            phrase => format!("HTTP {status} {phrase}"),
        },
        ErrorClass::Html if message.is_empty() => "a web page instead of an API answer".to_owned(),
        ErrorClass::Html => return format!("{message} instead of an API answer"),
        class => class.to_string(),
    };
    if message.is_empty() { class } else { format!("{class}: {message}") }
}

/// A web page as its title only; other text as it is.
fn page_title(message: &str) -> String {
    let lower = message.to_ascii_lowercase();
    if !["<!doctype", "<html", "<head", "<title"].iter().any(|tag| lower.starts_with(tag)) {
        return message.to_owned();
    }
    let title = lower.find("<title").and_then(|at| {
        let begin = at + lower.get(at..)?.find('>')? + 1;
        let length = lower.get(begin..)?.find("</title").unwrap_or(lower.len() - begin);
        message.get(begin..begin + length)
    });
    title.map_or_else(|| "a web page".to_owned(), |title| format!("web page `{}`", title.trim()))
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

/// The error for a target that does not answer.
pub(super) fn unreachable_error(shown: &str, failure: &Failure) -> Failed {
    let failed = Failed::target(format!("cannot reach {shown}: {}", failure.message));
    match failure.class {
        ErrorClass::Tls if failure.message == goodput_wire::PLAIN_HTTP => {
            Failed::target(format!("cannot reach {shown}: this port speaks plain HTTP, not TLS"))
                .hint("use http:// instead of https:// in the URL")
        }
        ErrorClass::Tls => failed.hint(
            "trust its certificate with --cacert FILE, or any with --insecure; for plain HTTP use http://",
        ),
        ErrorClass::LocalLimit => failed.hint("raise the limit on open files with `ulimit -n`"),
        ErrorClass::Timeout => failed
            .hint("--wait-ready 5m waits for a slow first answer; --no-probe sends no request first"),
        ErrorClass::BadHttp | ErrorClass::Closed => {
            failed.hint("check that it is an HTTP server; try https://, http:// or --http2")
        }
        _ => failed.hint("start the server, or wait for it with --wait-ready 60s"),
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::FailureStage;

    use super::*;

    #[test]
    fn failures_are_described_as_people_know_them() {
        let described = |class, message: &str| {
            failure_text(&Failure {
                class,
                stage: FailureStage::Headers,
                message: message.to_owned(),
            })
        };
        assert_eq!(described(ErrorClass::Http(401), "bad key"), "HTTP 401 Unauthorized: bad key");
        assert_eq!(described(ErrorClass::Http(404), "Not Found"), "HTTP 404 Not Found");
        assert_eq!(described(ErrorClass::Http(418), ""), "HTTP 418");
        let page = "<!DOCTYPE html> <html><head><title> Sign in </title></head><body>…";
        assert_eq!(
            described(ErrorClass::Html, page),
            "web page `Sign in` instead of an API answer"
        );
        assert_eq!(described(ErrorClass::Http(502), "<html>x"), "HTTP 502 Bad Gateway: a web page");
    }
}
