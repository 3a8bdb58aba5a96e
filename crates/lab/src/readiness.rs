//! From a plan to a target that answers: the mock if one is asked for, the addresses, the model's
//! name, and one small request to see that it all works.

mod refusal;

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use goodput_clock::{now, run_until};
use goodput_mock::{MockServer, MockSettings};
use goodput_model::{
    ClassPlan, ConstraintKind, ErrorClass, Failure, Header, History, Nanos, OutputLength, Plan,
    REDACTED, SourcePlan,
};
use goodput_wire::{
    BaseUrl, Endpoint, EndpointError, EndpointSettings, ProbeError, ProbeResult, RequestFormat,
    list_models, probe_endpoint,
};

use tokio::time::error::Elapsed;

use crate::Failed;
use crate::{Event, Observer};
use refusal::{
    OptionalField, ProbeRefusal, TargetNames, failure_text, refused_field, unreachable_error,
};

/// A target that is ready to be measured.
pub struct Ready {
    /// Where requests go.
    pub endpoint: Arc<Endpoint>,
    /// How their bodies are written.
    pub dialect: RequestFormat,
    /// The model they ask for.
    pub model: String,
    /// For people and files.
    pub shown: String,
    /// How long the small request took, where one was sent.
    pub probe: Option<Nanos>,
    /// What the first token of that small request took.
    pub first_token: Option<Nanos>,
    /// The engine inside the process.
    pub mock: Option<MockServer>,
    /// What it says of itself, once it was asked.
    pub facts: OnceLock<BTreeMap<String, String>>,
}

/// The environment variable with the key, unless a plan names another.
pub const DEFAULT_KEY_ENV: &str = goodput_model::Target::KEY_ENV;

/// Longest time for one small request.
const PROBE_LIMIT: Duration = Duration::from_mins(1);

/// Most characters of a model's name that a server may give: it stands in every request.
const MODEL_NAME: usize = 256;

/// Longest time for the list of models behind an error.
const LIST_LIMIT: Duration = Duration::from_secs(2);

/// How often a server that is not ready is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// A small request that failed is sent once more after this time.
const SECOND_TRY: Duration = Duration::from_secs(1);

/// The same as [`wait_ready_unless`], silent and without such a reason.
pub fn wait_ready(plan: &mut Plan) -> Result<Ready, Failed> {
    wait_ready_unless(plan, &crate::Silent, &|| None)
}

/// Waits for the target, within the plan's limit, and settles what the plan leaves open, unless there
/// is a reason to give up, which is asked for again and again.
pub fn wait_ready_unless(
    plan: &mut Plan,
    observer: &dyn Observer,
    hopeless: &dyn Fn() -> Option<Failed>,
) -> Result<Ready, Failed> {
    let mock = start_mock(&plan.target.url)?;
    let (url, shown) = match &mock {
        Some(mock) => {
            let url = format!("http://{}", mock.address());
            (url.clone(), format!("{} ({url})", plan.target.url))
        }
        None => (plan.target.url.clone(), String::new()),
    };
    let url: BaseUrl = url
        .parse()
        .map_err(|e: goodput_wire::UrlError| Failed::usage(e.to_string()).hint(e.hint))?;
    let shown = if shown.is_empty() { url.shown() } else { shown };
    if mock.is_none() {
        plan.target.url = url.shown();
    }
    let settings = endpoint_settings(plan, url)?;
    announce_key(plan, &settings, observer);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::internal(error.to_string()))?;
    let tasks = tokio::task::LocalSet::new();
    let waiter = Waiter {
        deadline: now() + plan.target.wait_ready.into(),
        limit: plan.target.timeout.min(PROBE_LIMIT),
        is_patient: !plan.target.wait_ready.is_zero(),
        observer,
        shown: shown.clone(),
    };
    let ready = async {
        let endpoint = waiter.connect(&settings).await?;
        let (model, unlisted) = match &plan.target.model {
            Some(model) => (model.clone(), None),
            None => waiter.discover_model(&endpoint).await?,
        };
        let mut dialect = request_format(plan, &model)?;
        let (mut probed, mut first_token) = (None, None);
        if plan.target.probe {
            let mut outcome = waiter.send_probe(&endpoint, &dialect).await;
            while let Err(ProbeRefusal::Fields(field, _)) = &outcome {
                if !drop_field(plan, *field, &waiter) {
                    break;
                }
                dialect = request_format(plan, &model)?;
                outcome = waiter.send_probe(&endpoint, &dialect).await;
            }
            let answer = match outcome {
                Ok(answer) => answer,
                Err(refusal) => return Err(waiter.explain(refusal, plan, &endpoint, &model).await),
            };
            (probed, first_token) = (Some(answer.took), answer.first_token);
        }
        // Only now: it would distract from an error that has another cause.
        if let Some(note) = unlisted {
            waiter.note(&note);
        }
        plan.target.model = Some(model.clone());
        Ok(Ready {
            endpoint,
            dialect,
            model,
            shown: shown.clone(),
            probe: probed,
            first_token,
            mock,
            facts: OnceLock::new(),
        })
    };
    tasks.block_on(&runtime, async {
        run_until(wait_for_give_up(hopeless), Box::pin(ready)).await.unwrap_or_else(Err)
    })
}

