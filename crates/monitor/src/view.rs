//! What is shown, as plain data.

/// Everything that a screen shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScreenView {
    /// What goes on: the verb, the target, the model.
    pub title: String,
    /// Which pane is in front.
    pub pane: Pane,
    /// Whether the keys are explained on top of it.
    pub help: bool,
    /// Whether colors may be used.
    pub color: bool,
    /// The current run, or the last one.
    pub run: Option<LiveRunView>,
    /// What the run is a part of.
    pub campaign: Option<CampaignView>,
    /// Lines that were said, the latest last.
    pub notes: Vec<String>,
}

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pane {
    /// All at a glance.
    #[default]
    Overview,
    /// Percentiles of every latency.
    Latency,
    /// The server's side, the client's health, and errors.
    Health,
    /// Its messages.
    Notes,
}

impl Pane {
    /// All of them, in the order of their keys, with their names.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Overview, "overview"),
        (Self::Latency, "latency"),
        (Self::Health, "server, client"),
        (Self::Notes, "notes"),
    ];

    /// The next one.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Overview => Self::Latency,
            Self::Latency => Self::Health,
            Self::Health => Self::Notes,
            Self::Notes => Self::Overview,
        }
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunPhase {
    /// Nothing was seen of it yet.
    #[default]
    Starting,
    /// What is sent now is not measured.
    Warmup,
    /// What is sent now counts.
    Measured,
    /// Load that keeps the server busy for the last that count.
    Cooldown,
    /// Everything was sent; answers are waited for.
    Drain,
    /// The same, because the user stopped it.
    Stopping,
    /// It is over.
    Ended,
}

impl RunPhase {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Warmup => "warm-up",
            Self::Measured => "measured",
            Self::Cooldown => "cooldown",
            Self::Drain => "drain",
            Self::Stopping => "stopping",
            Self::Ended => "ended",
        }
    }
}

/// What the plan asks for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum OfferedView {
    /// Requests, or sessions, per second.
    PerSecond(f64),
    /// Users of a closed loop.
    Users(u32),
    /// All at once, or when a trace says.
    #[default]
    Otherwise,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveRunView {
    /// Which of several it is; empty for one alone.
    pub label: String,
    /// Where it stands.
    pub phase: RunPhase,
    /// Seconds since its first instant.
    pub elapsed_s: f64,
    /// Seconds of load, where the plan tells.
    pub total_s: Option<f64>,
    /// Share of the load that is done, 0 to 1, where it is known.
    pub done: Option<f64>,
    /// Seconds to the end of the load, about.
    pub left_s: Option<f64>,
    /// What the plan asks for now.
    pub offered: OfferedView,
    /// Requests sent per second, lately.
    pub sent_per_s: Option<f64>,
    /// Completed requests per second, lately.
    pub ok_per_s: Option<f64>,
    /// Output tokens of ended answers per second, lately.
    pub tokens_per_s: Option<f64>,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests sent.
    pub sent: u64,
    /// Completed requests.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// How well the figure is known that was asked for, in words; empty if nothing is known.
    pub confidence: String,
    /// Latencies, by histogram.
    pub latencies: Vec<LatencyView>,
    /// Output tokens of the answers that ended, second by second, the latest last.
    pub tokens: Vec<u64>,
    /// Requests in flight, second by second.
    pub under_way: Vec<u64>,
    /// Failures by class, the most frequent first.
    pub errors: Vec<(String, u64)>,
    /// How the client fares.
    pub client: ClientView,
    /// What the server says of itself, where it does.
    pub server: Option<ServerView>,
}

/// A latency, lately and over the whole run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LatencyView {
    /// Its name.
    pub name: String,
    /// Of the requests that ended in the last seconds.
    pub now: Percentiles,
    /// Of all that ended.
    pub so_far: Percentiles,
}

