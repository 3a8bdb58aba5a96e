//! Chat, completions and embeddings: what the engine and the faults are about.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use goodput_clock::now;
use goodput_model::random::{Domain, RandomStream};
use goodput_model::{ErrorClass, Nanos, TokenCount, TokenSource};
use http::{HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;

use crate::answer::{BrokenOff, MockBody, ON_PURPOSE, TokenFeed, note_plan};
use crate::api::{
    self, AnswerBehavior, AnswerKind, AnswerPlan, ApiRefusal, CheckedRequest, MOST_TOKENS,
    StreamWriter, plan_answer,
};
use crate::driver::{EngineOrder, Ticket};
use crate::faults::{BeforeHeaders, Injected, Label, Needs};
use crate::line::{MockConnection, RequestInFlight};
use crate::reading::read_body;
use crate::routes::{Reply, build_reply};
use crate::service::Service;
use crate::truth::TruthRecord;

/// Seconds that a client is told to wait when the queue is full.
const RETRY_AFTER: u32 = 1;

/// How often a client that waits for an answer in one piece is looked after.
const BETWEEN_LOOKS: Nanos = Nanos::from_millis(250);

/// A web page where an answer should be: what a proxy or a login page sends.
const PAGE: &[u8] = b"<!DOCTYPE html><html><body><h1>It works</h1></body></html>";

/// Bytes that are not a status line.
const GARBAGE: &[u8] = b"\x16\x03garbage, not HTTP\r\n\r\n";

/// One request for an answer.
struct ReceivedRequest {
    number: u64,
    injected: Injected,
    under_way: RequestInFlight,
    truth: Option<TruthRecord>,
}

/// An answer that may begin.
enum ReadyAnswer {
    Stream(Box<TokenFeed>),
    /// What a client will find wrong with it, if anything.
    Whole(Vec<u8>, Option<ErrorClass>),
}

impl Service {
    /// Answers one request.
    pub(crate) async fn generate(
        self: &Rc<Self>,
        kind: AnswerKind,
        request: Request<Incoming>,
        under_way: RequestInFlight,
    ) -> Result<Reply, BrokenOff> {
        let id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok());
        let id = id.map(str::to_owned);
        let body = match read_body(request, &self.bodies, self.settings.patience).await {
            Ok(body) => body,
            Err(refusal) => return Ok(self.refuse_unread(under_way, &refusal)),
        };
        let mut asked = self.register(under_way, id);
        let line = asked.under_way.line().number;
        asked.change_truth(|truth| {
            truth.change(|record| {
                record.exchange.body_bytes = body.len() as u64;
                record.exchange.connection = line;
            });
        });
        let ask = CheckedRequest::read(kind, &body, &self.request_rules());
        // Answers may wait for long, and bodies are large.
        drop(body);
        if let Some(length) = asked.injected.slow_headers {
            self.count_fault(Label::Named("slow-headers"));
            self.timer().sleep_until(now() + length).await;
        }
        if let Some(fault) = asked.injected.before_headers {
            return self.answer_with_fault(asked, fault);
        }
        let line = Rc::clone(asked.under_way.line());
        let outcome = tokio::select! {
            // What is answered at once needs no timer.
            biased;
            outcome = self.start_answer(ask, &mut asked) => outcome,
            () = self.wait_until_gone(&line) => return Err(BrokenOff),
        };
        match outcome {
            Ok(made) => Ok(self.begin_answer(made, asked)),
            Err(refusal) => {
                let status = refusal.status.as_u16();
                asked.change_truth(|truth| {
                    truth.note_headers(status);
                    truth.note_end(Some((ErrorClass::Http(status), refusal.message.clone())));
                });
                Ok(self.refuse(asked.under_way, &refusal))
            }
        }
    }

    /// Waits until the client has gone.
    async fn wait_until_gone(&self, line: &MockConnection) {
        loop {
            self.timer().sleep_until(now() + BETWEEN_LOOKS).await;
            if line.is_gone() {
                return;
            }
        }
    }

    /// Numbers a request, and decides what is to happen to it.
    fn register(&self, under_way: RequestInFlight, id: Option<String>) -> ReceivedRequest {
        let arrived = now();
        let number = self.requests.replace(self.requests.get() + 1);
        self.tally.requests.fetch_add(1, Relaxed);
        let injected = self.faults.for_request(number, arrived - self.started);
        let truth = self
            .truth
            .clone()
            .map(|sink| TruthRecord::new(sink, Arc::clone(&self.tally), number, arrived, id));
        ReceivedRequest { number, injected, under_way, truth }
    }

    /// Counts the faults that can happen to an answer, or to none at all.
    fn count_faults(&self, injected: &Injected, ask: Option<&CheckedRequest>) {
        let happens = |needs: Needs| match (ask, needs) {
            (None, _) | (_, Needs::Nothing) => true,
            (Some(ask), Needs::Text) => ask.kind != AnswerKind::Embedding,
            (Some(ask), Needs::Stream) => ask.stream && ask.kind != AnswerKind::Embedding,
            (Some(ask), Needs::Orders) => has_fixed_length(ask),
        };
        let kinds = injected.kinds.iter().copied();
        // That one has been counted when it happened.
        let kinds = kinds.filter(|label| *label != Label::Named("slow-headers"));
        for label in kinds.filter(|label| happens(label.required_answer())) {
            self.count_fault(label);
        }
    }

    /// Something else than an answer.
    fn answer_with_fault(
        self: &Rc<Self>,
        mut asked: ReceivedRequest,
        fault: BeforeHeaders,
    ) -> Result<Reply, BrokenOff> {
        let class = match fault {
            BeforeHeaders::Reset => ErrorClass::Closed,
            BeforeHeaders::Html => ErrorClass::Html,
            BeforeHeaders::BadHttp => ErrorClass::BadHttp,
        };
        self.count_faults(&asked.injected, None);
        asked.change_truth(|truth| {
            if fault == BeforeHeaders::Html {
                truth.note_headers(200);
            }
            truth.note_end(Some((class, ON_PURPOSE.to_owned())));
        });
        let line = Rc::clone(asked.under_way.line());
        match fault {
            BeforeHeaders::Html => {
                let answer = MockBody::in_one_piece(self, asked.under_way, PAGE.to_vec());
                return Ok(build_reply(StatusCode::OK, "text/html; charset=utf-8", answer));
            }
            BeforeHeaders::Reset => line.reset(),
            BeforeHeaders::BadHttp => {
                line.write_raw(GARBAGE);
                line.close();
            }
        }
        Err(BrokenOff)
    }

    /// Hands what is asked to the engine, and waits until the answer may begin.
    async fn start_answer(
        &self,
        ask: Result<CheckedRequest, ApiRefusal>,
        asked: &mut ReceivedRequest,
    ) -> Result<ReadyAnswer, ApiRefusal> {
        if let Some((status, retry_after)) = asked.injected.status {
            self.count_faults(&asked.injected, None);
            return Err(injected_refusal(status, retry_after));
        }
        let mut ask = ask?;
        let kind = ask.kind;
        ask.salt = self.settings.seed ^ asked.number.rotate_left(32);
        let (plans, behavior) = self.plan_answers(&ask, &asked.injected);
        asked
            .change_truth(|truth| note_plan(truth, truth_class(kind), ask.prompt_tokens(), &plans));
        let ticket = self.submit(&ask, &plans, asked.number)?;
        self.count_faults(&asked.injected, Some(&ask));
        let head = self.event_head(asked.number);
        if ask.stream && kind != AnswerKind::Embedding {
            let writer = StreamWriter::new(&head, &ask, plans.clone(), &behavior);
            let after_tokens = asked.injected.after_tokens;
            let tokens = TokenFeed::new(ticket, writer, plans, ask.n, after_tokens);
            return Ok(ReadyAnswer::Stream(Box::new(tokens)));
        }
        let cached = wait_for_end(&ticket, &ask, asked).await;
        let mut bytes = match kind {
            AnswerKind::Embedding => api::embeddings_response(&head, &ask),
            _ => api::whole_answer(&head, &ask, &plans, &behavior, cached),
        };
        if asked.injected.error_event {
            bytes = injected_refusal(500, None).body();
        }
        if asked.injected.truncated_json {
            bytes.truncate(bytes.len() / 2);
        }
        Ok(ReadyAnswer::Whole(bytes, expected_error(kind, &asked.injected)))
    }

    /// What the choices of a request will be.
    fn plan_answers(
        &self,
        ask: &CheckedRequest,
        injected: &Injected,
    ) -> (Vec<AnswerPlan>, AnswerBehavior) {
        let answer = self.settings.profile.answer;
        // However long answers are by nature, all of them together must fit into memory.
        let most = (MOST_TOKENS / u64::from(ask.choices().max(1))) as u32;
        // Like its words, an answer's length is the same for the same request with a seed.
        let draw = |choice| {
            let index = ask.answer_seed(choice);
            let mut lengths = RandomStream::new(self.settings.seed, Domain::Lengths, index);
            answer.map(|length| length.draw(&mut lengths).min(most))
        };
        let natural: Vec<_> = (0..ask.choices()).map(draw).collect();
        let mut behavior = AnswerBehavior {
            reasoning: self.settings.reasoning,
            tool_calls: self.settings.tool_calls,
            token_factor: self.settings.token_factor,
            quirks: injected.quirks,
            ..AnswerBehavior::default()
        };
        let plans = |behavior: &AnswerBehavior| -> Vec<AnswerPlan> {
            if ask.kind == AnswerKind::Embedding {
                return Vec::new();
            }
            (0..)
                .zip(&natural)
                .map(|(choice, natural)| plan_answer(ask, choice, *natural, behavior))
                .collect()
        };
        let half = |plans: &[AnswerPlan]| plans.first().map_or(0, |plan| plan.tokens / 2);
        let mut made = plans(&behavior);
        if injected.empty {
            behavior.quirks.early_eos_at = Some(0);
        } else if injected.early_eos || (injected.ignores_ignore_eos && has_fixed_length(ask)) {
            behavior.quirks.early_eos_at = Some(half(&made).max(1));
        }
        if behavior.quirks.early_eos_at.is_some() {
            made = plans(&behavior);
        }
        behavior.quirks.truncated_json_at = injected.truncated_json.then(|| half(&made));
        behavior.quirks.error_at = injected.error_event.then(|| half(&made));
        (made, behavior)
    }

    fn submit(
        &self,
        ask: &CheckedRequest,
        plans: &[AnswerPlan],
        number: u64,
    ) -> Result<Ticket, ApiRefusal> {
        let orders = (0..ask.choices()).filter_map(|choice| {
            let plan = plans.get(choice as usize);
            Some(EngineOrder {
                choice,
                prompt: Arc::clone(ask.prompt_of(choice)?),
                output_tokens: plan.map_or(0, |plan| plan.tokens),
                answer_seed: plan.map_or(0, |plan| plan.seed),
                limit: ask.limit,
                n: ask.n,
                reason: plan.map_or(api::Finish::Stop, |plan| plan.finish),
            })
        });
        let ticket = self.driver.submit(number, orders.collect());
        ticket.map_err(|goodput_sim::QueueFull| {
            if self.settings.queue_full_status == 503 {
                ApiRefusal::overloaded("the queue is full", Some(RETRY_AFTER))
            } else {
                ApiRefusal::rate_limited(Some(RETRY_AFTER))
            }
        })
    }

    /// Status and headers of an answer.
    fn begin_answer(self: &Rc<Self>, made: ReadyAnswer, mut asked: ReceivedRequest) -> Reply {
        asked.change_truth(|truth| truth.note_headers(200));
        let ReceivedRequest { injected, under_way, truth, .. } = asked;
        match made {
            ReadyAnswer::Whole(bytes, spoiled) => {
                let answer = MockBody::with_fault(self, under_way, bytes, &injected);
                let answer = answer.with_expected_error(spoiled).with_truth(truth);
                build_reply(StatusCode::OK, "application/json", answer)
            }
            ReadyAnswer::Stream(tokens) => {
                let answer =
                    MockBody::streamed(self, under_way, tokens, &injected).with_truth(truth);
                let mut reply =
                    build_reply(StatusCode::OK, "text/event-stream; charset=utf-8", answer);
                let no_cache = HeaderValue::from_static("no-cache");
                reply.headers_mut().insert(header::CACHE_CONTROL, no_cache);
                reply
            }
        }
    }
}

