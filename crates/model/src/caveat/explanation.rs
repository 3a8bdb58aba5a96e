//! What each caveat means in general: `docs/troubleshooting.md` is made from it.

use super::CaveatCode;

/// A caveat in general, apart from the evidence of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The caveat in a few words, as a heading has it.
    pub title: &'static str,
    /// What happened and why it matters, in one sentence.
    pub meaning: &'static str,
    /// What to do, in one sentence.
    pub remedy: &'static str,
}

impl CaveatCode {
    /// What this caveat means and what to do about it.
    #[expect(clippy::too_many_lines, reason = "a list")]
    pub fn explanation(self) -> Explanation {
        let (title, meaning, remedy) = match self {
            Self::NothingMeasured => (
                "Nothing was measured",
                "No request was scheduled in the window, or all of them failed, so there is no \
                 latency to report.",
                "Read the first error of the report, send one request by hand, and make the run \
                 longer.",
            ),
            Self::ScheduleSlip => (
                "The client sent late",
                "The 99th percentile of the delay between the scheduled instant and the send is \
                 above both 1 ms and 1 % of the median TTFT, so the server saw a different load \
                 than planned.",
                "Give the client more cores or a machine of its own, or offer less load.",
            ),
            Self::ClientStarved => (
                "The client kept fewer users busy than planned",
                "In a closed loop each user should always wait for an answer or think; the \
                 client could not keep up, so the load was lower than stated.",
                "Give the client more cores, raise `--workers`, or lower `--concurrency`.",
            ),
            Self::ClientStalled => (
                "The client stalled",
                "The whole process was stopped or had no processor for a while, so latencies \
                 that span that time are cut there.",
                "Look for swapping, a paused virtual machine, or a stopped process, and measure \
                 again.",
            ),
            Self::ClientLag => (
                "The client read late",
                "Bytes waited on this machine before the client read them; latencies include \
                 that delay unless the kernel stamps arrivals.",
                "Give the client more cores or offer less load.",
            ),
            Self::TokensMerged => (
                "Tokens arrived faster than the client read them",
                "Tokens that wait together share one arrival stamp, so ITL and gaps are wrong.",
                "Give the client more cores or offer fewer streams.",
            ),
            Self::CpuContended => (
                "Other programs took the client's processors",
                "A sending thread was ready to run and had to wait, so latencies may contain \
                 that wait.",
                "Stop the other programs, pin the client with `taskset`, or use another machine.",
            ),
            Self::CpuCrowded => (
                "Other programs left hardly any processor idle",
                "The client may have waited for a processor even where no single wait was long.",
                "Stop the other programs or give the client cores of its own.",
            ),
            Self::ClientBusy => (
                "A sending thread is near its limit",
                "A worker used more than 70 % of a core; above that, its own queue adds to \
                 latencies.",
                "Raise `--workers` or offer less load.",
            ),
            Self::CpuThrottled => (
                "The container's CPU limit stopped the client",
                "The control group used up its quota and paused the process, so latencies \
                 contain the pauses.",
                "Raise the container's CPU limit or offer less load.",
            ),
            Self::CpuStolen => (
                "The hypervisor gave the processors to others",
                "More than 5 % of the processor time went to other virtual machines, so \
                 latencies contain pauses of this machine.",
                "Use a machine or instance type with dedicated processors.",
            ),
            Self::Canary => (
                "The instrument error is too large",
                "On a server of known timing inside this process, TTFT was wrong by more than 5 \
                 % of the median TTFT, and the results contain the same error.",
                "Give the client more cores or offer less load.",
            ),
            Self::NotObserved => (
                "The client could not watch itself",
                "A source that shows trouble, such as `/proc`, could not be read, so trouble \
                 may have gone unseen.",
                "Run on Linux with `/proc` mounted, and leave `--canary` on.",
            ),
            Self::NearCeiling => (
                "The load is near what this client can send",
                "`goodput calibrate` found the rate at which this machine's error passes 1 ms, \
                 and this run used more than half of it, so the error may be higher than usual.",
                "Use more cores, several machines (`--shard`), or less load.",
            ),
            Self::NotPoisson => (
                "Arrivals are not Poisson",
                "The plan calls for Poisson arrivals and the gaps do not have that \
                 distribution, so bursts were missing or added.",
                "Give the client more cores, or remove `--max-concurrency`.",
            ),
            Self::LittlesLaw => (
                "The run's own figures contradict each other",
                "Arrival rate times mean latency must equal the number of requests in flight; \
                 it does not, so one of these figures is wrong.",
                "Measure again, and if it persists, report it as a bug with the run folder.",
            ),
            Self::ClientLimited => (
                "This machine ran out of descriptors or ports",
                "Requests failed or waited on this machine before they reached the server, so \
                 the figures describe this machine and not the server.",
                "Raise `ulimit -n`, widen the range of local ports, or keep connections open.",
            ),
            Self::ClockSuspicious => (
                "Clocks contradict each other",
                "A clock was set during the run, or timestamps are out of order, so latencies \
                 around that instant are wrong.",
                "Stop whatever sets the clock during runs, and measure again.",
            ),
            Self::NotDelivered => (
                "Scheduled requests were not sent",
                "The client dropped requests of the plan, so the server saw less load than stated.",
                "Read the reason in the report; usually the client needs more cores.",
            ),
            Self::RecordsLost => (
                "Records were lost",
                "The disk or the recorder could not keep up, and some requests are missing from \
                 the figures.",
                "Write to a faster disk with free space.",
            ),
            Self::OverSaturated => (
                "The server cannot keep up",
                "The queue grows during the whole run, so latencies depend on how long the run \
                 was and mean nothing beyond it.",
                "Offer less load; `goodput sweep` finds the highest load that the server keeps \
                 up with.",
            ),
            Self::QueueSaturated => (
                "The server's queue is full",
                "Requests wait in a queue that stopped growing only because it is full, so \
                 latencies show the queue's length.",
                "Offer less load, or lower the server's queue limit.",
            ),
            Self::NeverSteady => (
                "The run was never steady",
                "No part of the run is both long enough and even enough to measure, so an \
                 average describes no lasting state.",
                "Run longer with `--warmup auto`, and look at the timeline in the report.",
            ),
            Self::Drifting => (
                "A figure drifts",
                "A figure rises or falls over the window by more than chance, so its average \
                 depends on when the run ended.",
                "Run longer, warm up longer, or look for a leak or a filling cache on the server.",
            ),
            Self::LevelShift => (
                "A figure changes its level",
                "The server behaves differently before and after some instant, so one average \
                 stands for two states.",
                "Look at the timeline and the server's log for that instant.",
            ),
            Self::ColdStart => (
                "The beginning differs from the rest",
                "The first requests were slower or faster because of caches, compilation, or an \
                 empty queue, and they distort the figures of the rest.",
                "Warm up: `--warmup auto`, or a fixed time such as `--warmup 30s`.",
            ),
            Self::MinutesDiffer => (
                "Minutes of the run differ",
                "Some minutes are slower than others by more than chance, so a shorter run \
                 could give a different result.",
                "Look for other load on the server, and run longer.",
            ),
            Self::Errors => (
                "Requests failed",
                "Failures count as SLO misses and stay in the denominator, and the latencies of \
                 the other requests may look better than the service is.",
                "Read the failure classes in the report and the server's log.",
            ),
            Self::Capped => (
                "A limit held requests back",
                "`--max-concurrency` made requests wait on the client, so the load was not open.",
                "Raise or remove the limit, or offer less load.",
            ),
            Self::NotComplete => (
                "The run did not end as planned",
                "It was interrupted, killed, or ran into a limit, so the figures cover only \
                 what was measured.",
                "Run it again, or use `goodput sweep --resume` if it was part of a sweep.",
            ),
            Self::ServerReadsSlowly => (
                "The server is slow to read requests",
                "Requests waited in the socket before the server took them, and the wait counts \
                 as latency.",
                "Look at the server's accept loop and its gateway.",
            ),
            Self::PacketsLost => (
                "The network lost packets",
                "TCP sent data again, and latencies contain those delays.",
                "Measure from a machine nearer to the server, or fix the link.",
            ),
            Self::NagleDelay => (
                "Gaps of 40 ms",
                "The server's Nagle algorithm waits for delayed acknowledgments, and users see \
                 these gaps too.",
                "Set `TCP_NODELAY` on the server or its proxy.",
            ),
            Self::ConnectInTtft => (
                "TTFT includes connecting",
                "New connections were opened for measured requests, so TTFT includes DNS, TCP, \
                 and TLS.",
                "Keep connections open (`--connections reuse`), warm up, or report it as such.",
            ),
            Self::ChunksCoalesced => (
                "Tokens came several at a time",
                "Something between the engine and the client joins tokens, so ITL shows the \
                 joined pieces.",
                "Turn off buffering in proxies, or judge TPOT instead of ITL.",
            ),
            Self::NotStreamed => (
                "Answers were not streamed",
                "Streams were requested, but answers came in one piece, so there is no TTFT, \
                 TPOT, or ITL.",
                "Turn off buffering in the gateway, or use `--no-stream` and judge E2E.",
            ),
            Self::OutputLength => (
                "Answers have a different length than planned",
                "The server stopped early or late, so it did a different amount of work than \
                 planned.",
                "Use `--output-length exact` where the server supports it, or raise its token \
                 limit.",
            ),
            Self::InputLength => (
                "Prompts have a different length than planned",
                "The server counts different prompt lengths than planned, so it did a different \
                 amount of work.",
                "Name the model's tokenizer with `--tokenizer`, or leave the length check on.",
            ),
            Self::CacheDiffers => (
                "The cache hit rate differs from the plan",
                "The server took more or less from its prefix cache than `--cache` asks for, \
                 and the cost of prefill depends on it.",
                "Set `--cache-block` to the server's block size, and check that its cache is on \
                 and large enough.",
            ),
            Self::CacheUnplanned => (
                "Unplanned cache hits",
                "Prompts were found in the server's cache although the plan does not ask for \
                 that, so TTFT is better than for new prompts.",
                "Use another `--seed`, `--cache reset`, or a workload with more distinct prompts.",
            ),
            Self::CacheUnseen => (
                "Cache hits are unknown",
                "The server does not state how many prompt tokens came from its cache, so the \
                 state of the cache cannot be checked.",
                "Turn on the server's usage details or its metrics page.",
            ),
            Self::StructuredInvalid => (
                "Answers break their constraints",
                "Answers do not match the schema, expression, or choices that were requested, \
                 so the server did different work than planned.",
                "Check `--structured-dialect` and the server's guided decoding.",
            ),
            Self::BimodalMix => (
                "One percentile over very different classes",
                "The classes of the mix differ so much that their common percentile describes \
                 neither.",
                "Read the figures of each class in the report.",
            ),
            Self::Bimodal => (
                "A metric has two groups of values",
                "A single percentile hides that some requests are fast and others slow.",
                "Look at the distribution in the report, and find what separates the groups.",
            ),
            Self::SessionsCut => (
                "Sessions were cut short",
                "The run ended before later turns were sent, so long sessions are \
                 underrepresented.",
                "Run longer, or shorten the sessions.",
            ),
            Self::TokensByChunks => (
                "Chunks were counted as tokens",
                "The server sent no usage, so each chunk counts as one token; throughput \
                 and TPOT may be off.",
                "Turn on usage in streams, or give `--count-with TOKENIZER`.",
            ),
            Self::TokensUncounted => (
                "Some answers have no token count",
                "Throughput and TPOT leave these answers out, so they may be off.",
                "Turn on usage in the server, or give `--count-with TOKENIZER`.",
            ),
            Self::TokenCountsDisagree => (
                "Server and tokenizer count differently",
                "The two counts of the same text differ, so one of them belongs to another model.",
                "Check that `--tokenizer` or `--count-with` is that of the served model.",
            ),
            Self::TokenCountsImpossible => (
                "The server states impossible token counts",
                "It states more tokens than its answers can hold, so token figures are void.",
                "Fix the server's usage, or give `--count-with TOKENIZER`.",
            ),
            Self::SeveralTokensAChunk => (
                "Chunks hold several tokens",
                "The server sends more than one token at a time, as with speculative decoding, \
                 so ITL measures chunks and not tokens.",
                "Judge TPOT instead of ITL.",
            ),
            Self::NoWarmup => (
                "No warm-up",
                "The first measured request met a cold server, so the first seconds may differ.",
                "Add `--warmup auto` or `--warmup 30s`.",
            ),
            Self::ClosedLoop => (
                "Closed loop",
                "Each user waits for the answer, so a slow server gets less load and latencies \
                 look better than under independent arrivals.",
                "Use `--rate` to see what independent users see.",
            ),
            Self::ShortWindow => (
                "The window is short",
                "Queues and caches need time to settle, so the figures may describe only the \
                 beginning.",
                "Raise `--duration` or `--num-requests`.",
            ),
            Self::FewSamples => (
                "Few samples",
                "A percentile needs enough values beyond it; with fewer it is a guess, and its \
                 interval is wide.",
                "Run longer; the report names the number of requests.",
            ),
            Self::TailUnreliable => (
                "Tails are less certain than they look",
                "Requests wait for each other, so slow ones come in groups, and the tail rests \
                 on only a few such groups.",
                "Run longer, repeat with `--repeat`, or offer less load.",
            ),
            Self::RunsDiffer => (
                "Runs differ more than their own intervals allow",
                "The spread between runs is larger than the intervals within them, so something \
                 changes from run to run.",
                "Use the interval over runs, and look for what changes.",
            ),
            Self::CapacityChanged => (
                "Capacity changed during the sweep",
                "The server carries more or less than earlier in the sweep, so points cannot be \
                 joined.",
                "Look for other load, throttling, or a filling cache, and sweep again.",
            ),
            Self::NotMonotone => (
                "A higher load keeps the SLO and a lower one misses it",
                "Points contradict each other, by chance or because the server changed.",
                "Repeat the points, or use longer ones (`--certified`).",
            ),
            Self::RateLimited => (
                "The server limits the rate",
                "Above some rate it answers 429, so the result shows a setting and not its \
                 capacity.",
                "Raise the limit, or treat the result as the configured limit.",
            ),
            Self::NotComparable => (
                "The sides are not comparable",
                "They differ in something that should be the same, such as model, lengths, or \
                 cache.",
                "Make them equal, or pass `--anyway` and mention the difference with the result.",
            ),
            Self::ServerSettingsDiffer => (
                "The servers of a comparison are set up differently",
                "A setting that decides a server's speed differs between the sides, so a difference \
                 in figures may come from it and not from what is compared.",
                "Give all servers the same settings, or name the one that is compared with \
                 `--under-test NAME`.",
            ),
            Self::NotSameRequests => (
                "The sides got different requests",
                "The hashes of what was sent differ, so a difference may come from the requests.",
                "Measure again with the same seed and workload on both sides.",
            ),
            Self::DoubtfulRuns => (
                "Runs of the comparison are suspect or void",
                "The cause of these caveats may also cause the difference.",
                "Fix the most frequent caveat of these runs, and measure again.",
            ),
            Self::OutlierBlocks => (
                "A block is unlike the others",
                "One block has a large influence on the result, so the result may not hold in \
                 general.",
                "Look at what happened during it, or measure more blocks.",
            ),
            Self::FigureMissing => (
                "A figure is missing on one side",
                "Some runs lack it, so it was not tested.",
                "Run longer, so that every run has enough samples for it.",
            ),
            Self::NotInterleaved => (
                "The runs were not interleaved",
                "They were saved at different times, so a change in the machine looks like a \
                 difference between the sides.",
                "Compare live targets, which are measured in turn.",
            ),
            Self::BelowNoiseFloor => (
                "The margin is below the noise floor",
                "This rig differs from itself by more than the margin, so a smaller difference \
                 means nothing.",
                "Raise `--margin`, or make the rig quieter.",
            ),
            Self::ServerShared => (
                "Other clients use the server",
                "The server generated more tokens than this client received, so other load \
                 slowed these requests.",
                "Measure when the server is idle, or name only its own replicas with \
                 `--metrics-url`.",
            ),
            Self::ServerCountsDiffer => (
                "Client and server counts differ",
                "The client counts more tokens than the server, so one of the counts is wrong.",
                "Check that `--metrics-url` names every replica.",
            ),
            Self::ServerRestarted => (
                "The server restarted",
                "Its counters restarted during the run, so it had a cold phase.",
                "Read its log, and measure again.",
            ),
            Self::MetricsLost => (
                "Scrapes of the server failed",
                "Some readings of its metrics page are missing, so its peaks may have gone unseen.",
                "Raise `--metrics-interval`, or find out why the page is slow.",
            ),
            Self::Preemptions => (
                "Requests were preempted",
                "The server ran out of KV cache and put requests back; they are computed again, \
                 which adds latency.",
                "Offer less load, shorten contexts, or give the server more cache.",
            ),
            Self::KvPressure => (
                "The KV cache was full",
                "New requests wait for memory and not for compute, so the size of the cache \
                 decides their latency.",
                "Give the server more cache, or offer less load.",
            ),
            Self::QueueAtLimit => (
                "The batch was at its limit while requests waited",
                "The server's batch limit, not its hardware, decides latency.",
                "Raise the limit (`--max-num-seqs` in vLLM), and measure again.",
            ),
            Self::GatewayTime => (
                "TTFT is longer at the client than at the server",
                "The difference is spent in the network, a gateway, or the server's front end.",
                "Measure at the engine itself to find out which.",
            ),
            Self::GpuThrottled => (
                "A GPU was throttled",
                "Power or heat slowed it down, so a cooler or longer run gives a different result.",
                "Check cooling and power limits.",
            ),
            Self::GpuEnergyByPower => (
                "Energy is estimated from power",
                "The driver has no energy counter, so power samples were summed.",
                "Use a GPU or driver with an energy counter for exact figures.",
            ),
            Self::Profiled => (
                "The server was profiled",
                "Profiling slows a server down, so its figures are worse than in normal use.",
                "Use these figures to find causes, not as results.",
            ),
            Self::SeveralServers => (
                "Several servers answer at one metrics URL",
                "A load balancer stands in front of them, so counters jump between replicas.",
                "Name each replica with its own `--metrics-url`.",
            ),
            Self::GpusIdle => (
                "Some GPUs were idle",
                "Figures per GPU include GPUs that did no work, so they are too low.",
                "Name the GPUs of the server with `--gpu local:0,1` or `--gpus N`.",
            ),
            Self::ShadowShare => (
                "The candidate got only a share of the traffic",
                "Its latency is that of a lower load than the primary's.",
                "Raise `--share`, or compare at equal load with `goodput compare`.",
            ),
            Self::ShadowDrops => (
                "Live requests have no pair",
                "They were chosen for the candidate and could not be sent or compared, so the \
                 comparison leaves them out.",
                "Read the reasons in the report; usually the candidate is too slow.",
            ),
            Self::BlocksDepend => (
                "Neighboring blocks are alike",
                "Live traffic changes slowly, so blocks are not independent and intervals are \
                 too narrow.",
                "Run longer, or use longer blocks.",
            ),
            Self::ShadowEnded => (
                "The candidate stopped getting requests",
                "It failed too often or was switched off, so the comparison covers the time \
                 before.",
                "Read the reason in the report, fix the candidate, and start again.",
            ),
            Self::ShardMissing => (
                "Ranks left no record",
                "Part of the load is missing from the figures.",
                "Collect the missing folders and merge again.",
            ),
            Self::ShardCut => (
                "A rank's record ends early",
                "It died or lost its disk, so part of the load is missing after that instant.",
                "Check that machine, and measure again.",
            ),
            Self::ShardSick => (
                "A rank distorted its shard",
                "The client on that machine was late, busy, or stopped, so its part of the \
                 figures is wrong.",
                "Give that machine more room, or use more ranks.",
            ),
            Self::ShardsApart => (
                "Ranks did not start together",
                "The load was lower at the beginning or the end than planned.",
                "Start all ranks within the time of `--join-within`.",
            ),
            Self::ShardClock => (
                "A rank's wall clock is off",
                "Figures do not depend on it, but dates in that folder are wrong.",
                "Synchronize the clock (NTP).",
            ),
        };
        Explanation { title, meaning, remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caveat_has_a_title_of_its_own_and_two_sentences() {
        let mut titles: Vec<&str> = Vec::new();
        for code in CaveatCode::ALL {
            let Explanation { title, meaning, remedy } = code.explanation();
            assert!(!title.ends_with('.'), "{code}: {title}");
            assert!(meaning.ends_with('.') && remedy.ends_with('.'), "{code}");
            for sentence in [meaning, remedy] {
                assert!(!sentence.contains(". "), "{code}: {sentence}");
            }
            titles.push(title);
        }
        titles.sort_unstable();
        let count = titles.len();
        titles.dedup();
        assert_eq!(titles.len(), count);
    }
}
