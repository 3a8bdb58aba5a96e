//! Do stamps and clocks agree with each other?

use goodput_model::{Caveat, CaveatCode, Nanos, RequestRecord, Severity};

use super::Evidence;

/// Stamps of the kernel and of the process may differ by so much.
const SLACK: Nanos = Nanos::from_millis(1);
/// The wall clock may be stepped by so much, or slewed by so much of the time: NTP slews by half.
const STEP_MS: f64 = 50.0;
const SLEW: f64 = 0.001;
/// Requests with impossible stamps above this share spoil every percentile.
const SPOILED: f64 = 0.01;

/// Requests whose stamps stand in an impossible order, by kind; each request counts once a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Contradictions {
    /// The first token came before the first byte was sent.
    pub(crate) early_token: u64,
    /// A chunk came before the one before it.
    pub(crate) chunks_back: u64,
    /// The end lies before the scheduled instant, or before the last token.
    pub(crate) early_end: u64,
    /// Requests with any of these.
    pub(crate) requests: u64,
    /// Requests looked at.
    pub(crate) of: u64,
}

impl Contradictions {
    pub(super) fn add(&mut self, record: &RequestRecord) {
        let stamps = &record.exchange.stamps;
        let is_before = |at: Nanos, earliest: Nanos| at + SLACK < earliest;
        let early_token = stamps
            .first_token
            .zip(stamps.sent_first)
            .is_some_and(|(token, sent)| is_before(token, sent));
        let mut latest = Nanos::ZERO;
        let chunks_back = record.exchange.chunks.iter().any(|chunk| {
            let is_back = is_before(chunk.at, latest);
            latest = latest.max(chunk.at);
            is_back
        });
        // A request that was never let go has no end to speak of.
        let early_end = stamps.sent_first.is_some()
            && (is_before(stamps.ended, record.scheduled)
                || stamps.last_token.is_some_and(|token| is_before(stamps.ended, token)));
        self.early_token += u64::from(early_token);
        self.chunks_back += u64::from(chunks_back);
        self.early_end += u64::from(early_end);
        self.requests += u64::from(early_token || chunks_back || early_end);
        self.of += 1;
    }
}

/// Impossible stamps, or a wall clock that was set during the run: the kernel stamps arrivals by it.
pub(super) fn check_clocks(e: &Evidence<'_>) -> Option<Caveat> {
    let found = e.tally.contradictions;
    if found.requests > 0 {
        let share = found.requests as f64 / found.of.max(1) as f64;
        let severity = if share > SPOILED { Severity::Void } else { Severity::Warn };
        let message = format!(
            "{} of {} requests have timestamps in an impossible order (first token before the \
             request was sent: {}, chunks going back in time: {}, end before the start: {})",
            found.requests, found.of, found.early_token, found.chunks_back, found.early_end
        );
        return Some(Caveat::new(CaveatCode::ClockSuspicious, severity, message).advise(
            "the clock was set during the run or the log was changed: run again with a steady clock",
        ));
    }
    let step = e.run.clock_step_ms?;
    let limit = (SLEW * e.run_end_s * 1e3).max(STEP_MS);
    (step.abs() > limit).then(|| {
        let message = format!(
            "the wall clock moved by {step:.0} ms relative to the monotonic clock during the run, \
             above {limit:.0} ms: the kernel stamps arrivals by the wall clock"
        );
        let advice =
            "let NTP settle before the run (`chronyc tracking`), and do not set the clock during \
             it";
        Caveat::new(CaveatCode::ClockSuspicious, Severity::Warn, message).advise(advice)
    })
}