impl ReceivedRequest {
    fn change_truth(&mut self, change: impl FnOnce(&mut TruthRecord)) {
        if let Some(truth) = &mut self.truth {
            change(truth);
        }
    }
}

/// Waits for the end of an answer in one piece. Returns the tokens of its prompts that came from
/// the cache.
async fn wait_for_end(ticket: &Ticket, ask: &CheckedRequest, asked: &mut ReceivedRequest) -> u32 {
    let (mut open, mut cached) = (ask.choices(), 0);
    while open > 0 {
        let emission = ticket.next().await;
        if emission.finished {
            open -= 1;
            cached += if emission.choice % ask.n.max(1) == 0 { emission.cached_tokens } else { 0 };
            asked.change_truth(|truth| {
                truth.change(|record| {
                    let began = &mut record.exchange.stamps.dispatched;
                    *began = match *began {
                        Nanos::ZERO => emission.admitted,
                        earlier => earlier.min(emission.admitted),
                    };
                    record.exchange.cached_tokens = Some(cached);
                    let n = record.planned.output_tokens.unwrap_or(0);
                    let count = TokenCount { n, source: TokenSource::Usage };
                    record.exchange.output_tokens = Some(count);
                });
            });
        }
    }
    cached
}

/// Whether all of its tokens are wanted, whatever the model says.
fn has_fixed_length(ask: &CheckedRequest) -> bool {
    ask.ignore_eos || ask.min_tokens > 0
}

