//! What may make a number untrustworthy, and the verdict that follows.

mod explanation;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use explanation::Explanation;

/// How much a caveat matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; the numbers stand.
    Info,
    /// The numbers may be off: the verdict is `suspect`.
    Warn,
    /// The numbers are not what they seem: the verdict is `void`.
    Void,
}

/// Declares the enum, its names for scripts, and the list of all.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Everything that can make a number of a run untrustworthy.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum CaveatCode {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl CaveatCode {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name for scripts, such as `schedule_slip`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

codes! {
    /// No request was due, or all failed.
    NothingMeasured = "nothing_measured",
    /// The client sent later than planned.
    ScheduleSlip = "schedule_slip",
    /// A closed loop kept fewer users busy than asked.
    ClientStarved = "client_starved",
    /// The client stood still.
    ClientStalled = "client_stalled",
    /// The client read late.
    ClientLag = "client_lag",
    /// The client was called later than tokens came.
    TokensMerged = "tokens_merged",
    /// Others took the client's processors.
    CpuContended = "cpu_contended",
    /// Others left hardly any processor idle.
    CpuCrowded = "cpu_crowded",
    /// A worker is near its limit.
    ClientBusy = "client_busy",
    /// The container's limit stopped the client.
    CpuThrottled = "cpu_throttled",
    /// The hypervisor did.
    CpuStolen = "cpu_stolen",
    /// The instrument was off on a server of known timing.
    Canary = "canary",
    /// What would have told of trouble is missing.
    NotObserved = "not_observed",
    /// Close to what the client carries.
    NearCeiling = "near_ceiling",
    /// Arrivals should be Poisson and are not.
    NotPoisson = "not_poisson",
    /// Our own accounts do not agree.
    LittlesLaw = "littles_law",
    /// This machine ran out of descriptors or ports.
    ClientLimited = "client_limited",
    /// Stamps or clocks contradict each other.
    ClockSuspicious = "clock_suspicious",
    /// Due requests were not sent.
    NotDelivered = "not_delivered",
    /// Records were lost.
    RecordsLost = "records_lost",
    /// The server cannot keep up with what it is asked.
    OverSaturated = "overloaded",
    /// Its queue is full: latencies depend on how long the run was.
    QueueSaturated = "queue_saturated",
    /// No part of the run was steady.
    NeverSteady = "never_steady",
    /// A figure drifts over the window.
    Drifting = "drifting",
    /// A figure changes its level inside the window.
    LevelShift = "level_shift",
    /// The beginning of the window differs from the rest.
    ColdStart = "cold_start",
    /// Minutes of the run differ from each other.
    MinutesDiffer = "minutes_differ",
    /// Requests failed.
    Errors = "errors",
    /// A cap held requests back.
    Capped = "capped",
    /// The run did not end as planned.
    NotComplete = "not_complete",
    /// The server is slow to take requests in.
    ServerReadsSlowly = "server_reads_slowly",
    /// The network lost packets.
    PacketsLost = "packets_lost",
    /// Gaps of 40 ms: Nagle's algorithm against delayed acknowledgements.
    NagleDelay = "nagle_delay",
    /// Connections were opened inside TTFT.
    ConnectInTtft = "connect_in_ttft",
    /// Tokens came several at a time.
    ChunksCoalesced = "chunks_coalesced",
    /// Streams were asked for, and answers came in one piece.
    NotStreamed = "not_streamed",
    /// Answers are not as long as asked.
    OutputLength = "output_length",
    /// Prompts are not as long as planned.
    InputLength = "input_length",
    /// Other cache hits than asked for.
    CacheDiffers = "cache_differs",
    /// Cache hits that the workload did not plan.
    CacheUnplanned = "cache_unplanned",
    /// The server does not say what it took from its cache.
    CacheUnseen = "cache_unseen",
    /// Answers break their constraints.
    StructuredInvalid = "structured_invalid",
    /// One percentile over classes that differ by much.
    BimodalMix = "bimodal_mix",
    /// A metric has two groups of values.
    Bimodal = "bimodal",
    /// Requests of sessions were not sent anymore.
    SessionsCut = "sessions_cut",
    /// Chunks were taken for tokens.
    TokensByChunks = "tokens_by_chunks",
    /// Answers without a count of their tokens.
    TokensUncounted = "tokens_uncounted",
    /// Server and tokenizer count differently.
    TokenCountsDisagree = "token_counts_disagree",
    /// The server states more tokens than its answers can hold.
    TokenCountsImpossible = "token_counts_impossible",
    /// Chunks hold several tokens.
    SeveralTokensAChunk = "several_tokens_a_chunk",
    /// The load began at the first measured request.
    NoWarmup = "no_warmup",
    /// Every user waits for its answer.
    ClosedLoop = "closed_loop",
    /// The window is shorter than it should be.
    ShortWindow = "short_window",
    /// Percentiles rest on few samples.
    FewSamples = "few_samples",
    /// Requests depend on each other: tails are less sure than they look.
    TailUnreliable = "tail_unreliable",
    /// Runs differ by more than each of them admits.
    RunsDiffer = "runs_differ",
    /// The server carries more, or less, than earlier in the sweep.
    CapacityChanged = "capacity_changed",
    /// A lower load misses the SLO and a higher one keeps it.
    NotMonotone = "not_monotone",
    /// The server turns requests away above a rate.
    RateLimited = "rate_limited",
    /// The sides of a comparison differ in something that should be the same.
    NotComparable = "not_comparable",
    /// The servers of a comparison are set up differently.
    ServerSettingsDiffer = "server_settings_differ",
    /// The sides of a comparison were not sent the same.
    NotSameRequests = "not_same_requests",
    /// Runs of a comparison are suspect or void.
    DoubtfulRuns = "doubtful_runs",
    /// Some block of a comparison is not like the others.
    OutlierBlocks = "outlier_blocks",
    /// A figure that runs of one side lack left the test.
    FigureMissing = "figure_missing",
    /// The runs of a comparison were saved ones, not measured in turn.
    NotInterleaved = "not_interleaved",
    /// A margin is smaller than the rig's noise floor.
    BelowNoiseFloor = "below_noise_floor",
    /// The server generated more than this client received.
    ServerShared = "server_shared",
    /// The client counts more tokens than the server.
    ServerCountsDiffer = "server_counts_differ",
    /// The server began its totals again.
    ServerRestarted = "server_restarted",
    /// Questions for the server's figures had no answer.
    MetricsLost = "metrics_lost",
    /// Requests had to leave the batch.
    Preemptions = "preemptions",
    /// The KV cache was full.
    KvPressure = "kv_pressure",
    /// The batch was at its limit while others waited.
    QueueAtLimit = "queue_at_limit",
    /// TTFT is longer for the client than for the server.
    GatewayTime = "gateway_time",
    /// Power or heat held a GPU back.
    GpuThrottled = "gpu_throttled",
    /// Energy was summed up from looks at the power.
    GpuEnergyByPower = "gpu_energy_by_power",
    /// The server profiled itself while it was measured.
    Profiled = "profiled",
    /// Several servers answer at one URL of metrics.
    SeveralServers = "several_servers",
    /// Some GPUs did nothing.
    GpusIdle = "gpus_idle",
    /// A candidate carried only a share of the live requests.
    ShadowShare = "shadow_share",
    /// Live requests that were chosen have no pair.
    ShadowDrops = "shadow_drops",
    /// Neighboring blocks of live traffic are alike.
    BlocksDepend = "blocks_depend",
    /// The candidate was not asked anymore.
    ShadowEnded = "shadow_ended",
    /// Clients of a merged run left no record.
    ShardMissing = "shard_missing",
    /// The record of a client of a merged run ends early.
    ShardCut = "shard_cut",
    /// A client of a merged run distorted its part.
    ShardSick = "shard_sick",
    /// The clients of a merged run did not begin together.
    ShardsApart = "shards_apart",
    /// The wall clock of a client of a merged run is off.
    ShardClock = "shard_clock",
}

