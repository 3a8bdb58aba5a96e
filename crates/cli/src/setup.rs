//! [`Setup`]: a lab whose observer is this terminal.

use std::ops::Deref;
use std::sync::Arc;

use goodput_lab::Lab;
use goodput_lab::hooks::Hooks;

use crate::args::{EndpointArgs, OutputArgs};
use crate::error::Failed;
use crate::run_printer::RunPrinter;
use crate::screen::Progress;
use crate::typed_command::typed_command;
use crate::{build, listen, signals};

/// A lab whose observer is this terminal.
pub(crate) struct Setup {
    /// Neither progress nor notes.
    pub(crate) quiet: bool,
    pub(crate) lab: Lab,
    printer: Arc<RunPrinter>,
}

impl Deref for Setup {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl Setup {
    /// Ready to run.
    pub(crate) fn new(quiet: bool, may_ask: bool) -> Self {
        let printer = Arc::new(RunPrinter::new(quiet));
        let lab = Lab::new(printer.clone(), signals::interrupt_on_signals());
        Self {
            quiet,
            lab: Lab { may_ask, build: Some(build::facts()), command: typed_command(), ..lab },
            printer,
        }
    }

    /// Shows progress as the flags ask.
    pub(crate) fn with_progress(self, args: &OutputArgs, verb: &'static str) -> Self {
        let progress = Progress::new(args.screen, self.quiet, verb, &self.lab.interrupt);
        let _ = self.printer.progress.set(progress);
        self
    }

    /// Adds the hooks that run around every run.
    pub(crate) fn with_hooks(mut self, args: &EndpointArgs) -> Result<Self, Failed> {
        let args = &args.hooks;
        let (before, after) = (args.before_cmd.clone(), args.after_cmd.clone());
        self.lab.hooks = Hooks::new(before, after, args.profile, args.traces.as_deref())?;
        Ok(self)
    }

    /// Serves the metrics page of `--metrics-listen`, if requested. A dry run has none.
    pub(crate) fn with_metrics_page(self, args: &EndpointArgs) -> Result<Self, Failed> {
        if let Some(address) = args.hooks.metrics_listen {
            let _ = self.printer.listen.set(listen::start_metrics_page(address, self.quiet)?);
        }
        Ok(self)
    }
}
