//! [`analyze_run`]: two passes over the records. The first finds the window, the second fills it.

use std::collections::BTreeMap;

use goodput_model::{
    AnswerJudgement, ArrivalProcess, HealthSample, MetricName, Mode, Nanos, Phase, Plan, Rate,
    RequestRecord, Slo, TokenSource, Verdict,
};

use crate::caveats::{self, CaveatTally, Evidence};
use crate::client::ClientTally;
use crate::course::Course;
use crate::cuts::Cuts;
use crate::flow::{Balance, Flow, gap_cv, input_tokens, rate_of};
use crate::gpu::{self, WindowTokens};
use crate::kolmogorov::test_exponential_gaps;
use crate::metrics::{KeyFigures, Metrics};
use crate::request::Latencies;
use crate::sample::{Sample, Wanted};
use crate::series::SeriesTally;
use crate::server::ServerTally;
use crate::share;
use crate::slo::{RunFigures, SloTally};
use crate::streamed::{arrived_in_one_piece, mark_undecided};
use crate::summary::{
    ClientSummary, ErrorDetail, LittlesLaw, LoadSummary, Metric, Requests, RunFacts, SloSummary,
    Spread, Summary, Tokens,
};
use crate::until::{self, UntilTally};
use crate::waterfall::Waterfalls;
use crate::window::{Extremes, Window, WindowKind};
use crate::workload::{Differences, Judgements, WorkloadFigures, WorkloadTally};

/// The numbers of a run, from its records, from what was observed during the run, and from what was
/// found out about its answers. `records` is called twice and must give the same records each time.
pub fn analyze_run<I: Iterator<Item = RequestRecord>>(
    plan: &Plan,
    run: RunFacts,
    records: impl Fn() -> I,
    samples: &[HealthSample],
    judgements: impl IntoIterator<Item = AnswerJudgement>,
) -> Summary {
    analyze_with_facts(plan, || run, records, samples, judgements)
}

/// The same where some of what is known of the run, such as whether its log is whole, is known only
/// once the records have been read: `run` is called after that.
pub fn analyze_with_facts<I: Iterator<Item = RequestRecord>>(
    plan: &Plan,
    run: impl FnOnce() -> RunFacts,
    records: impl Fn() -> I,
    samples: &[HealthSample],
    judgements: impl IntoIterator<Item = AnswerJudgement>,
) -> Summary {
    let mut extremes = Extremes::default();
    let mut differences = Differences::default();
    let mut series = SeriesTally::default();
    for record in records() {
        extremes.add(&record);
        differences.add(&record);
        series.add(&record);
    }
    let run = run();
    let own = share::shard_plan(plan, &run);
    let course = Course::new(&series, &own.load, extremes.find_window(&own.load, &run));
    let window = course.window;
    let whole = Window {
        start: extremes.first.unwrap_or_default(),
        end: extremes.last.unwrap_or_default(),
        kind: WindowKind::Makespan,
    };
    let judgements = Judgements::new(judgements);
    let workload = WorkloadTally::new(plan, window, &differences, judgements);
    let caveats = CaveatTally::new(plan, window);
    let mut tally =
        SecondPass::new(whole, plan.target.stream, Cuts::new(samples), workload, caveats);
    tally.slo = SloTally::new(&own, window, &run);
    tally.server = ServerTally::new(plan, samples, window);
    tally.until = UntilTally::new(plan);
    for mut record in records() {
        if course.has_cut() && record.scheduled < window.start {
            record.phase = Phase::Warmup;
        }
        tally.workload.complete(&mut record);
        tally.add(&record);
    }
    tally.finish(plan, run, samples, course)
}

/// Figures over the whole run, next to those of the window.
const WHOLE: [(&str, MetricName); 3] =
    [("ttft", MetricName::Ttft), ("tpot", MetricName::Tpot), ("e2e", MetricName::E2e)];