impl CaveatCode {
    /// Whether it speaks of the client that measured rather than of the server or the method: of one
    /// client of several it says that its part of the figures is in doubt.
    pub fn is_about_client(self) -> bool {
        matches!(
            self,
            Self::ScheduleSlip
                | Self::ClientStarved
                | Self::ClientStalled
                | Self::ClientLag
                | Self::TokensMerged
                | Self::CpuContended
                | Self::CpuCrowded
                | Self::ClientBusy
                | Self::CpuThrottled
                | Self::CpuStolen
                | Self::Canary
                | Self::NotObserved
                | Self::NearCeiling
                | Self::ClientLimited
                | Self::ClockSuspicious
                | Self::NotDelivered
                | Self::RecordsLost
        )
    }
}

impl fmt::Display for CaveatCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One reason to doubt a result, with its evidence and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caveat {
    /// What it is.
    pub code: CaveatCode,
    /// How much it matters.
    pub severity: Severity,
    /// The evidence, in a sentence or two.
    pub message: String,
    /// What to do about it, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Caveat {
    /// A caveat with its evidence.
    pub fn new(code: CaveatCode, severity: Severity, message: impl Into<String>) -> Self {
        Self { code, severity, message: message.into(), advice: None }
    }

    /// The first of the worst.
    pub fn worst(all: &[Self]) -> Option<&Self> {
        all.iter().min_by_key(|caveat| std::cmp::Reverse(caveat.severity))
    }

