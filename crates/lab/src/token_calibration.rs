//! What our words cost in the target's tokens, and what the target adds to every prompt: settled
//! before the first request, and written into the plan.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use goodput_clock::{now, run_until, wait_until};
use goodput_model::random::{Domain, RandomStream};
use goodput_model::{
    CalibrationSource, ClassPlan, Message, Nanos, Plan, Planned, Request, Role, SourcePlan,
    TokenCalibration, TokenSource, WorkloadPlan,
};
use goodput_tokens::Tokenizer;
use goodput_wire::{Tokenizing, send_outside_load};
use goodput_workload::{CalibrateError, Calibrated, Lexicon, calibrate};

use crate::readiness::Ready;
use crate::{Failed, Observer};

/// Questions by which a server's `usage` may be asked for our words; each is a request of one
/// output token.
const USAGE_QUESTIONS: usize = 48;

/// Longest time for all questions together, those to `/tokenize` too.
const LIMIT: Duration = Duration::from_mins(1);

/// After so long the user is told what is asked.
const WORD_AFTER: Duration = Duration::from_secs(5);

/// How often the user's wish to stop is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// More tokens than any server adds to a prompt. Who counts more counts something else.
const MOST_ADDED: u32 = 16_384;

/// Tokens of the text that shows what a server adds.
const SHOWN: u32 = 64;

/// Whether any text of this workload is made of our words.
pub fn is_needed(plan: &WorkloadPlan) -> bool {
    let is_generated = |class: &ClassPlan| {
        let is_file = matches!(class.source, SourcePlan::Dataset(_) | SourcePlan::Frozen { .. });
        !is_file || class.prefix.is_some()
    };
    plan.classes.iter().any(is_generated)
}

/// Without a target: by the tokenizer, else by estimate.
pub fn calibrate_by_tokenizer(
    plan: &mut WorkloadPlan,
    tokenizer: Option<&Tokenizer>,
) -> Result<(), Failed> {
    if plan.calibration.is_none() && is_needed(plan) {
        let costs = tokenizer.map(count_by_tokenizer).transpose()?;
        plan.calibration = Some(to_calibration(CalibrationSource::Tokenizer, costs));
    }
    Ok(())
}

/// By the tokenizer or the target's own word.
pub fn calibrate_target(
    plan: &mut Plan,
    ready: &Ready,
    tokenizer: Option<&Tokenizer>,
    questions: &Questions<'_>,
) -> Result<(), Failed> {
    if plan.workload.calibration.is_some() || !is_needed(&plan.workload) {
        return Ok(());
    }
    let may_ask = plan.target.probe && questions.are_allowed;
    let mut target = CalibrationTarget::new(ready, plan.target.timeout, questions)?;
    let mut found = match tokenizer {
        Some(tokenizer) => {
            to_calibration(CalibrationSource::Tokenizer, Some(count_by_tokenizer(tokenizer)?))
        }
        None if may_ask => target.measure_costs(),
        None => to_calibration(CalibrationSource::Estimate, None),
    };
    if may_ask {
        target.measure_template(&mut found);
    }
    if may_ask && (questions.is_stopped)() {
        return Err(stopped_error());
    }
    plan.workload.calibration = Some(found);
    Ok(())
}

/// The user does not want to wait until the load can begin.
pub fn stopped_error() -> Failed {
    Failed::interrupted("stopped before the run: no load was sent")
}

/// Nothing was asked: one word is one token.
pub fn estimated_calibration() -> TokenCalibration {
    to_calibration(CalibrationSource::Estimate, None)
}

fn to_calibration(source: CalibrationSource, found: Option<Calibrated>) -> TokenCalibration {
    let (source, costs, template_tokens) = match found {
        // A tokenizer adds nothing; what it takes for the start of a text is the server's.
        Some(found) if source == CalibrationSource::Usage => (source, found.costs, found.overhead),
        Some(found) => (source, found.costs, 0),
        None => (CalibrationSource::Estimate, Lexicon::estimated_costs(), 0),
    };
    TokenCalibration { source, template_tokens, message_tokens: 0, costs }
}

