//! What is seen while a sweep goes on: the growing curve on a screen of its own, or drawn anew after
//! each point; elsewhere a line for each.

use std::io::Write;

use goodput_campaign::sweep::{Estimate, Goodput, PointSummary, SweepPlan};

use crate::output;
use crate::screen::Progress;

/// Shows how far a sweep is.
pub(super) struct Screen {
    progress: Progress,
    /// Lines of what was drawn last, to be drawn over.
    lines: usize,
}

impl Screen {
    pub(super) fn new(progress: &Progress) -> Self {
        Self { progress: progress.clone(), lines: 0 }
    }

    fn is_quiet(&self) -> bool {
        matches!(self.progress, Progress::None)
    }

    /// How long it will take.
    pub(super) fn before(&self, estimate: &Estimate) {
        if !self.is_quiet() {
            output::note(&goodput_report::sweep_before(estimate));
        }
    }

    /// The points that are there before the first.
    pub(super) fn begin(&self, points: &[PointSummary], plan: &SweepPlan) {
        if let Progress::Screen(screen) = &self.progress {
            screen.sweep(points, plan, None, None);
        }
    }

    /// After a point.
    pub(super) fn point(
        &mut self,
        points: &[PointSummary],
        plan: &SweepPlan,
        answer: Option<&Goodput>,
        left: Option<&Estimate>,
    ) {
        let Some(last) = points.last() else { return };
        match &self.progress {
            Progress::None => return,
            Progress::Line => {}
            Progress::Lines => {
                let of = left.map(|left| last.point.ask.number + left.points);
                return output::note(&goodput_report::sweep_step(last, of));
            }
            Progress::Screen(screen) => return screen.sweep(points, plan, answer, left),
        }
        let left_s = left.map(|left| left.seconds);
        let block = goodput_report::sweep_live(points, plan, answer, left_s);
        let up = std::mem::replace(&mut self.lines, block.lines().count());
        let mut err = std::io::stderr().lock();
        // A terminal that went away must not end the sweep.
        let _ =
            if up > 0 { write!(err, "\r\x1b[{up}A\x1b[J{block}") } else { write!(err, "{block}") };
        let _ = err.flush();
    }

    /// Something to know. What stands above it is not drawn over any more.
    pub(super) fn note(&mut self, line: &str) {
        if !self.is_quiet() {
            output::note(line);
            self.lines = 0;
        }
    }
}