    /// The same with advice.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// Whether to believe a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing found that casts doubt on the numbers.
    #[default]
    Valid,
    /// Something may have distorted them.
    Suspect,
    /// They must not be used as a result.
    Void,
}

impl CaveatCode {
    /// Whether it says that a run alone is too short.
    pub fn is_about_length(self) -> bool {
        matches!(self, Self::ShortWindow | Self::FewSamples)
    }
}

impl Verdict {
    /// The worst caveat decides.
    pub fn from_caveats(caveats: &[Caveat]) -> Self {
        Self::from_worst(caveats.iter())
    }

    fn from_worst<'a>(caveats: impl Iterator<Item = &'a Caveat>) -> Self {
        match caveats.map(|caveat| caveat.severity).max() {
            None | Some(Severity::Info) => Self::Valid,
            Some(Severity::Warn) => Self::Suspect,
            Some(Severity::Void) => Self::Void,
        }
    }

    /// Of a run that is one of several: sweeps and comparisons judge by themselves whether they have
    /// enough requests.
    pub fn from_caveats_of_part(caveats: &[Caveat]) -> Self {
        Self::from_worst(caveats.iter().filter(|caveat| !caveat.code.is_about_length()))
    }

    /// The word in `summary.json` and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Suspect => "suspect",
            Self::Void => "void",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_caveat_decides() {
        let caveat = |severity| Caveat::new(CaveatCode::Canary, severity, "");
        assert_eq!(Verdict::from_caveats(&[]), Verdict::Valid);
        assert_eq!(Verdict::from_caveats(&[caveat(Severity::Info)]), Verdict::Valid);
        assert_eq!(
            Verdict::from_caveats(&[caveat(Severity::Void), caveat(Severity::Warn)]),
            Verdict::Void
        );
        let named = |severity, name: &str| Caveat::new(CaveatCode::Canary, severity, name);
        let (warn, void) = (Severity::Warn, Severity::Void);
        let all = [named(warn, "a"), named(void, "b"), named(void, "c")];
        assert_eq!(Caveat::worst(&all).map(|caveat| caveat.message.as_str()), Some("b"));
    }

    #[test]
    fn a_client_is_not_to_blame_for_its_server() {
        assert!(
            CaveatCode::CpuStolen.is_about_client() && CaveatCode::RecordsLost.is_about_client()
        );
        assert!(
            !CaveatCode::OverSaturated.is_about_client() && !CaveatCode::Errors.is_about_client()
        );
    }

    #[test]
    fn names_are_snake_case_and_unique() {
        let mut names: Vec<_> = CaveatCode::ALL.iter().map(|code| code.name()).collect();
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CaveatCode::ALL.len());
    }
}
