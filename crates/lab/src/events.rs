//! What happens while runs are prepared and measured, told as it happens.

use std::any::Any;
use std::path::Path;

use goodput_campaign::compare::{Comparison, Design, Floor};
use goodput_campaign::sweep::{
    Goodput, PointSummary, SweepPlan, SweepSummary, Sweeps, TimeEstimate,
};
use goodput_clock::now;
use goodput_model::{GpuSample, LoopLag, Nanos, Plan, RequestRecord, Scrape};
use goodput_record::CampaignFolder;
use goodput_stats::Summary;

use crate::error::Failed;
use crate::handle::RunHandle;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Worth knowing while one waits. Foreign text in it is not made harmless yet.
    Note(String),
    /// A note that holds for all runs and is worth saying only once.
    NoteOnce(String),
    /// Decides what is compared with what: worth knowing whatever else is not.
    Notice(String),
    /// Changes what the result is worth, or what the user has to do.
    Warning(String),
    /// The key in an environment variable other than the default one goes to this host.
    KeyUsed {
        /// The variable's name.
        variable: String,
        /// Where its value goes.
        host: String,
    },
}

/// Hears what happens: a terminal, a screen, a metrics page, a test.
pub trait Observer: Send + Sync {
    /// Something happened. Called from any thread; it must not block.
    fn event(&self, event: Event);

    /// The target of a run, or of the first of several, answers, and its plan is settled.
    fn prepared(&self, plan: &Plan) {
        let _ = plan;
    }

    /// A run is about to begin. The sinks returned here get its requests as they end.
    fn follow(&self, run: &UpcomingRun<'_>) -> Vec<Box<dyn RunSink>> {
        let _ = run;
        Vec::new()
    }

    /// The folder of a run is complete: pages can be put there.
    fn saved(&self, folder: &Path, summary: &Summary) {
        let _ = (folder, summary);
    }

    /// A sweep came further: it can be shown, and pages can be put into its folder.
    fn sweep(&self, progress: &SweepProgress<'_>) {
        let _ = progress;
    }

    /// A comparison came further: it can be shown, and pages can be put into its folder.
    fn comparison(&self, progress: &CompareProgress<'_>) {
        let _ = progress;
    }

    /// A user's own command is about to run: the terminal is its own until the result is dropped.
    fn lend_terminal(&self) -> Box<dyn Any> {
        Box::new(())
    }

    /// A [`Event::Note`].
    fn note(&self, text: String) {
        self.event(Event::Note(text));
    }

    /// A [`Event::NoteOnce`].
    fn note_once(&self, text: &str) {
        self.event(Event::NoteOnce(text.to_owned()));
    }

    /// A [`Event::Notice`].
    fn notice(&self, text: String) {
        self.event(Event::Notice(text));
    }

    /// A [`Event::Warning`].
    fn warn(&self, text: String) {
        self.event(Event::Warning(text));
    }
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: Event) {}
}