/// Everything that a second pass adds up.
struct SecondPass {
    window: Window,
    whole: Window,
    stream: bool,
    metrics: Metrics,
    requests: Requests,
    tokens: Tokens,
    input_sources: BTreeMap<&'static str, u64>,
    output_sources: BTreeMap<&'static str, u64>,
    slip: Sample,
    scheduled: Vec<Nanos>,
    sent: Vec<Nanos>,
    delayed: u64,
    in_window: Flow,
    in_whole: Flow,
    /// TTFT, TPOT and E2E of requests of every phase.
    whole_latency: [Sample; 3],
    /// Time that requests spent in flight inside the window.
    residence: Nanos,
    balance: Balance,
    waterfalls: Waterfalls,
    cuts: Cuts,
    /// Measured requests that a stall of the client has touched.
    touched: u64,
    client: ClientTally,
    /// Mean time in flight of measured requests.
    time_under_way: Sample,
    events_in_window: u64,
    workload: WorkloadTally,
    caveats: CaveatTally,
    slo: Option<SloTally>,
    until: UntilTally,
    server: ServerTally,
}

impl SecondPass {
    fn new(
        whole: Window,
        stream: bool,
        cuts: Cuts,
        workload: WorkloadTally,
        caveats: CaveatTally,
    ) -> Self {
        Self {
            window: workload.window,
            whole,
            stream,
            metrics: Metrics::new(workload.window),
            requests: Requests::default(),
            tokens: Tokens::default(),
            input_sources: BTreeMap::new(),
            output_sources: BTreeMap::new(),
            slip: Sample::default(),
            scheduled: Vec::new(),
            sent: Vec::new(),
            delayed: 0,
            in_window: Flow::default(),
            in_whole: Flow::default(),
            whole_latency: Default::default(),
            residence: Nanos::ZERO,
            balance: Balance::default(),
            waterfalls: Waterfalls::default(),
            cuts,
            touched: 0,
            client: ClientTally::default(),
            time_under_way: Sample::default(),
            events_in_window: 0,
            workload,
            caveats,
            slo: None,
            until: UntilTally::default(),
            server: ServerTally::default(),
        }
    }

    fn add(&mut self, record: &RequestRecord) {
        // A makespan is that of the measured requests, so it counts only those.
        let counts = record.phase == Phase::Measured || !self.window.is_makespan();
        if counts {
            self.in_window.add(record, self.window);
        }
        self.workload.add(record, counts, &self.cuts);
        self.caveats.add(record, &self.cuts);
        self.in_whole.add(record, self.whole);
        self.server.add(record, &self.cuts);
        let latencies = Latencies::new(record, self.stream, &self.cuts);
        for ((_, metric), sample) in WHOLE.into_iter().zip(&mut self.whole_latency) {
            sample.push_value(None, latencies.get(metric));
        }
        // A request that a cap holds back is not yet on its way.
        self.residence += self.window.overlap(record.exchange.stamps.dispatched, record.end());
        self.balance.add(record, self.window);
        let arrivals = record.exchange.chunks.iter().filter(|chunk| self.window.contains(chunk.at));
        self.events_in_window += arrivals.count() as u64;
        match record.phase {
            Phase::Warmup => self.requests.warmup += 1,
            Phase::Cooldown => self.requests.cooldown += 1,
            Phase::Measured => self.add_measured(record),
        }
    }

    fn add_measured(&mut self, record: &RequestRecord) {
        self.metrics.add(record, self.stream, &self.cuts);
        if let Some(slo) = &mut self.slo {
            slo.add(record, &self.cuts);
        }
        self.until.add(record, &self.cuts);
        self.client.add(record);
        if self.cuts.affects(record) {
            self.touched += 1;
        } else {
            self.waterfalls.add(record);
        }
        self.time_under_way.push((record.end() - record.exchange.stamps.dispatched).as_secs());
        self.add_outcome(record);
        self.scheduled.push(record.scheduled);
        self.delayed += u64::from(record.cap_wait > Nanos::ZERO);
        // What was due in a stall is on record as the stall.
        if let Some(slip) =
            record.slip().filter(|_| !self.cuts.is_doubtful(record, record.scheduled))
        {
            self.slip.push(slip.as_ms());
        }
        self.sent.extend(record.exchange.stamps.sent_first);
        if record.is_ok() {
            self.add_tokens(record);
        }
    }

