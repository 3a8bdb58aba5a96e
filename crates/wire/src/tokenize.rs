//! [`Tokenizing`]: asking the server itself how many tokens a text has.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goodput_model::{ErrorClass, Failure, FailureStage};
use http::Method;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::time::timeout;

use crate::answer;
use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::places::candidate_paths;

/// How long one answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tokens of a text without special ones, by the server's `/tokenize`; `None` when it has none.
/// For more than one text see [`Tokenizing`].
pub async fn count_remote_tokens(
    endpoint: &Arc<Endpoint>,
    model: &str,
    text: &str,
) -> Result<Option<u32>, Failure> {
    Tokenizing::new(endpoint, model).count(text).await
}

/// Asks one server again and again over one connection, in the form that it was found to know.
/// Lives on a current-thread runtime with a local task set, like [`Client`].
pub struct Tokenizing {
    client: Client,
    endpoint: Arc<Endpoint>,
    model: String,
    known: TokenizeSupport,
    max_model_len: Option<u32>,
}

/// What was found out about the server.
enum TokenizeSupport {
    Nothing,
    Way(Way),
    /// The endpoint does not exist.
    None,
}

/// Where and in which words to ask.
#[derive(Clone)]
struct Way {
    path: String,
    form: TokenizeForm,
}

#[derive(Clone, Copy)]
enum TokenizeForm {
    /// vLLM, SGLang and the mock: `prompt` in, `count` out.
    Prompt,
    /// llama.cpp: `content` in, a list of tokens out.
    Content,
}

/// What the servers say, as far as it matters here.
#[derive(serde::Deserialize)]
struct TokenizeReply {
    count: Option<u32>,
    tokens: Option<Vec<IgnoredAny>>,
    max_model_len: Option<u32>,
}

impl Tokenizing {
    /// Asks this endpoint about this model.
    pub fn new(endpoint: &Arc<Endpoint>, model: &str) -> Self {
        Self {
            client: Client::new(Arc::clone(endpoint)),
            endpoint: Arc::clone(endpoint),
            model: model.to_owned(),
            known: TokenizeSupport::Nothing,
            max_model_len: None,
        }
    }

    /// Tokens of a text without special ones; `None` when the server has no `/tokenize`.
    pub async fn count(&mut self, text: &str) -> Result<Option<u32>, Failure> {
        match &self.known {
            TokenizeSupport::None => Ok(None),
            TokenizeSupport::Way(way) => {
                let way = way.clone();
                self.ask_once(&way, text).await?.map(Some)
            }
            TokenizeSupport::Nothing => self.find_way(text).await,
        }
    }

    /// The model's context, where the server has said so with a count.
    pub fn max_model_len(&self) -> Option<u32> {
        self.max_model_len
    }

    /// Tries the ways one after another.
    async fn find_way(&mut self, text: &str) -> Result<Option<u32>, Failure> {
        for path in candidate_paths(&self.endpoint.url.route("tokenize")) {
            for form in [TokenizeForm::Prompt, TokenizeForm::Content] {
                let way = Way { path: path.clone(), form };
                match self.ask_once(&way, text).await? {
                    Ok(count) => {
                        self.known = TokenizeSupport::Way(way);
                        return Ok(Some(count));
                    }
                    Err(failure) if !is_absence(failure.class) => return Err(failure),
                    // Nothing there: the other form would not help.
                    Err(Failure { class: ErrorClass::Http(404 | 405 | 501), .. }) => break,
                    Err(_) => {}
                }
            }
        }
        self.known = TokenizeSupport::None;
        Ok(None)
    }

    /// Asks once. The inner failure is the server's: it answered, but not with a count.
    async fn ask_once(&mut self, way: &Way, text: &str) -> Result<Result<u32, Failure>, Failure> {
        let body = match way.form {
            TokenizeForm::Prompt => {
                json!({"add_special_tokens": false, "model": self.model, "prompt": text})
            }
            TokenizeForm::Content => json!({"add_special": false, "content": text}),
        };
        let asking =
            self.client.send_outside_load(Method::POST, &way.path, Bytes::from(body.to_string()));
        let (status, bytes) = timeout(PATIENCE, asking).await.unwrap_or_else(|_| {
            let message = format!("{} does not answer", way.path);
            Err(Failure { class: ErrorClass::Timeout, stage: FailureStage::Headers, message })
        })?;
        let refused = |class| Ok(Err(answer::refusal_failure(class, &bytes)));
        if status != 200 {
            return refused(ErrorClass::Http(status));
        }
        let Ok(answer) = serde_json::from_slice::<TokenizeReply>(&bytes) else {
            return refused(ErrorClass::BadJson);
        };
        let listed = answer.tokens.and_then(|tokens| u32::try_from(tokens.len()).ok());
        let count = match way.form {
            // llama.cpp takes a body without `content` for an empty text: a list alone says nothing.
            TokenizeForm::Prompt => answer.count,
            TokenizeForm::Content => answer.count.or(listed),
        };
        let Some(count) = count else { return refused(ErrorClass::BadJson) };
        self.max_model_len = answer.max_model_len.or(self.max_model_len);
        Ok(Ok(count))
    }
}

/// Whether an answer only says that this is not the way: a wrong key or a broken server says more.
fn is_absence(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::Http(300..=400 | 404 | 405 | 422 | 501) | ErrorClass::BadJson)
}
