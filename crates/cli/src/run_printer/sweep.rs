//! What is seen while a sweep goes on: the growing curve on a screen of its own, or drawn again
//! after each point; elsewhere a line for each.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use goodput_campaign::sweep::SweepState;
use goodput_lab::{SweepProgress, SweepSoFar, time_left_text};
use goodput_record::FolderError;

use super::RunPrinter;
use crate::screen::Progress;
use crate::{output, report};

/// Lines of what was drawn last, to be drawn over.
#[derive(Debug, Default)]
pub(super) struct Drawn(AtomicUsize);

impl Drawn {
    /// Something stands below it now: it is not drawn over any more.
    pub(super) fn stop_redrawing(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn draw(&self, block: &str) {
        let up = self.0.swap(block.lines().count(), Ordering::Relaxed);
        let mut err = std::io::stderr().lock();
        // A terminal that went away must not end the sweep.
        let _ =
            if up > 0 { write!(err, "\r\x1b[{up}A\x1b[J{block}") } else { write!(err, "{block}") };
        let _ = err.flush();
    }
}

impl RunPrinter {
    pub(super) fn show_sweep(&self, progress: &SweepProgress<'_>) {
        match *progress {
            SweepProgress::ConfigurationFailed(failed) => {
                self.print_line(&format!("warning: {}", failed.lines()));
            }
            SweepProgress::Saved(folder, summary) => {
                self.warn_on_error(folder.write_report(&goodput_report::sweep_text(
                    summary,
                    goodput_report::Detail::Full,
                )));
                if summary.sweep.state != SweepState::Unfinished {
                    report::write_sweep_page(folder.path(), summary);
                }
            }
            SweepProgress::AllSaved(folder, sweeps) => {
                self.warn_on_error(folder.write_report(&goodput_report::sweeps_text(
                    sweeps,
                    goodput_report::Detail::Full,
                )));
            }
            SweepProgress::Configuration { number, of, name } if !self.notes.quiet => {
                let name = goodput_report::escape_control(name);
                self.print_line(&format!("\nconfiguration {number} of {of}: {name}"));
            }
            SweepProgress::Estimated(estimate) if !self.notes.quiet => {
                output::print_note(&goodput_report::sweep_estimate(estimate));
            }
            SweepProgress::Points(view) => self.show_points(&view),
            SweepProgress::Configuration { .. } | SweepProgress::Estimated(_) => {}
        }
    }

    fn show_points(&self, view: &SweepSoFar<'_>) {
        let SweepSoFar { plan, points, answer, left, is_new } = *view;
        match (self.progress.get(), points.last().filter(|_| is_new)) {
            (Some(Progress::Screen(screen)), _) => screen.set_sweep(points, plan, answer, left),
            (Some(Progress::Lines), Some(last)) => {
                // Near the end the search decides how many there are.
                let known = left.filter(|left| left.points > 1);
                let of = known.map(|left| last.point.ask.number + left.points);
                output::print_note(&goodput_report::sweep_point_line(last, of));
            }
            (Some(Progress::Line), Some(_)) => {
                let left = left.map(|left| time_left_text((left.seconds, left.most_seconds)));
                let left = left.unwrap_or_default();
                self.drawn.draw(&goodput_report::sweep_progress_page(points, plan, answer, &left));
            }
            _ => {}
        }
    }

    /// A page that could not be written must not end what it is about.
    pub(super) fn warn_on_error(&self, outcome: Result<(), FolderError>) {
        if let Err(error) = outcome {
            self.print_line(&format!("warning: {error}"));
        }
    }
}