/// What a client finds wrong with an answer in one piece.
fn expected_error(kind: AnswerKind, injected: &Injected) -> Option<ErrorClass> {
    let has_text = kind != AnswerKind::Embedding;
    let found = [
        (injected.error_event, ErrorClass::StreamError),
        (injected.truncated_json, ErrorClass::BadJson),
        (injected.quirks.no_finish && has_text, ErrorClass::NoFinish),
        (injected.empty && has_text, ErrorClass::Empty),
    ];
    found.into_iter().find(|(is_so, _)| *is_so).map(|(_, class)| class)
}

/// The class that the truth log gives a request.
fn truth_class(kind: AnswerKind) -> &'static str {
    match kind {
        AnswerKind::Chat => "chat",
        AnswerKind::Completion => "completion",
        AnswerKind::Embedding => "embedding",
    }
}

/// The refusal that a fault asks for.
fn injected_refusal(status: u16, retry_after: Option<u32>) -> ApiRefusal {
    match status {
        401 => ApiRefusal::unauthorized("refused on purpose"),
        429 => ApiRefusal::rate_limited(retry_after),
        503 => ApiRefusal::overloaded("overloaded on purpose", retry_after),
        _ => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            if status.is_client_error() {
                return ApiRefusal { status, ..ApiRefusal::bad_request("refused on purpose") };
            }
            ApiRefusal::engine_failed(status, "failed on purpose")
        }
    }
}
