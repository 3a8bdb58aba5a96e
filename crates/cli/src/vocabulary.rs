//! What our words cost in the target's tokens, and what the target adds to every prompt: settled
//! before the first request, and written into the plan.

use std::time::Duration;

use goodput_model::{
    Calibration, CalibrationSource, ClassPlan, Message, Plan, Planned, Request, Role, SourcePlan,
    TokenSource, WorkloadPlan,
};
use goodput_random::{Domain, Stream};
use goodput_tokens::Tokenizer;
use goodput_wire::{Tokenizing, ask};
use goodput_workload::{CalibrateError, Calibrated, Lexicon, calibrate};

use crate::error::Failed;
use crate::output;
use crate::readiness::Ready;

/// Questions by which a server's `usage` may be asked for our words; each is a request of one
/// output token.
const USAGE_QUESTIONS: usize = 48;

/// Longest time for one of them.
const PATIENCE: Duration = Duration::from_mins(1);

/// Tokens of the text that shows what a server adds.
const SHOWN: u32 = 64;

/// Whether any text of this workload is made of our words.
pub(crate) fn is_needed(plan: &WorkloadPlan) -> bool {
    let is_generated = |class: &ClassPlan| {
        let is_file = matches!(class.source, SourcePlan::Dataset(_) | SourcePlan::Frozen { .. });
        !is_file || class.prefix.is_some()
    };
    plan.classes.iter().any(is_generated)
}

/// Without a target: by the tokenizer, else by estimate.
pub(crate) fn by_tokenizer(
    plan: &mut WorkloadPlan,
    tokenizer: Option<&Tokenizer>,
) -> Result<(), Failed> {
    if plan.calibration.is_none() && is_needed(plan) {
        let costs = tokenizer.map(counted_by).transpose()?;
        plan.calibration = Some(calibration(CalibrationSource::Tokenizer, costs));
    }
    Ok(())
}

/// By the tokenizer or the target's own word.
pub(crate) fn settle(
    plan: &mut Plan,
    ready: &Ready,
    tokenizer: Option<&Tokenizer>,
    (may_ask, quiet): (bool, bool),
) -> Result<(), Failed> {
    if plan.workload.calibration.is_some() || !is_needed(&plan.workload) {
        return Ok(());
    }
    let mut target = Target::new(ready, quiet)?;
    let mut found = match tokenizer {
        Some(tokenizer) => calibration(CalibrationSource::Tokenizer, Some(counted_by(tokenizer)?)),
        None if plan.target.probe && may_ask => target.costs(),
        None => calibration(CalibrationSource::Estimate, None),
    };
    if plan.target.probe && may_ask {
        target.template(&mut found);
    }
    plan.workload.calibration = Some(found);
    Ok(())
}

/// Nothing was asked: one word is one token.
pub(crate) fn estimate() -> Calibration {
    calibration(CalibrationSource::Estimate, None)
}

fn calibration(source: CalibrationSource, found: Option<Calibrated>) -> Calibration {
    let (source, costs, template_tokens) = match found {
        // A tokenizer adds nothing; what it takes for the start of a text is the server's.
        Some(found) if source == CalibrationSource::Usage => (source, found.costs, found.overhead),
        Some(found) => (source, found.costs, 0),
        None => (CalibrationSource::Estimate, Lexicon::estimated_costs(), 0),
    };
    Calibration { source, template_tokens, message_tokens: 0, costs }
}

fn counted_by(tokenizer: &Tokenizer) -> Result<Calibrated, Failed> {
    let mut count = |text: &str| tokenizer.count(text);
    calibrate(&mut count, usize::MAX).map_err(|error| {
        Failed::usage(format!("`{}` cannot count our words: {error}", tokenizer.name()))
            .hint("leave --tokenizer out: the server is asked instead")
    })
}

/// The server, asked beside the run.
struct Target<'a> {
    ready: &'a Ready,
    runtime: tokio::runtime::Runtime,
    tasks: tokio::task::LocalSet,
    quiet: bool,
}

