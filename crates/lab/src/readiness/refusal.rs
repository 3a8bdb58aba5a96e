//! Why a run would be pointless, and what to do about it.

use goodput_model::{ErrorClass, Failure, Plan};

use crate::Failed;

/// Why a run would be pointless.
pub(super) enum Refusal {
    /// The server refuses a field that can be left out.
    Fields(Field, Failure),
    /// Nobody answers.
    Unreachable(Failure),
    /// The answer will be the same for every request.
    Final(Failure),
    /// It answers, but never in a way that would let a run begin.
    NeverReady(Failure),
}

/// Fields that a run can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// `stream_options`
    Usage,
    /// `min_tokens`, `ignore_eos`
    Exact,
}

/// The field that a refusal is about.
pub(super) fn refused_field(failure: &Failure) -> Option<Field> {
    let is_about = |name: &str| failure.message.contains(name);
    match failure.class {
        ErrorClass::Http(400 | 422) if is_about("stream_options") => Some(Field::Usage),
        ErrorClass::Http(400 | 422) if is_about("ignore_eos") || is_about("min_tokens") => {
            Some(Field::Exact)
        }
        _ => None,
    }
}

impl Refusal {
    /// For the user.
    pub(super) fn explain(self, plan: &Plan, model: &str, shown: &str) -> Failed {
        let failure = match self {
            Self::Unreachable(failure) => return unreachable(shown, &failure),
            Self::NeverReady(failure) => {
                return Failed::target(format!(
                    "{shown} did not become ready: {}: {}",
                    failure.class, failure.message
                ))
                .hint("look at the server's log, wait longer, or run without --wait-ready to count failures");
            }
            Self::Final(failure) | Self::Fields(_, failure) => failure,
        };
        let failed = Failed::target(format!(
            "{shown} refuses requests: {}: {}",
            failure.class, failure.message
        ));
        match failure.class {
            ErrorClass::Http(401 | 403) => failed.hint(format!(
                "the API key is taken from ${} (--api-key-env names another)",
                plan.target.api_key_env
            )),
            ErrorClass::Html => failed.hint("this is a web page: is it the API's base URL?"),
            ErrorClass::Http(300..=399) => failed.hint("redirects are not followed: name that URL"),
            ErrorClass::Http(404) => failed.hint(format!(
                "model `{model}` or path unknown: check --model, --api and the base URL"
            )),
            _ => failed
                .hint("check --model, --api, --extra-body and --ignore-eos against the server"),
        }
    }
}

/// For the user: nobody answers.
pub(super) fn unreachable(shown: &str, failure: &Failure) -> Failed {
    let failed = Failed::target(format!("cannot reach {shown}: {}", failure.message));
    match failure.class {
        ErrorClass::Tls => failed.hint(
            "--cacert FILE trusts a private authority or that very certificate, --insecure any; is it https at all?",
        ),
        ErrorClass::LocalLimit => failed.hint("raise `ulimit -n`"),
        ErrorClass::Timeout => {
            failed.hint("--wait-ready 5m waits for a first answer that takes long; --no-probe asks for none")
        }
        ErrorClass::BadHttp | ErrorClass::Closed => {
            failed.hint("does the server speak this protocol? try with or without https and --http2")
        }
        _ => failed.hint("is the server up? --wait-ready 60s waits for one that is still starting"),
    }
}