    fn add_outcome(&mut self, record: &RequestRecord) {
        let (requests, exchange) = (&mut self.requests, &record.exchange);
        requests.scheduled += 1;
        requests.reconnects += u64::from(exchange.reconnects);
        requests.connects += u64::from(exchange.stamps.connect.is_some());
        let Some(failure) = &exchange.failure else {
            requests.ok += 1;
            requests.whole += u64::from(self.stream && arrived_in_one_piece(exchange));
            let reason = exchange.finish.clone().unwrap_or_default();
            *requests.finish_reasons.entry(reason).or_default() += 1;
            return;
        };
        requests.failed += 1;
        let class = failure.class.to_string();
        let stage = failure.stage.name();
        *requests.errors.entry(class.clone()).or_default() += 1;
        *requests.errors_by_stage.entry(stage.to_owned()).or_default() += 1;
        let same = |detail: &&mut ErrorDetail| detail.class == class && detail.stage == stage;
        match requests.error_details.iter_mut().find(same) {
            Some(detail) => detail.count += 1,
            None => requests.error_details.push(ErrorDetail {
                stage: stage.to_owned(),
                class,
                count: 1,
                message: failure.message.clone(),
            }),
        }
    }

    fn add_tokens(&mut self, record: &RequestRecord) {
        let exchange = &record.exchange;
        let input = input_tokens(record);
        self.tokens.input += u64::from(input.n);
        *self.input_sources.entry(input.source.name()).or_default() += 1;
        if let Some(output) = exchange.output_tokens {
            self.tokens.output += u64::from(output.n);
            *self.output_sources.entry(output.source.name()).or_default() += 1;
        } else {
            self.tokens.uncounted += 1;
        }
        if let Some(cached) = exchange.cached_tokens {
            *self.tokens.cached.get_or_insert(0) += u64::from(cached);
        }
        if let Some(image) = exchange.image_tokens {
            *self.tokens.image.get_or_insert(0) += u64::from(image);
        }
        self.tokens.chunks += exchange.chunks.len() as u64;
        self.tokens.coalesced_chunks +=
            exchange.chunks.iter().filter(|chunk| chunk.coalesced).count() as u64;
    }

    fn drop_empty(&mut self) {
        // In order of weight, then of name: the same page whatever came first.
        self.requests.error_details.sort_by_key(|detail| {
            (std::cmp::Reverse(detail.count), detail.class.clone(), detail.stage.clone())
        });
        self.tokens.input_source = token_source(&self.input_sources);
        self.tokens.output_source = token_source(&self.output_sources);
    }

    fn finish(
        mut self,
        plan: &Plan,
        run: RunFacts,
        samples: &[HealthSample],
        mut course: Course,
    ) -> Summary {
        self.drop_empty();
        course.clear_unless(self.requests.ok > 0);
        let load = self.load_summary(plan, &run);
        let client = self.client_summary(samples, &load);
        let key = self.metrics.key_figures(load.offered_rps);
        course.clear_steadiness_if_short(key.e2e_p99_ms);
        let throughput = self.in_window.rates_in_window(self.window);
        let (metrics, slo) = self.judge_slo(plan, &run, &load, &key);
        let figures = self.workload.finish(plan, &run);
        let counted = self.caveats.finish();
        let (until, known) = std::mem::take(&mut self.until).finish(self.window.seconds()).unzip();
        let tokens = WindowTokens::new(&throughput, slo.as_ref(), self.window);
        let mut server = std::mem::take(&mut self.server).finish(samples, &run.system);
        let mut gpu = gpu::gpu_summary(samples, self.window, tokens, &run.system);
        share::clear_server_totals(&run, server.as_mut(), gpu.as_mut());
        let mut caveats = caveats::find_caveats(&Evidence {
            plan,
            run: &run,
            load: &load,
            requests: &self.requests,
            tokens: &self.tokens,
            is_counted_by_chunks: self.output_sources.contains_key(TokenSource::Events.name()),
            window: self.window,
            balance: &self.balance,
            client: &client,
            figures: &figures,
            key: &key,
            course: &course,
            tally: &counted,
            run_end_s: self.whole.end.as_secs(),
            completions_per_s: throughput.requests_per_s,
            server: server.as_ref(),
            gpu: gpu.as_ref(),
        });
        caveats.extend(known.and_then(|known| until::until_caveat(&known, &run)));
        caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
        let WorkloadFigures { lengths, breakdown, cache, replay, structured, recount, sessions } =
            figures;
        Summary {
            schema: Summary::SCHEMA.to_owned(),
            verdict: Verdict::from_caveats(&caveats),
            caveats,
            run,
            load,
            throughput,
            whole_run: self.in_whole.rates_in_window(self.whole),
            whole_run_latency_ms: whole_run_spreads(self.whole_latency),
            window: self.window.to_summary(course.cut),
            steadiness: course.steadiness,
            saturation: course.saturation,
            requests: self.requests,
            tokens: self.tokens,
            metrics,
            waterfall: self.waterfalls.finish(),
            client,
            lengths,
            breakdown,
            cache,
            replay,
            structured,
            recount,
            sessions,
            slo,
            until,
            server,
            gpu,
        }
    }