impl<'a> Target<'a> {
    fn new(ready: &'a Ready, quiet: bool) -> Result<Self, Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failed::internal(error.to_string()))?;
        Ok(Self { ready, runtime, tasks: tokio::task::LocalSet::new(), quiet })
    }

    /// By `/tokenize`, else by `usage`; an estimate where neither tells.
    fn costs(&mut self) -> Calibration {
        let outcome = self.by_tokenize().or_else(|first| {
            self.by_usage().map_err(|second| format!("by /tokenize: {first}; by usage: {second}"))
        });
        outcome.unwrap_or_else(|why| {
            self.say(&format!(
                "prompt lengths are about right only: the server does not tell how it counts ({why}); --tokenizer would"
            ));
            estimate()
        })
    }

    fn by_tokenize(&mut self) -> Result<Calibration, String> {
        let mut tokenizing = Tokenizing::new(&self.ready.endpoint, &self.ready.model);
        let mut count = |text: &str| {
            let answer = self.tasks.block_on(&self.runtime, tokenizing.count(text));
            match answer {
                Ok(Some(count)) => Ok(count),
                Ok(None) => Err("there is none".to_owned()),
                Err(failure) => Err(format!("{}: {}", failure.class, failure.message)),
            }
        };
        let found = calibrate(&mut count, usize::MAX).map_err(|error| error.to_string())?;
        Ok(calibration(CalibrationSource::Server, Some(found)))
    }

    fn by_usage(&mut self) -> Result<Calibration, String> {
        let mut asked = 0;
        let mut count = |text: &str| {
            asked += 1;
            self.prompt_tokens(&[Message::text(Role::User, text)])
        };
        let found = calibrate(&mut count, USAGE_QUESTIONS)
            .map_err(|error: CalibrateError<String>| error.to_string())?;
        self.say(&format!("prompt lengths settled by {asked} small requests"));
        Ok(calibration(CalibrationSource::Usage, Some(found)))
    }

    /// What the server adds to a prompt of one message, and to each further message.
    fn template(&mut self, found: &mut Calibration) {
        let Ok(lexicon) = Lexicon::from_costs(&found.costs) else { return };
        let text = |number| lexicon.text(SHOWN, &mut Stream::new(0, Domain::Text, number));
        let one = Message::text(Role::User, text(1));
        let system = Message::text(Role::System, text(2));
        match self.prompt_tokens(std::slice::from_ref(&one)) {
            Ok(tokens) => found.template_tokens = tokens.saturating_sub(SHOWN),
            Err(why) => {
                let line = format!("what the server adds to a prompt is unknown: {why}");
                return self.say(&line);
            }
        }
        // Templates without a system role refuse this; then there is nothing to know.
        if let Ok(tokens) = self.prompt_tokens(&[system, one]) {
            let known = found.template_tokens.saturating_add(2 * SHOWN);
            found.message_tokens = tokens.saturating_sub(known);
        }
    }

    /// Prompt tokens by the server's usage.
    fn prompt_tokens(&self, messages: &[Message]) -> Result<u32, String> {
        let request = Request {
            messages: messages.to_vec(),
            ..Request::prompt("", Planned::new("length check", SHOWN, Some(1)))
        };
        let asking = ask(&self.ready.endpoint, &self.ready.dialect, &request);
        let asking = async { tokio::time::timeout(PATIENCE, asking).await };
        let exchange = self
            .tasks
            .block_on(&self.runtime, asking)
            .map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))?;
        match (exchange.input_tokens, exchange.failure) {
            (Some(count), _) if count.source == TokenSource::Usage => Ok(count.n),
            (_, Some(failure)) => Err(format!("{}: {}", failure.class, failure.message)),
            _ => Err("its answers hold no usage".to_owned()),
        }
    }

    fn say(&self, line: &str) {
        if !self.quiet {
            output::note(&goodput_report::plain(line));
        }
    }
}