/// Says which key goes where, if the plan names another variable than the usual one.
fn announce_key(plan: &Plan, settings: &EndpointSettings, observer: &dyn Observer) {
    if settings.api_key.is_some() && plan.target.api_key_env != DEFAULT_KEY_ENV {
        let variable = plan.target.api_key_env.clone();
        let host = settings.url.authority().to_owned();
        observer.event(Event::KeyUsed { variable, host });
    }
}

/// Returns once there is a reason to give up.
async fn wait_for_give_up(hopeless: &dyn Fn() -> Option<Failed>) -> Failed {
    loop {
        if let Some(failed) = hopeless() {
            return failed;
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// Where the requests of a plan go.
pub fn resolve_addresses(plan: &Plan) -> Result<Vec<SocketAddr>, Failed> {
    let url: BaseUrl = plan
        .target
        .url
        .parse()
        .map_err(|e: goodput_wire::UrlError| Failed::usage(e.to_string()).hint(e.hint))?;
    match Endpoint::new(&endpoint_settings(plan, url)?) {
        Ok(endpoint) => Ok(endpoint.addresses().to_vec()),
        Err(error) => Err(Failed::usage(error.to_string())),
    }
}

fn start_mock(url: &str) -> Result<Option<MockServer>, Failed> {
    let spec = match url.strip_prefix("mock") {
        Some("") => "",
        Some(rest) if rest.starts_with(':') => &rest[1..],
        _ => return Ok(None),
    };
    let settings: MockSettings = spec.parse().map_err(|error: goodput_mock::SettingsError| {
        Failed::usage(error.to_string())
            .hint("for example mock:ttft=50ms,itl=10ms,slots=8 or mock:llama-8b-1xh200")
    })?;
    MockServer::start("127.0.0.1:0", settings, None, None)
        .map(Some)
        .map_err(|error| Failed::internal(error.to_string()))
}

/// How a server at this URL is spoken to, as the plan has it for its target.
pub fn endpoint_settings(plan: &Plan, url: BaseUrl) -> Result<EndpointSettings, Failed> {
    let target = &plan.target;
    let api_key = std::env::var(&target.api_key_env).ok().filter(|key| !key.is_empty());
    if api_key.is_none() && target.api_key_env != DEFAULT_KEY_ENV {
        let name = &target.api_key_env;
        return Err(Failed::usage(format!("the environment variable `{name}` is not set"))
            .hint(format!("set {name}, or remove --api-key-env")));
    }
    let cacert = target.cacert.as_ref().map(|path| {
        goodput_files::read(path.as_ref(), goodput_files::MOST_SMALL)
            .map_err(|error| Failed::usage(format!("cannot read the CA file `{path}`: {error}")))
    });
    let headers: Vec<Header> = target.headers.clone();
    debug_assert!(headers.iter().all(|header| header.value != REDACTED));
    Ok(EndpointSettings {
        url,
        api: target.api,
        stream: target.stream,
        http: target.http,
        connections: target.connections,
        api_key,
        headers,
        cacert: cacert.transpose()?,
        insecure: target.insecure,
        keep_text: plan.workload.save_text || needs_answers(plan),
    })
}

/// How bodies are written.
pub fn request_format(plan: &Plan, model: &str) -> Result<RequestFormat, Failed> {
    let mut dialect = RequestFormat::new(plan.target.api, model, plan.target.stream);
    if plan.target.usage {
        dialect = dialect.with_usage();
    }
    dialect = dialect.with_constraints(plan.workload.constraints);
    if plan.workload.output == OutputLength::Exact {
        dialect = dialect.with_exact_output();
    }
    for structured in plan.workload.classes.iter().filter_map(|class| class.structured.as_ref()) {
        let kind = ConstraintKind::ALL.into_iter().find(|kind| kind.name() == structured.kind);
        if kind.is_some_and(|kind| !dialect.can_express(kind)) {
            let kind = &structured.kind;
            return Err(Failed::usage(format!("this API cannot request a {kind}"))
                .hint("choose another dialect with --structured-dialect"));
        }
    }
    match &plan.target.extra_body {
        Some(extra) => dialect.with_extra(extra).map_err(|error| Failed::usage(error.to_string())),
        None => Ok(dialect),
    }
}

/// Asks until it is answered or the time is up.
struct Waiter<'a> {
    deadline: Nanos,
    /// For one answer.
    limit: Duration,
    /// The user asked to wait until the server is ready.
    is_patient: bool,
    observer: &'a dyn Observer,
    shown: String,
}

impl Waiter<'_> {
    fn note(&self, line: &str) {
        self.observer.note(line.to_owned());
    }

    /// The answer, if it comes within the limit. After two seconds the user is told what is
    /// waited for.
    async fn await_answer<T>(&self, answer: impl Future<Output = T>) -> Result<T, Elapsed> {
        let mut answer = pin!(answer);
        let word = Duration::from_secs(2).min(self.limit);
        match tokio::time::timeout(word, answer.as_mut()).await {
            Err(_) if self.limit > word => {
                let seconds = self.limit.as_secs_f64();
                self.note(&format!("waiting up to {seconds} s for {} to answer", self.shown));
                tokio::time::timeout(self.limit.saturating_sub(word), answer).await
            }
            outcome => outcome,
        }
    }

    fn is_time_up(&self) -> bool {
        now() >= self.deadline
    }

    /// Resolves the name and finds an address that takes connections.
    async fn connect(&self, settings: &EndpointSettings) -> Result<Arc<Endpoint>, Failed> {
        let mut said = false;
        loop {
            let error = match Endpoint::new(settings) {
                Ok(mut endpoint) => match self.await_answer(endpoint.first_reachable()).await {
                    Ok(Ok(address)) => {
                        endpoint.prefer(address);
                        return Ok(Arc::new(endpoint));
                    }
                    Ok(Err(failure)) => unreachable_error(&self.shown, &failure),
                    Err(_) => Failed::target(format!("{} does not accept connections", self.shown)),
                },
                Err(EndpointError::Dns { host, error }) => {
                    Failed::target(format!("cannot resolve `{host}`: {error}"))
                        .hint("check the host name in the URL")
                }
                Err(error) => return Err(Failed::usage(error.to_string())),
            };
            if self.is_time_up() {
                return Err(error);
            }
            if !std::mem::replace(&mut said, true) {
                self.note(&format!("waiting for {}", self.shown));
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// The error behind a refusal. Lists the server's models where the name may be wrong.
    async fn explain(
        &self,
        refusal: ProbeRefusal,
        plan: &Plan,
        endpoint: &Arc<Endpoint>,
        model: &str,
    ) -> Failed {
        let mut listed = Vec::new();
        if refusal.may_be_about_model()
            && let Ok(Ok(models)) = tokio::time::timeout(LIST_LIMIT, list_models(endpoint)).await
        {
            listed = models;
        }
        let url = endpoint.url().shown();
        let scheme = if url.starts_with("https:") { "https" } else { "http" };
        let posted_to = format!("{scheme}://{}{}", endpoint.url().authority(), endpoint.route());
        let (shown, listed) = (&self.shown, &listed);
        refusal.explain(plan, &TargetNames { shown, posted_to: &posted_to, model, listed })
    }

    /// The first model that the server lists, or `default` and a note that says why: servers
    /// without a usable list often accept any name.
    async fn discover_model(
        &self,
        endpoint: &Arc<Endpoint>,
    ) -> Result<(String, Option<String>), Failed> {
        const ANY: &str = "default";
        loop {
            let (problem, may_change) = match self.await_answer(list_models(endpoint)).await {
                Ok(Ok(models)) => match models.into_iter().next() {
                    // It would be asked for by a name that it does not have.
                    Some(model) if model.contains(REDACTED) => (
                        "its first model has the same name as a secret of this run".to_owned(),
                        false,
                    ),
                    Some(model) => return Ok((self.check_model_name(model)?, None)),
                    None => ("the list is empty".to_owned(), false),
                },
                Ok(Err(error @ ProbeError::Unreachable(_))) => (error.to_string(), true),
                Ok(Err(ProbeError::Refused(failure))) => {
                    let is_starting = matches!(failure.class, ErrorClass::Http(502..=504));
                    let problem = match failure.class {
                        ErrorClass::BadJson => "not valid JSON".to_owned(),
                        _ => failure_text(&failure),
                    };
                    (problem, is_starting)
                }
                Err(_) => ("no answer".to_owned(), true),
            };
            if self.is_time_up() || !may_change {
                let note = format!(
                    "could not list models ({problem}): using the name `{ANY}`; set it with --model"
                );
                return Ok((ANY.to_owned(), Some(note)));
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// The name that the server gives its model, if it can go into every request and every report.
    fn check_model_name(&self, model: String) -> Result<String, Failed> {
        let length = model.chars().count();
        if length <= MODEL_NAME {
            return Ok(model);
        }
        let begin: String = model.chars().take(40).collect();
        Err(Failed::target(format!(
            "{} lists a model whose name has {length} characters (at most {MODEL_NAME} are allowed): `{}…`",
            self.shown,
            goodput_model::escape_control(&begin)
        ))
        .hint("name the model with --model"))
    }

    /// Sends one small request until it is answered in a way that lets a run begin.
    async fn send_probe(
        &self,
        endpoint: &Arc<Endpoint>,
        dialect: &RequestFormat,
    ) -> Result<ProbeResult, ProbeRefusal> {
        let (mut said, mut failed) = (false, false);
        loop {
            let outcome = self.await_answer(probe_endpoint(endpoint, dialect)).await;
            let problem = match outcome {
                Ok(Ok(answer)) => match &answer.exchange.failure {
                    // An answer of one token may well be empty.
                    None => return Ok(answer),
                    Some(failure) if failure.class == ErrorClass::Empty => return Ok(answer),
                    Some(failure) if self.is_time_up() && self.is_patient => {
                        return Err(ProbeRefusal::NeverReady(failure.clone()));
                    }
                    Some(failure) if self.is_time_up() && failed => {
                        return Err(ProbeRefusal::Failing(failure.clone()));
                    }
                    Some(failure) if self.is_time_up() => {
                        // One failure may be chance, or the last moment of a start.
                        failed = true;
                        tokio::time::sleep(SECOND_TRY).await;
                        continue;
                    }
                    Some(failure) => failure.clone(),
                },
                Ok(Err(ProbeError::Refused(failure))) => {
                    return Err(match refused_field(&failure) {
                        Some(field) => ProbeRefusal::Fields(field, failure),
                        None => ProbeRefusal::Final(failure),
                    });
                }
                Ok(Err(ProbeError::Unreachable(failure))) if self.is_time_up() => {
                    return Err(ProbeRefusal::Unreachable(failure));
                }
                Ok(Err(ProbeError::Unreachable(failure))) => failure,
                Err(_) => {
                    let seconds = self.limit.as_secs_f64();
                    let failure = Failure {
                        class: ErrorClass::Timeout,
                        stage: goodput_model::FailureStage::Headers,
                        message: format!(
                            "it accepts connections, but did not answer one small request within {seconds} s"
                        ),
                    };
                    if self.is_time_up() {
                        return Err(ProbeRefusal::Unreachable(failure));
                    }
                    failure
                }
            };
            if !std::mem::replace(&mut said, true) {
                self.note(&format!("waiting for {}: {}", self.shown, failure_text(&problem)));
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }
}

/// Leaves a field out, and says what that means; false if it was left out already.
fn drop_field(plan: &mut Plan, field: OptionalField, waiter: &Waiter) -> bool {
    match field {
        OptionalField::Usage if plan.target.usage => {
            waiter.note("the server refuses `stream_options`: counting tokens by chunks instead");
            plan.target.usage = false;
        }
        OptionalField::Exact if plan.workload.output == OutputLength::Exact => {
            waiter.note(
                "the server refuses `min_tokens` and `ignore_eos`: answers may be shorter than planned",
            );
            plan.workload.output = OutputLength::Limit;
        }
        _ => return false,
    }
    true
}

/// Whether anybody needs the text of answers: later turns, or a judge.
fn needs_answers(plan: &Plan) -> bool {
    let workload = &plan.workload;
    // Whether the server counts is known only after the first small request.
    let is_judged =
        workload.count_with.is_some() || (workload.tokenizer.is_some() && plan.target.stream);
    let class = |class: &ClassPlan| {
        let is_carried_on = match &class.source {
            SourcePlan::Dataset(data) => data.turns != Some(1) && data.history == History::Server,
            SourcePlan::Frozen { .. } | SourcePlan::Trace(_) => true,
            _ => class.session.as_ref().is_some_and(|s| s.history == History::Server),
        };
        is_carried_on || class.structured.is_some()
    };
    is_judged || workload.classes.iter().any(class)
}

/// Tells the server to forget its prefix cache, where that was asked for.
pub fn reset_cache(plan: &Plan, ready: &Ready) -> Result<(), Failed> {
    if !plan.workload.reset_cache {
        return Ok(());
    }
    let shown = &ready.shown;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::internal(error.to_string()))?;
    let asking = async {
        let asking = goodput_wire::reset_prefix_cache(&ready.endpoint);
        tokio::time::timeout(PROBE_LIMIT, asking).await
    };
    let silent = Failed::target(format!("{shown} did not answer the request to clear its cache"));
    match tokio::task::LocalSet::new().block_on(&runtime, asking).map_err(|_| silent)? {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failed::target(format!(
            "{shown} has neither /reset_prefix_cache nor /flush_cache"
        ))
        .hint(
            "start vLLM with VLLM_SERVER_DEV_MODE=1, or use --cache cold, which needs no endpoint",
        )),
        Err(failure) => Err(unreachable_error(shown, &failure)),
    }
}
