//! [`Printer`]: what the lab tells, on stderr, on the screen and on the metrics page.

mod compare;
mod sweep;

use std::any::Any;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use goodput_lab::{CompareProgress, Event, Observer, RunSink, RunView, SweepProgress};
use goodput_model::{Mode, Plan, Rate};
use goodput_monitor::ProgressLine;
use goodput_monitor::metrics::Listen;
use goodput_report::plain;
use goodput_stats::Summary;

use crate::screen::Progress;
use crate::{output, report, terminal, typed};
use sweep::Drawn;

/// Prints what happens. Warnings are printed even where notes are not wanted.
#[derive(Debug)]
pub(crate) struct Printer {
    quiet: bool,
    /// What was said, of what is said once.
    said: Mutex<BTreeSet<String>>,
    /// Where runs are shown while they go on.
    pub(crate) listen: OnceLock<Listen>,
    /// How runs show how far they are.
    pub(crate) progress: OnceLock<Progress>,
    /// The curve of a sweep.
    drawn: Drawn,
}

impl Printer {
    pub(crate) fn new(quiet: bool) -> Self {
        let (listen, progress) = (OnceLock::new(), OnceLock::new());
        Self { quiet, said: Mutex::default(), listen, progress, drawn: Drawn::default() }
    }

    fn say(&self, line: &str) {
        output::note(line);
        self.drawn.leave();
    }

    fn is_new(&self, line: &str) -> bool {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(line.to_owned())
    }

    /// Says which secret goes where, once, where a file chose it and not who typed the command. Not even
    /// `--quiet` keeps it back.
    fn say_whose_key(&self, variable: &str, host: &str) {
        if ["api_key_env", "vary"].into_iter().any(typed::is_typed) {
            return;
        }
        let is_typed = typed::is_typed("target") || typed::is_typed("targets");
        let (kind, chosen) = if is_typed { ("note", "that variable") } else { ("warning", "both") };
        let line = format!("{kind}: the key in ${variable} goes to {host}: a file chose {chosen}");
        if self.is_new(&line) {
            output::note(&plain(&line));
        }
    }
}

impl Observer for Printer {
    fn event(&self, event: Event) {
        match event {
            Event::Note(_) | Event::NoteOnce(_) if self.quiet => {}
            Event::Note(text) | Event::Notice(text) => self.say(&plain(&text)),
            Event::NoteOnce(text) if self.is_new(&text) => self.say(&plain(&text)),
            Event::Warning(text) => self.say(&format!("warning: {}", plain(&text))),
            Event::KeyUsed { variable, host } => self.say_whose_key(&variable, &host),
            _ => {}
        }
    }

    /// How long a run at a fixed rate takes to be sure. Said once the target has answered: before an error
    /// it would be noise.
    fn prepared(&self, plan: &Plan) {
        let has_sessions = plan.workload.classes.iter().any(|class| class.session.is_some());
        if let Mode::Open { rate: Rate::PerSecond(rate), .. } = plan.load.mode
            && !self.quiet
            && !has_sessions
        {
            let goals = goodput_stats::goals(plan);
            output::note(&goodput_report::confidence_before(&goals, rate));
        }
    }

    fn follow(&self, run: &RunView<'_>) -> Vec<Box<dyn RunSink>> {
        let mut sinks: Vec<Box<dyn RunSink>> = Vec::new();
        if let Some(listen) = self.listen.get() {
            sinks.push(Box::new(listen.follow(run)));
        }
        match self.progress.get() {
            None | Some(Progress::None) => {}
            Some(_) if run.is_silent => {}
            Some(progress) => match progress.screen().and_then(|screen| screen.follow(run)) {
                Some(following) => sinks.push(Box::new(following)),
                None => sinks.push(Box::new(ProgressLine::new(run, progress.is_rewritten()))),
            },
        }
        sinks
    }

    fn saved(&self, folder: &Path, summary: &Summary) {
        report::keep_run(folder, summary);
    }

    fn sweep(&self, progress: &SweepProgress<'_>) {
        self.show_sweep(progress);
    }

    fn comparison(&self, progress: &CompareProgress<'_>) {
        self.show_comparison(progress);
    }

    fn lend_terminal(&self) -> Box<dyn Any> {
        Box::new(terminal::lend())
    }
}
