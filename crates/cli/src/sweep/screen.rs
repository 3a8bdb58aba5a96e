//! What is seen while a sweep goes on: on a terminal the growing curve, drawn anew after each point;
//! elsewhere a line for each.

use std::io::{IsTerminal, Write};

use goodput_campaign::sweep::{Estimate, Goodput, PointSummary, SweepPlan};

use crate::output;

/// Shows how far a sweep is.
pub(super) struct Screen {
    quiet: bool,
    is_terminal: bool,
    /// Lines of what was drawn last, to be drawn over.
    lines: usize,
}

impl Screen {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet, is_terminal: std::io::stderr().is_terminal(), lines: 0 }
    }

    /// How long it will take.
    pub(super) fn before(&self, estimate: &Estimate) {
        if !self.quiet {
            output::note(&goodput_report::sweep_before(estimate));
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
        let Some(last) = points.last().filter(|_| !self.quiet) else { return };
        if !self.is_terminal {
            let of = left.map(|left| last.point.ask.number + left.points);
            output::note(&goodput_report::sweep_step(last, of));
            return;
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
        if !self.quiet {
            output::note(line);
            self.lines = 0;
        }
    }
}