    /// The distributions, and what was promised of them.
    fn judge_slo(
        &mut self,
        plan: &Plan,
        run: &RunFacts,
        load: &LoadSummary,
        key: &KeyFigures,
    ) -> (BTreeMap<String, Metric>, Option<SloSummary>) {
        let percentiles = all_percentiles(plan);
        let early_stopping = plan.measure.early_stopping;
        let wanted = Wanted { early_stopping, ..Wanted::new(&percentiles) };
        let memories = self.metrics.memory_by_metric();
        let metrics = std::mem::take(&mut self.metrics).finish(wanted, key);
        let figures = RunFigures {
            metrics: &metrics,
            failed_share: self.requests.failed_share(run),
            throughput: self.in_window.rates_in_window(self.window),
            throughput_ends: self.in_window.rate_intervals(self.window),
            memories: &memories,
            scheduled_rps: load.scheduled_rps,
            max_gap_p99_ms: key.max_gap_p99_ms,
        };
        let mut slo = self.slo.take().map(|slo| slo.finish(&figures));
        let asked = plan.measure.slo.as_ref().filter(|_| self.requests.is_partly_whole());
        if let Some((slo, asked)) = slo.as_mut().zip(asked) {
            mark_undecided(slo, asked);
        }
        (metrics, slo)
    }

    fn client_summary(&mut self, samples: &[HealthSample], load: &LoadSummary) -> ClientSummary {
        let last = self.whole.end;
        let mut client = std::mem::take(&mut self.client).finish(
            samples,
            self.window,
            last,
            load.mode != "closed",
        );
        client.stalls.requests = self.touched;
        client.tcp.opened = self.requests.connects;
        client.tcp.reused = (self.sent.len() as u64).saturating_sub(self.requests.connects);
        let seconds = self.window.seconds();
        client.events_per_s = (seconds > 0.0).then(|| self.events_in_window as f64 / seconds);
        client.littles_law = self.check_littles_law(load);
        client
    }

    /// L = λR within what requests at the ends of the window can explain.
    fn check_littles_law(&self, load: &LoadSummary) -> Option<LittlesLaw> {
        let (in_flight, arrivals_per_s) = (load.in_flight_mean?, load.scheduled_rps?);
        let residence_s = self.time_under_way.mean()?;
        let straddling = self.balance.in_flight_start + self.balance.in_flight_end;
        let arrivals = arrivals_per_s * self.window.seconds();
        (in_flight > 0.0 && arrivals > 0.0).then(|| LittlesLaw {
            in_flight,
            arrivals_per_s,
            residence_s,
            residual: (in_flight - arrivals_per_s * residence_s).abs() / in_flight,
            limit: (2.0 * straddling as f64 / arrivals).max(0.02),
        })
    }