fn count_by_tokenizer(tokenizer: &Tokenizer) -> Result<Calibrated, Failed> {
    let mut count = |text: &str| tokenizer.count(text);
    calibrate(&mut count, usize::MAX).map_err(|error| {
        Failed::usage(format!(
            "`{}` cannot tokenize the generated prompts: {error}",
            tokenizer.name()
        ))
        .hint("remove --tokenizer: goodput then asks the server for token counts")
    })
}

/// The server, asked outside of the run.
/// How the target may be asked.
pub struct Questions<'a> {
    /// Whether it may be asked at all.
    pub are_allowed: bool,
    /// Whether the user wants to stop.
    pub is_stopped: &'a dyn Fn() -> bool,
    /// Hears what is asked and why.
    pub observer: &'a dyn Observer,
}

struct CalibrationTarget<'a> {
    ready: &'a Ready,
    runtime: tokio::runtime::Runtime,
    tasks: tokio::task::LocalSet,
    /// When there has been enough of asking.
    end: Nanos,
    /// When the user is told of it, until that was done.
    word: Cell<Option<Nanos>>,
    /// For one answer.
    limit: Nanos,
    questions: &'a Questions<'a>,
}

impl<'a> CalibrationTarget<'a> {
    fn new(
        ready: &'a Ready,
        limit: Duration,
        questions: &'a Questions<'a>,
    ) -> Result<Self, Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failed::internal(error.to_string()))?;
        let begin = now();
        Ok(Self {
            ready,
            runtime,
            tasks: tokio::task::LocalSet::new(),
            end: begin + LIMIT.into(),
            word: Cell::new(Some(begin + WORD_AFTER.into())),
            limit: limit.into(),
            questions,
        })
    }

    /// One answer, if it comes within the limits, and before the user wants to stop.
    fn await_answer<T>(&self, question: impl Future<Output = T>) -> Result<T, String> {
        let limit = self.end.min(now() + self.limit);
        let waiting = async {
            let mut question = pin!(question);
            if let Some(word) = self.word.get().filter(|word| *word < limit) {
                if let Ok(answer) = run_until(self.wait_until(word), question.as_mut()).await {
                    return Some(answer);
                }
                if now() >= word {
                    self.word.set(None);
                    self.note(&format!(
                        "calibrating prompt lengths with the server, for up to {} s (--no-length-check skips this)",
                        LIMIT.as_secs()
                    ));
                }
            }
            run_until(self.wait_until(limit), question).await.ok()
        };
        let answer = self.tasks.block_on(&self.runtime, waiting);
        answer.ok_or_else(|| {
            if (self.questions.is_stopped)() {
                "stopped".to_owned()
            } else if now() >= self.end {
                format!("no result within {} s", LIMIT.as_secs())
            } else {
                format!("no answer within {} s", self.limit.as_secs())
            }
        })
    }

    /// Returns at an instant, or when the user wants to stop.
    async fn wait_until(&self, instant: Nanos) {
        while now() < instant && !(self.questions.is_stopped)() {
            wait_until(instant.min(now() + LOOK.into())).await;
        }
    }

    /// By `/tokenize`, else by `usage`; an estimate where neither tells.
    fn measure_costs(&mut self) -> TokenCalibration {
        let outcome = self.measure_by_tokenize().or_else(|first| {
            self.measure_by_usage()
                .map_err(|second| format!("by /tokenize: {first}; by usage: {second}"))
        });
        outcome.unwrap_or_else(|why| {
            self.note(&format!(
                "prompt lengths are approximate: the server does not report its token counts ({why}); use --tokenizer"
            ));
            estimated_calibration()
        })
    }

    fn measure_by_tokenize(&mut self) -> Result<TokenCalibration, String> {
        let mut tokenizing = Tokenizing::new(&self.ready.endpoint, &self.ready.model);
        let mut count = |text: &str| match self.await_answer(tokenizing.count(text))? {
            Ok(Some(count)) => Ok(count),
            Ok(None) => Err("it has none".to_owned()),
            Err(failure) => Err(format!("{}: {}", failure.class, failure.message)),
        };
        let found = calibrate(&mut count, usize::MAX).map_err(|error| error.to_string())?;
        Ok(to_calibration(CalibrationSource::Server, Some(found)))
    }

    fn measure_by_usage(&mut self) -> Result<TokenCalibration, String> {
        let mut asked = 0;
        let mut count = |text: &str| {
            asked += 1;
            self.prompt_tokens(&[Message::text(Role::User, text)])
        };
        let found = calibrate(&mut count, USAGE_QUESTIONS)
            .map_err(|error: CalibrateError<String>| error.to_string())?;
        if found.overhead > MOST_ADDED {
            let counted = found.overhead.saturating_add(1);
            return Err(format!("it reports {counted} tokens for a prompt of one word"));
        }
        self.note(&format!("prompt lengths calibrated with {asked} small requests"));
        Ok(to_calibration(CalibrationSource::Usage, Some(found)))
    }

    /// What the server adds to a prompt of one message, and to each further message.
    fn measure_template(&mut self, found: &mut TokenCalibration) {
        let Ok(lexicon) = Lexicon::from_costs(&found.costs) else { return };
        let text =
            |number| lexicon.generate_text(SHOWN, &mut RandomStream::new(0, Domain::Text, number));
        let one = Message::text(Role::User, text(1));
        let system = Message::text(Role::System, text(2));
        match self.prompt_tokens(std::slice::from_ref(&one)) {
            Ok(tokens) if tokens.saturating_sub(SHOWN) > MOST_ADDED => {
                found.template_tokens = 0;
                return self.note(&format!(
                    "the server reports {tokens} tokens for a prompt of {SHOWN}, which is impossible: assuming that it adds none"
                ));
            }
            Ok(tokens) => found.template_tokens = tokens.saturating_sub(SHOWN),
            Err(why) => {
                let line =
                    format!("cannot tell how many tokens the server adds to a prompt: {why}");
                return self.note(&line);
            }
        }
        // Templates without a system role refuse this; then there is nothing to know.
        if let Ok(tokens) = self.prompt_tokens(&[system, one]) {
            let known = found.template_tokens.saturating_add(2 * SHOWN);
            let added = tokens.saturating_sub(known);
            found.message_tokens = if added > MOST_ADDED { 0 } else { added };
        }
    }

    /// Prompt tokens by the server's usage.
    fn prompt_tokens(&self, messages: &[Message]) -> Result<u32, String> {
        let request = Request {
            messages: messages.to_vec(),
            ..Request::prompt("", Planned::new("length check", SHOWN, Some(1)))
        };
        let asking = send_outside_load(&self.ready.endpoint, &self.ready.dialect, &request);
        let exchange = self.await_answer(asking)?;
        match (exchange.input_tokens, exchange.failure) {
            (Some(count), _) if count.source == TokenSource::Usage => Ok(count.n),
            (_, Some(failure)) => Err(format!("{}: {}", failure.class, failure.message)),
            _ => Err("its answers have no `usage`".to_owned()),
        }
    }

    fn note(&self, line: &str) {
        self.questions.observer.note(line.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan_for;
    use crate::{Silent, readiness};

    fn questions(is_stopped: &dyn Fn() -> bool) -> Questions<'_> {
        Questions { are_allowed: true, is_stopped, observer: &Silent }
    }

    /// A simulated engine that takes 50 ms to answer.
    fn slow() -> (Plan, Ready) {
        let mut plan = plan_for("mock:ttft=50ms");
        let ready = readiness::wait_ready(&mut plan).unwrap();
        (plan, ready)
    }

    #[test]
    fn all_questions_have_one_limit_and_a_stop_ends_them() {
        let (plan, ready) = slow();
        let asking = questions(&|| false);
        let mut target = CalibrationTarget::new(&ready, plan.target.timeout, &asking).unwrap();
        // Fourteen questions take 700 ms at least.
        target.end = now() + Nanos::from_millis(200);
        assert_eq!(target.measure_by_usage().unwrap_err(), "no result within 60 s");
        let mut found = estimated_calibration();
        target.measure_template(&mut found);
        assert_eq!(found, estimated_calibration());
        let asking = questions(&|| true);
        let target = CalibrationTarget::new(&ready, plan.target.timeout, &asking).unwrap();
        let never = std::future::pending::<()>();
        assert_eq!(target.await_answer(never).unwrap_err(), "stopped");
    }
}
