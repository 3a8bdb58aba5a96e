//! What is seen while a comparison goes on: what the blocks say so far on a screen of its own; elsewhere
//! a line for each.

use goodput_campaign::compare::{CompareState, Comparison, Quantity};
use goodput_lab::CompareProgress;
use goodput_report::Detail;

use super::RunPrinter;
use crate::report;
use crate::screen::Progress;

impl RunPrinter {
    pub(super) fn show_comparison(&self, progress: &CompareProgress<'_>) {
        match *progress {
            CompareProgress::Saved(folder, comparison) => {
                self.warn_on_error(
                    folder.write_report(&goodput_report::compare_text(comparison, Detail::Full)),
                );
                if comparison.comparison.state != CompareState::Unfinished {
                    report::write_comparison_page(folder.path(), comparison);
                }
            }
            CompareProgress::Blocks { comparison, left_s, is_new } => {
                self.show_blocks(comparison, left_s, is_new);
            }
            _ if self.notes.quiet => {}
            CompareProgress::Floor(floor) => {
                self.print_line(&goodput_report::noise_floor_text(floor));
            }
            CompareProgress::Estimated { design, next_look_s, most_s } => {
                self.print_line(&goodput_report::compare_estimate(design, next_look_s, most_s));
            }
            CompareProgress::TargetFailed(failed) => {
                self.print_line(&format!("warning: {}", failed.lines()));
            }
        }
    }

    fn show_blocks(&self, comparison: &Comparison, left_s: f64, is_new: bool) {
        // The screen of a search shows its curve.
        let is_search = comparison.design.quantity == Quantity::Goodput;
        match self.progress.get().and_then(Progress::screen).filter(|_| !is_search) {
            Some(screen) => screen.set_comparison(comparison, left_s),
            None if is_new && !self.notes.quiet => {
                self.print_line(&goodput_report::compare_block_line(comparison, left_s));
            }
            None => {}
        }
    }
}
