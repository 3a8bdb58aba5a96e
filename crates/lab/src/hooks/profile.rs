//! `--profile`: the server profiles itself while it is measured.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use goodput_clock::run_until;
use goodput_model::{ErrorClass, Failure, FailureStage};

use crate::error::Failed;
use crate::events::Observer;
use crate::interrupt::{Interrupt, Patience};
use crate::readiness::Ready;
use crate::token_calibration;

/// How long a server may take to begin.
const START_LIMIT: Duration = Duration::from_mins(1);

/// How long a server that did not begin may take to stop.
const UNDO_LIMIT: Duration = Duration::from_secs(5);

/// How long it may take to write what it found: vLLM speaks of ten minutes for a large model.
const STOP_LIMIT: Duration = Duration::from_mins(30);

/// After so long the user is told what is waited for.
const WORD_AFTER: Duration = Duration::from_secs(2);

/// How often it is asked whether the user still waits.
const LOOK: Duration = Duration::from_millis(50);

/// Begins; a server that cannot is not measured.
pub(super) fn start_profile(ready: &Ready, interrupt: &Interrupt) -> Result<(), Failed> {
    let shown = &ready.shown;
    let endpoint = Arc::clone(&ready.endpoint);
    if interrupt.is_interrupted() {
        return Err(token_calibration::stopped_error());
    }
    let started = wait_for_answer(
        goodput_wire::start_profile(&endpoint),
        START_LIMIT,
        &AnswerWaiter { interrupt, told: None },
    );
    if started.is_err() {
        // It may have begun all the same.
        let _ = wait_for_answer(
            goodput_wire::stop_profile(&endpoint),
            UNDO_LIMIT,
            &AnswerWaiter { interrupt, told: None },
        );
    }
    match started {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failed::usage(format!(
            "{shown} has no /start_profile, so --profile cannot start its profiler"
        ))
        .hint(
            "start vLLM with --profiler-config (older versions: VLLM_TORCH_PROFILER_DIR=DIR) or SGLang with SGLANG_TORCH_PROFILER_DIR=DIR; or remove --profile",
        )),
        Err(_) if interrupt.is_interrupted() => Err(token_calibration::stopped_error()),
        Err(failure) => Err(Failed::target(format!(
            "{shown} did not start its profiler: {}",
            profile_failure(&failure)
        ))
        .hint("see the server's log, or remove --profile")),
    }
}

/// Ends it. The run is over: what becomes of the profile is only said.
pub(super) fn stop_profile(ready: &Ready, observer: &dyn Observer, interrupt: &Interrupt) {
    let endpoint = Arc::clone(&ready.endpoint);
    let why = match wait_for_answer(
        goodput_wire::stop_profile(&endpoint),
        STOP_LIMIT,
        &AnswerWaiter { interrupt, told: Some(observer) },
    ) {
        Ok(true) => return,
        Ok(false) => "it has no /stop_profile".to_owned(),
        Err(failure) => profile_failure(&failure),
    };
    let line = format!("the server's profiler may still be running: {why}");
    observer.warn(line);
}

fn profile_failure(Failure { class, message, .. }: &Failure) -> String {
    if message.is_empty() { class.to_string() } else { format!("{class}: {message}") }
}

/// Who waits for an answer, and who is told that it takes long.
struct AnswerWaiter<'a> {
    interrupt: &'a Interrupt,
    told: Option<&'a dyn Observer>,
}

/// Waits for one answer, as long as the user does.
fn wait_for_answer(
    answer: impl Future<Output = Result<bool, Failure>>,
    limit: Duration,
    waiting: &AnswerWaiter<'_>,
) -> Result<bool, Failure> {
    let failed = |class, message: String| Failure { class, stage: FailureStage::Headers, message };
    let local = |error: std::io::Error| failed(ErrorClass::LocalLimit, error.to_string());
    let patience = Patience::new(waiting.interrupt).map_err(local)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(local)?;
    let impatient = async {
        while !patience.has_run_out() {
            tokio::time::sleep(LOOK).await;
        }
    };
    let word = async {
        tokio::time::sleep(WORD_AFTER).await;
        if let Some(observer) = waiting.told {
            observer.note("waiting for the server to write its profile".to_owned());
        }
        std::future::pending::<Infallible>().await
    };
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let over = async {
            tokio::select! {
                () = impatient => failed(ErrorClass::CutOff, "stopped".to_owned()),
                () = tokio::time::sleep(limit) => {
                    let seconds = limit.as_secs();
                    failed(ErrorClass::Timeout, format!("no answer within {seconds} s"))
                }
                never = word => match never {},
            }
        };
        run_until(over, answer).await.unwrap_or_else(Err)
    })
}