    fn load_summary(&mut self, plan: &Plan, run: &RunFacts) -> LoadSummary {
        self.scheduled.sort_unstable();
        self.sent.sort_unstable();
        let shard = share::shard_of_run(run);
        let mode = &shard.shard_load(&plan.load).mode;
        let (arrivals, shape, concurrency) = match mode {
            Mode::Open { arrivals, .. } => (Some(arrivals.to_string()), None, None),
            Mode::Shaped { arrivals, shape, .. } => {
                (Some(arrivals.to_string()), Some(shape.to_string()), None)
            }
            Mode::Replay { .. } => (None, None, None),
            Mode::Closed { concurrency, .. } => (None, None, Some(*concurrency)),
        };
        let offered_rps =
            self.offered_rate(mode).map(|rate| share::shard_of_rate(mode, shard, rate));
        // What arrives by schedule is the session, not each of its requests.
        let sessions = &mut self.workload.sessions;
        sessions.due.sort_unstable();
        sessions.sent.sort_unstable();
        let (due, sent) = if sessions.due.is_empty() {
            (&self.scheduled, &self.sent)
        } else {
            (&sessions.due, &sessions.sent)
        };
        let poisson = poisson_rate(plan).filter(|_| !share::is_partial(run));
        let seconds = self.window.seconds();
        LoadSummary {
            mode: mode.name().to_owned(),
            arrivals,
            shape,
            offered_rps,
            scheduled_rps: rate_of(&self.scheduled, self.window),
            delivered_rps: rate_of(&self.sent, self.window),
            delivered_share: (!self.scheduled.is_empty())
                .then(|| self.sent.len() as f64 / self.scheduled.len() as f64),
            gap_cv: gap_cv(&self.sent),
            due_gaps: poisson.and_then(|rate| test_exponential_gaps(due, rate)),
            sent_gaps: poisson.and_then(|rate| test_exponential_gaps(sent, rate)),
            concurrency,
            idle_s: idle_before_request_s(mode),
            max_concurrency: mode.most_in_flight(),
            delayed: self.delayed,
            slip_ms: std::mem::take(&mut self.slip).into_quick(),
            in_flight_mean: (seconds > 0.0).then(|| self.residence.as_secs() / seconds),
            in_flight_end: self.balance.in_flight_end,
        }
    }

    /// The rate asked for: arrivals per second, on average over the window where it changes.
    fn offered_rate(&self, mode: &Mode) -> Option<f64> {
        let Window { start, end, .. } = self.window;
        let seconds = self.window.seconds();
        match mode {
            Mode::Open { rate: Rate::PerSecond(rate), .. } => Some(*rate),
            Mode::Shaped { shape, .. } if !self.window.is_makespan() && seconds > 0.0 => {
                Some(shape.expected_arrivals(start, end) / seconds)
            }
            Mode::Replay { .. } => rate_of(&self.scheduled, self.window),
            _ => None,
        }
    }
}

fn whole_run_spreads(latency: [Sample; 3]) -> BTreeMap<String, Spread> {
    let named = WHOLE.into_iter().zip(latency);
    named.map(|((name, _), sample)| (name.to_owned(), sample.into_spread())).collect()
}

/// How long the server stands idle before each request of a cold start test.
fn idle_before_request_s(mode: &Mode) -> Option<f64> {
    match mode {
        Mode::Closed { think_time, pause_first: true, .. } => Some(think_time.as_secs_f64()),
        _ => None,
    }
}

/// The rate of a Poisson process that nothing holds back.
fn poisson_rate(plan: &Plan) -> Option<f64> {
    match plan.load.mode {
        Mode::Open {
            rate: Rate::PerSecond(rate),
            arrivals: ArrivalProcess::Poisson,
            max_concurrency: None,
        } => Some(rate),
        _ => None,
    }
}

/// The percentiles asked for, also by the SLO; a plan file may hold anything.
fn all_percentiles(plan: &Plan) -> Vec<f64> {
    let is_one = |percent: &f64| *percent > 0.0 && *percent < 100.0;
    let promised = plan.measure.slo.iter().flat_map(Slo::percentiles);
    plan.measure.percentiles.iter().copied().chain(promised).filter(is_one).collect()
}

fn token_source(sources: &BTreeMap<&'static str, u64>) -> String {
    match sources.len() {
        0 => "none".to_owned(),
        1 => sources.keys().next().copied().unwrap_or_default().to_owned(),
        _ => "mixed".to_owned(),
    }
}
