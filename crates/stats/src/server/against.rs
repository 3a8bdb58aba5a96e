//! What client and server count alike.

use goodput_model::{Nanos, RequestRecord, Signal};

use super::looks::{Between, ServerLooks};
use super::totals::{counter_growth, histogram_growth};
use crate::cuts::Cuts;
use crate::flow::{arrived_tokens, input_tokens};
use crate::summary::{AgainstClient, Reconciled};
use crate::window::{Window, WindowKind};

/// The client's side, filled by all requests of a run.
#[derive(Debug, Default)]
pub(super) struct ClientSide {
    /// Between the looks of the window.
    in_window: Option<Window>,
    /// Between the first look of the run and the last.
    in_run: Option<Window>,
    /// By when every endpoint had been looked at, and until when.
    covered: (Nanos, Nanos),
    first_sent: Option<Nanos>,
    last_end: Nanos,
    all: LevelCounts,
    between: LevelCounts,
    window_output: f64,
    ttft: LevelMean,
    e2e: LevelMean,
    /// What cut answers may have had beyond what arrived; none if unknown.
    unseen: Unseen,
}

#[derive(Debug, Default)]
struct LevelCounts {
    output: f64,
    prompt: f64,
}

#[derive(Debug, Default)]
struct LevelMean {
    sum: f64,
    n: u64,
}

#[derive(Debug, Default)]
struct Unseen {
    tokens: f64,
    is_unknown: bool,
}

impl ClientSide {
    pub(super) fn new(looks: &ServerLooks<'_>, window: Window) -> Self {
        let in_run: Vec<_> = looks.between_looks(|_| true).into_iter().flatten().collect();
        let from = in_run.iter().map(|one| one.from).max().unwrap_or_default();
        let to = in_run.iter().map(|one| one.to).min().unwrap_or_default();
        Self {
            in_window: look_span(&looks.between_looks(|at| window.contains(at))),
            in_run: look_span(&looks.between_looks(|_| true)),
            covered: (from, to),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, record: &RequestRecord, cuts: &Cuts) {
        let Some(in_run) = self.in_run else { return };
        let exchange = &record.exchange;
        let stamps = &exchange.stamps;
        self.first_sent = stamps.sent_first.into_iter().chain(self.first_sent).min();
        self.last_end = self.last_end.max(record.end());
        let output = received_tokens(record);
        self.all.output += output;
        let total = exchange.output_tokens.map(|count| count.n);
        let is_inside = in_run.start <= stamps.dispatched && record.end() <= in_run.end;
        self.between.output +=
            if is_inside { output } else { arrived_tokens(record, total, in_run) };
        let worked_through = stamps.first_token.or(stamps.last_token);
        if let Some(at) = worked_through {
            let prompt = f64::from(input_tokens(record).n);
            self.all.prompt += prompt;
            self.between.prompt += if in_run.contains(at) { prompt } else { 0.0 };
        }
        self.unseen.add(record, output);
        let Some(in_window) = self.in_window else { return };
        self.window_output += arrived_tokens(record, total, in_window);
        let since_sent = |end: Option<Nanos>| {
            let (sent, end) = (stamps.sent_first?, end.filter(|end| in_window.contains(*end))?);
            let is_spoiled = [sent, end].into_iter().any(|at| cuts.is_doubtful(record, at));
            (!is_spoiled).then(|| (end - sent).as_ms())
        };
        self.ttft.add(since_sent(stamps.first_token));
        self.e2e.add(since_sent(stamps.last_token.filter(|_| record.is_ok())));
    }

    /// None if no endpoint was looked at twice.
    pub(super) fn compare_counts(
        &self,
        looks: &ServerLooks<'_>,
        window: Window,
    ) -> Option<AgainstClient> {
        self.in_run?;
        let covers_run = (self.covered.0 == Nanos::ZERO
            || self.first_sent.is_none_or(|sent| self.covered.0 <= sent))
            && self.covered.1 >= self.last_end;
        let client = if covers_run { &self.all } else { &self.between };
        let in_run = looks.between_looks(|_| true);
        let in_run: Vec<&Between<'_>> = in_run.iter().flatten().collect();
        let grown = |signal: Signal| {
            let each: Vec<f64> = in_run.iter().filter_map(|one| one.growth_of(signal)).collect();
            (!each.is_empty()).then(|| each.iter().sum::<f64>())
        };
        let mut against = AgainstClient {
            output_tokens: grown(Signal::GenerationTokens)
                .map(|server| Reconciled::new(client.output, server)),
            prompt_tokens: grown(Signal::PromptTokens)
                .map(|server| Reconciled::new(client.prompt, server)),
            covers_run,
            unseen_tokens: (!self.unseen.is_unknown).then_some(self.unseen.tokens),
            ..AgainstClient::default()
        };
        self.compare_window(&mut against, looks, window);
        Some(against)
    }

    fn compare_window(&self, against: &mut AgainstClient, looks: &ServerLooks<'_>, window: Window) {
        let Some(span) = self.in_window else { return };
        let between = looks.between_looks(|at| window.contains(at));
        let between: Vec<&Between<'_>> = between.iter().flatten().collect();
        let generated = counter_growth(&between).get(Signal::GenerationTokens.name()).copied();
        against.output_tokens_per_s = generated
            .map(|server| Reconciled::new(self.window_output / span.seconds(), server.per_s));
        let histograms = histogram_growth(&between);
        let means = |client: &LevelMean, signal: Signal| {
            let server = histograms.get(signal.name())?;
            Some(Reconciled::new(client.mean()?, server.mean))
        };
        against.ttft_mean_ms = means(&self.ttft, Signal::Ttft);
        against.e2e_mean_ms = means(&self.e2e, Signal::E2e);
    }
}

/// What lies between the first and the last look at all endpoints; of several, whose looks are
/// hardly apart, the mean of their instants. None if one of them has no two looks: their sum is not
/// known then.
fn look_span(between: &[Option<Between<'_>>]) -> Option<Window> {
    let all: Vec<&Between<'_>> = between.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let mean = |instant: fn(&Between<'_>) -> Nanos| {
        let sum: u128 = all.iter().map(|one| u128::from(instant(one).0)).sum();
        Nanos(u64::try_from(sum / all.len().max(1) as u128).unwrap_or(u64::MAX))
    };
    (!all.is_empty()).then(|| Window {
        start: mean(|one| one.from),
        end: mean(|one| one.to),
        kind: WindowKind::Count,
    })
}

/// Output tokens that arrived: as counted, else what chunks say, each at least one.
fn received_tokens(record: &RequestRecord) -> f64 {
    let exchange = &record.exchange;
    match exchange.output_tokens {
        Some(count) => f64::from(count.n),
        None => exchange.chunks.iter().map(|chunk| f64::from(chunk.tokens.unwrap_or(1))).sum(),
    }
}

impl LevelMean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.n += 1;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }
}

impl Unseen {
    /// A server may continue an answer that the client no longer reads, up to its planned length.
    fn add(&mut self, record: &RequestRecord, received: f64) {
        let exchange = &record.exchange;
        let was_refused = exchange.status.is_some_and(|status| !(200..300).contains(&status));
        if record.is_ok() || was_refused || exchange.stamps.sent_first.is_none() {
            return;
        }
        match record.planned.output_tokens {
            Some(planned) => self.tokens += (f64::from(planned) - received).max(0.0),
            None => self.is_unknown = true,
        }
    }
}

impl Reconciled {
    fn new(client: f64, server: f64) -> Self {
        let difference = client - server;
        let share = (server > 0.0).then(|| difference / server);
        Self { client, server, difference, share }
    }
}
