//! [`RunPrinter`]: runs as they go on, on stderr, on the screen and on the metrics page, and the pages
//! that lie in their folders.

mod compare;
mod sweep;

use std::any::Any;
use std::path::Path;
use std::sync::OnceLock;

use goodput_lab::{CompareProgress, Event, Observer, RunSink, SweepProgress, UpcomingRun};
use goodput_model::{Mode, Plan, Rate};
use goodput_monitor::ProgressLine;
use goodput_monitor::metrics::Listen;
use goodput_stats::Summary;

use crate::printer::Printer;
use crate::screen::Progress;
use crate::{output, report};
use sweep::Drawn;

/// Shows runs, and puts pages into their folders.
#[derive(Debug)]
pub(crate) struct RunPrinter {
    notes: Printer,
    /// Where runs are shown while they go on.
    pub(crate) listen: OnceLock<Listen>,
    /// How runs show how far they are.
    pub(crate) progress: OnceLock<Progress>,
    /// The curve of a sweep.
    drawn: Drawn,
}

impl RunPrinter {
    pub(crate) fn new(quiet: bool) -> Self {
        let (listen, progress) = (OnceLock::new(), OnceLock::new());
        Self { notes: Printer::new(quiet), listen, progress, drawn: Drawn::default() }
    }

    fn print_line(&self, line: &str) {
        output::print_note(line);
        self.drawn.stop_redrawing();
    }
}

impl Observer for RunPrinter {
    fn event(&self, event: Event) {
        if self.notes.print(event) {
            self.drawn.stop_redrawing();
        }
    }

    /// How long a run at a fixed rate takes to be sure. Said once the target has answered: before an error
    /// it would be noise.
    fn prepared(&self, plan: &Plan) {
        let has_sessions = plan.workload.classes.iter().any(|class| class.session.is_some());
        if let Mode::Open { rate: Rate::PerSecond(rate), .. } = plan.load.mode
            && !self.notes.quiet
            && !has_sessions
        {
            let goals = goodput_stats::watch_goals(plan);
            output::print_note(&goodput_report::samples_needed_text(&goals, rate));
        }
    }

    fn follow(&self, run: &UpcomingRun<'_>) -> Vec<Box<dyn RunSink>> {
        let mut sinks: Vec<Box<dyn RunSink>> = Vec::new();
        if let Some(listen) = self.listen.get() {
            sinks.push(Box::new(listen.follow(run)));
        }
        match self.progress.get() {
            None | Some(Progress::None) => {}
            Some(_) if run.is_silent => {}
            Some(progress) => match progress.screen().and_then(|screen| screen.follow(run)) {
                Some(following) => sinks.push(Box::new(following)),
                None => sinks.push(Box::new(ProgressLine::new(run, progress.rewrites_line()))),
            },
        }
        sinks
    }

    fn saved(&self, folder: &Path, summary: &Summary) {
        report::write_run_page(folder, summary);
    }

    fn comparison(&self, progress: &CompareProgress<'_>) {
        self.show_comparison(progress);
    }

    fn sweep(&self, progress: &SweepProgress<'_>) {
        self.show_sweep(progress);
    }

    fn lend_terminal(&self) -> Box<dyn Any> {
        self.notes.lend_terminal()
    }
}