/// Percentiles in milliseconds; infinite where they lie beyond the time limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Percentiles {
    /// Values.
    pub n: u64,
    /// Half are below.
    pub p50: Option<f64>,
    /// Nine in ten are below.
    pub p90: Option<f64>,
    /// 95 in a hundred are below.
    pub p95: Option<f64>,
    /// 99 in a hundred are below.
    pub p99: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

/// How the client fares, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClientView {
    /// Sends after their instant.
    pub slip: Percentiles,
    /// The same, lately.
    pub slip_now: Percentiles,
    /// Loops of the workers that were called late.
    pub lag: Percentiles,
    /// The same, lately.
    pub lag_now: Percentiles,
    /// Requests whose record was lost.
    pub lost: u64,
}

/// What the server says of itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerView {
    /// Requests in its batch.
    pub running: Option<f64>,
    /// Requests in its queue.
    pub waiting: Option<f64>,
    /// Share of its KV cache in use, 0 to 1; of several the fullest.
    pub kv: Option<f64>,
    /// Queue, look by look.
    pub queue: Vec<u64>,
    /// KV cache in percent, look by look.
    pub kvs: Vec<u64>,
    /// GPUs in use, 0 to 1, on average.
    pub gpu: Option<f64>,
    /// Power of all GPUs in watts.
    pub watts: Option<f64>,
    /// Endpoints that did not answer the last time, of how many.
    pub silent: (usize, usize),
}

/// What a run is a part of.
#[derive(Debug, Clone, PartialEq)]
pub enum CampaignView {
    /// Points at rising load.
    Sweep(LiveSweepView),
    /// Blocks of runs.
    Comparison(ComparisonView),
}

/// A sweep so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveSweepView {
    /// What is raised: `req/s`, `users`.
    pub unit: String,
    /// The latency that is drawn: `TTFT`.
    pub latency: String,
    /// The limit on it in milliseconds, and its words.
    pub limit: Option<(f64, String)>,
    /// Points so far, in the order in which they were measured.
    pub points: Vec<LivePointView>,
    /// What is known of the answer, in words.
    pub answer: String,
    /// How long it still takes, in words; empty if unknown.
    pub left: String,
}

/// A point of a sweep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LivePointView {
    /// Its number.
    pub number: u32,
    /// Its load.
    pub level: f64,
    /// What it was for.
    pub purpose: String,
    /// Median of the latency that is drawn, in milliseconds.
    pub p50: Option<f64>,
    /// Its 99th percentile.
    pub p99: Option<f64>,
    /// Answers per second.
    pub ok_per_s: Option<f64>,
    /// Output tokens per second.
    pub tokens_per_s: Option<f64>,
    /// Whether it keeps the SLO.
    pub standing: StatusColor,
    /// The same in words.
    pub words: String,
    /// Whether it is drawn.
    pub is_on_curve: bool,
}

/// How good something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatusColor {
    /// It keeps what was promised, or is better.
    Good,
    /// It does not, or is worse.
    Bad,
    /// Unknown.
    #[default]
    Open,
}

/// A comparison so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ComparisonView {
    /// Who is compared, the reference first.
    pub sides: Vec<String>,
    /// Blocks that count.
    pub blocks: u32,
    /// Blocks at most.
    pub most: Option<u32>,
    /// Seconds to the next look, about.
    pub left_s: Option<f64>,
    /// Levels with what differs so far.
    pub levels: Vec<LevelView>,
}

/// What differs between a candidate and the reference, at one load.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LevelView {
    /// Who, against whom, and at which load.
    pub title: String,
    /// Figure by figure.
    pub differences: Vec<DifferenceView>,
}

/// One figure of two sides.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DifferenceView {
    /// Its name.
    pub figure: String,
    /// The reference's value.
    pub reference: String,
    /// The candidate's.
    pub candidate: String,
    /// What changes, with its interval.
    pub change: String,
    /// What can be said, in words.
    pub words: String,
    /// The same.
    pub standing: StatusColor,
}
