//! How the run went over time: where its window begins, whether it was steady, whether the server
//! kept up.

use goodput_model::{Load, LoadExtent, Mode, Nanos, Rate};

use crate::saturation;
use crate::series::SeriesTally;
use crate::steady;
use crate::summary::{Cut, Saturation, Steadiness};
use crate::window::{Window, WindowKind};

/// What the series say.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    /// The window, without what an automatic warm-up cuts.
    pub(crate) window: Window,
    /// What that was, where it was asked for.
    pub(crate) cut: Option<Cut>,
    /// None if the load was not meant to be steady.
    pub(crate) steadiness: Option<Steadiness>,
    /// None if arrivals depend on answers, and below 30 s.
    pub(crate) saturation: Option<Saturation>,
}

/// A window by count begins just after an event and ends with one; one that was moved begins at an
/// instant, and its last event still belongs to it.
fn move_window(window: Window, start: Nanos) -> Window {
    let end = if window.kind == WindowKind::Count { window.end + Nanos(1) } else { window.end };
    Window { start, end, kind: WindowKind::Time }
}

impl Course {
    /// A run without a completed request has no course.
    pub(crate) fn clear_unless(&mut self, has_answers: bool) {
        if !has_answers {
            (self.steadiness, self.saturation) = (None, None);
        }
    }

    /// A window of fewer successive answers than the minimum shows no state, whatever was not seen
    /// in it.
    pub(crate) fn clear_steadiness_if_short(&mut self, e2e_p99_ms: Option<f64>) {
        let least = e2e_p99_ms.map_or(0.0, |ms| steady::LEAST_ANSWERS * ms / 1e3);
        if let Some(steadiness) = self.steadiness.as_mut().filter(|_| self.window.seconds() < least)
        {
            steadiness.mark_unseen();
        }
    }

    /// Whether an automatic warm-up left something out.
    pub(crate) fn has_cut(&self) -> bool {
        self.cut_s() > 0.0
    }

    /// How much it left out.
    pub(crate) fn cut_s(&self) -> f64 {
        self.cut.as_ref().map_or(0.0, |cut| cut.cut_s)
    }

    pub(crate) fn new(series: &SeriesTally, load: &Load, window: Window) -> Self {
        let is_steady_load = matches!(
            load.mode,
            Mode::Open { rate: Rate::PerSecond(_), .. } | Mode::Closed { pause_first: false, .. }
        );
        if window.is_makespan() || !is_steady_load {
            return Self { window, cut: None, steadiness: None, saturation: None };
        }
        let is_automatic = load.warmup == LoadExtent::Auto;
        let cut = is_automatic
            .then(|| steady::find_cut(&series.series_between(window.start, window.end)));
        let start =
            window.start + cut.as_ref().map_or(Nanos::ZERO, |cut| Nanos::from_secs_f64(cut.cut_s));
        let window = if start > window.start { move_window(window, start) } else { window };
        let rest = series.series_between(window.start, window.end);
        let is_open = matches!(load.mode, Mode::Open { max_concurrency: None, .. });
        Self {
            window,
            cut,
            steadiness: Some(steady::judge_steadiness(&rest)),
            saturation: is_open.then(|| saturation::judge_saturation(&rest)).flatten(),
        }
    }
}