/// How far a sweep is.
#[derive(Clone, Copy)]
pub enum SweepProgress<'a> {
    /// One of several configurations is next.
    Configuration {
        /// Its number, from 1.
        number: u32,
        /// How many there are.
        of: usize,
        /// What sets it apart.
        name: &'a str,
    },
    /// That configuration could not be swept to its end.
    ConfigurationFailed(&'a Failed),
    /// So long it takes in all.
    Estimated(&'a TimeEstimate),
    /// The points so far, after each and before the first.
    Points(SweepSoFar<'a>),
    /// The numbers of a sweep were written.
    Saved(&'a CampaignFolder, &'a SweepSummary),
    /// The numbers of several configurations were written.
    AllSaved(&'a CampaignFolder, &'a Sweeps),
}

/// What a sweep has found so far.
#[derive(Clone, Copy)]
pub struct SweepSoFar<'a> {
    /// What is asked of it.
    pub plan: &'a SweepPlan,
    /// Every point, in the order measured.
    pub points: &'a [PointSummary],
    /// Whether the last of them was measured just now.
    pub is_new: bool,
    /// What they say about the SLO.
    pub answer: Option<&'a Goodput>,
    /// What is left to do.
    pub left: Option<&'a TimeEstimate>,
}

/// How far a comparison is.
#[derive(Clone, Copy)]
pub enum CompareProgress<'a> {
    /// The noise floor of this rig: known already, or measured just now.
    Floor(&'a Floor),
    /// So long it takes.
    Estimated {
        /// What is measured.
        design: &'a Design,
        /// Seconds until it may end.
        next_look_s: f64,
        /// Seconds until it ends.
        most_s: f64,
    },
    /// A target could not be measured; it is waited for.
    TargetFailed(&'a Failed),
    /// The blocks so far, after each and before the first.
    Blocks {
        /// What they say.
        comparison: &'a Comparison,
        /// Seconds until it may end.
        left_s: f64,
        /// Whether the last of them was measured just now.
        is_new: bool,
    },
    /// The numbers were written.
    Saved(&'a CampaignFolder, &'a Comparison),
}

/// A run that is about to begin.
pub struct UpcomingRun<'a> {
    /// What it sends.
    pub plan: &'a Plan,
    /// Where to: the URL without secrets, or the simulated engine as it was asked for.
    pub target: &'a str,
    /// The model that answers.
    pub model: &'a str,
    /// Where it is written.
    pub folder: &'a Path,
    /// What it is called among others; empty if it is alone.
    pub label: &'a str,
    /// When everything that it is part of should end.
    pub end: Option<ExpectedEnd>,
    /// Another run shows the progress of both.
    pub is_silent: bool,
    /// Its counters, and how it is stopped.
    pub handle: &'a RunHandle,
}

/// When several runs should have ended, by what is known when one of them begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedEnd {
    /// If nothing has to be measured again.
    soonest: Nanos,
    /// If as much as before has to be.
    latest: Option<Nanos>,
}

impl ExpectedEnd {
    /// So many seconds from now.
    pub fn new(seconds: f64, most_seconds: Option<f64>) -> Self {
        let after = |seconds: f64| now() + Nanos::from_secs_f64(seconds.clamp(0.0, 1e9));
        Self { soonest: after(seconds), latest: most_seconds.map(after) }
    }

    /// Seconds that are left at this instant: at least, and at most where that is more.
    pub fn time_left_s(&self, at: Nanos) -> (f64, Option<f64>) {
        let until = |end: Nanos| end.0.saturating_sub(at.0) as f64 / 1e9;
        (until(self.soonest), self.latest.map(until))
    }

    /// In words, such as `about 3 min left`, `3 to 5 min left`, or `ends soon`.
    pub fn time_left_text(&self, at: Nanos) -> String {
        time_left_text(self.time_left_s(at))
    }
}

/// How long something still takes, in words.
pub fn time_left_text((least_s, most_s): (f64, Option<f64>)) -> String {
    let longest_s = most_s.unwrap_or(least_s);
    if longest_s < 1.0 {
        return "ends soon".to_owned();
    }
    match most_s.filter(|most_s| *most_s > 1.1 * least_s) {
        Some(most_s) if most_s >= 90.0 => {
            format!("{:.0} to {:.0} min left", (least_s / 60.0).floor(), (most_s / 60.0).ceil())
        }
        Some(most_s) => format!("{least_s:.0} to {most_s:.0} s left"),
        None => format!("{} left", goodput_stats::rough_duration(least_s)),
    }
}

/// Follows one run on the collector's thread, until it is dropped after the last answer.
pub trait RunSink: Send {
    /// The first request is about to be sent.
    fn begin(&mut self) {}

    /// A request has ended.
    fn record(&mut self, record: &RequestRecord);

    /// Called once a second.
    fn observe(&mut self, seen: &Observation<'_>) {
        let _ = seen;
    }
}

/// What was seen since the last time.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// Since the run began.
    pub at: Nanos,
    /// How late the workers' loops were called.
    pub beats: &'a [LoopLag],
    /// Pages of the server's metrics.
    pub scrapes: &'a [Scrape],
    /// Samples of its GPUs.
    pub gpus: &'a [GpuSample],
}
