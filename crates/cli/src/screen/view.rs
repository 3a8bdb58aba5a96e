//! A picture of the present instant, made of what is known.

use goodput_model::{Extent, Load, Nanos, Plan};
use goodput_monitor::{Offered, Phase, Run as RunView, View};
use goodput_report::{confidence_live, plain};

use super::keys::Keys;
use super::tally::Tally;
use super::{Run, Shown, lock};
use crate::listen::{self, Course, Stand};
use crate::output;
use crate::progress::sending;

/// What does not change during a run. Foreign text in it is harmless.
#[derive(Debug)]
pub(super) struct Facts {
    target: String,
    model: String,
    label: String,
    load: Load,
}

impl Facts {
    pub(super) fn new(run: &goodput_lab::RunView<'_>) -> Self {
        // The rest of a label is how long it may still take.
        let label = run.label.split(" · ").next().unwrap_or_default().trim();
        Self {
            target: plain(run.target),
            model: plain(run.model),
            label: plain(label),
            load: run.plan.load.clone(),
        }
    }
}

/// What changes, and is told by the collector.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) tally: Tally,
    pub(super) course: Course,
    /// The run's first instant on our clock, once something was seen of it.
    pub(super) epoch: Option<Nanos>,
    /// How long it took, once it is over.
    pub(super) took: Option<Nanos>,
    pub(super) is_over: bool,
}

impl Seen {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            tally: Tally::new(plan.target.stream),
            course: Course::new(&plan.load),
            epoch: None,
            took: None,
            is_over: false,
        }
    }
}

/// Everything at this instant.
pub(super) fn of(shown: &Shown, keys: &Keys, at: Nanos) -> View {
    let (run, campaign, traffic) = {
        let state = lock(&shown.state);
        (state.run.clone(), state.campaign.clone(), state.traffic.clone())
    };
    let (own, in_stead) = traffic.unzip();
    let title = run.as_ref().map_or_else(String::new, |run| {
        format!("goodput {} · {} · {}", shown.verb, run.facts.target, run.facts.model)
    });
    View {
        title: own.unwrap_or(title),
        pane: keys.pane,
        help: keys.help,
        colour: output::has_colour(),
        run: in_stead.or_else(|| run.map(|run| run.view(at, shown.interrupt.is_interrupted()))),
        campaign,
        notes: super::notes(),
    }
}

impl Run {
    fn view(&self, at: Nanos, is_stopped: bool) -> RunView {
        let snapshot = self.handle.live.of_all();
        let mut seen = lock(&self.seen);
        let since = seen.epoch.map_or(Nanos::ZERO, |epoch| at - epoch);
        let elapsed = seen.took.unwrap_or(since);
        seen.course.look(elapsed, snapshot.started);
        let phase = self.phase(&seen, elapsed, is_stopped);
        let rates = seen.tally.rates((elapsed, snapshot)).filter(|_| !seen.is_over);
        let (tokens, under_way) = seen.tally.history();
        let total_s = total(&self.facts.load);
        let done = done(&self.facts.load, total_s, elapsed.as_secs(), snapshot.started);
        let left_s = done.filter(|done| *done > 0.0).map(|done| match total_s {
            Some(total) => (total - elapsed.as_secs()).max(0.0),
            // By count: as fast as so far.
            None => elapsed.as_secs() / done * (1.0 - done),
        });
        RunView {
            label: self.facts.label.clone(),
            phase,
            elapsed_s: elapsed.as_secs(),
            total_s,
            done,
            left_s,
            offered: offered(&self.facts.load, elapsed),
            sent_per_s: rates.map(|rates| rates.sent),
            ok_per_s: rates.map(|rates| rates.ok),
            tokens_per_s: rates.map(|rates| rates.tokens),
            in_flight: snapshot.in_flight(),
            sent: snapshot.started,
            ok: snapshot.ok,
            failed: snapshot.failed,
            confidence: confidence_live(
                &self.handle.look(),
                sending(&self.facts.load, &self.handle.control, elapsed),
            ),
            latencies: seen.tally.latencies(elapsed),
            tokens,
            under_way,
            errors: seen.tally.errors(),
            client: seen.tally.client(elapsed, snapshot.lost),
            server: seen.tally.server(),
        }
    }

    fn phase(&self, seen: &Seen, elapsed: Nanos, is_stopped: bool) -> Phase {
        let is_sent = self.handle.control.is_draining() || self.handle.control.is_stopping();
        match seen.course.stand(elapsed) {
            _ if seen.is_over => Phase::Ended,
            _ if is_sent && is_stopped => Phase::Stopping,
            _ if is_sent => Phase::Drain,
            _ if seen.epoch.is_none() => Phase::Starting,
            Stand::Warmup => Phase::Warmup,
            Stand::Measured => Phase::Measured,
            Stand::Cooldown => Phase::Cooldown,
            Stand::Drain | Stand::Ended => Phase::Drain,
        }
    }
}

fn offered(load: &Load, at: Nanos) -> Offered {
    match listen::offered(&load.mode, at) {
        listen::Offered::PerSecond(rate) => Offered::PerSecond(rate),
        listen::Offered::Users(users) => Offered::Users(users),
        listen::Offered::Otherwise => Offered::Otherwise,
    }
}

/// Seconds of load, where they are planned.
fn total(load: &Load) -> Option<f64> {
    let measured = load.duration?.as_secs_f64();
    let warmup = match load.warmup {
        Extent::Time(time) => time.as_secs_f64(),
        Extent::Requests(_) | Extent::Auto => 0.0,
    };
    load.num_requests.is_none().then_some(warmup + measured + load.cooldown.as_secs_f64())
}

/// Share of the load that was sent.
fn done(load: &Load, total_s: Option<f64>, elapsed_s: f64, started: u64) -> Option<f64> {
    let warmup = match load.warmup {
        Extent::Requests(requests) => requests,
        Extent::Time(_) | Extent::Auto => 0,
    };
    let share = match (total_s, load.num_requests) {
        (Some(total), _) => elapsed_s / total,
        (None, Some(requests)) => started as f64 / requests.saturating_add(warmup) as f64,
        (None, None) => return None,
    };
    share.is_finite().then(|| share.clamp(0.0, 1.0))
}
