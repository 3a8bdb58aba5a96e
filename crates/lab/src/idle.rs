//! Waiting until a server has nothing left to do, between two measurements.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use goodput_clock::{now, run_until};
use goodput_model::{ErrorClass, Nanos, Plan};
use goodput_observe::QueueDepth;
use goodput_wire::{Endpoint, PageError, ProbeError, fetch_metrics_page, probe_endpoint};
use serde::Serialize;

use crate::readiness::Ready;

/// How long a page of metrics may take.
const PAGE_LIMIT: Duration = Duration::from_secs(1);

/// This many questions in a row without an answer are enough.
const TRIES: u32 = 3;

/// How often a server that should be empty is asked, and the user's wish to stop is looked for.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// A gauge that stands still for so long may be stale: some engines write it only when they work.
const STALE: Nanos = Nanos::from_millis(2_000);

/// Small requests that must be quick, one after the other.
const QUICK_ONES: u32 = 2;

/// What a small request may take longer than the first one of an idle server.
const SLACK: Duration = Duration::from_millis(50);

/// Whether and when a server had nothing left to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IdleState {
    /// Seconds until it was known, or given up.
    pub after_s: f64,
    /// Who says so.
    pub by: IdleSignal,
}

/// Who says that a server is empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleSignal {
    /// Its own gauges.
    Metrics,
    /// Small requests that were as quick as the first one.
    Probe,
    /// Not known, with the reason.
    Unknown(String),
}

impl IdleSignal {
    fn no_signal(why: &str) -> Self {
        Self::Unknown(why.to_owned())
    }
}

/// Waits until the server has no request left, the user wants to stop, or the server is gone.
pub fn wait_idle(
    plan: &Plan,
    ready: &Ready,
    limit: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> IdleState {
    let begin = now();
    let wait = IdleWait { ready, is_stopped, deadline: begin + limit.into() };
    let by = match (plan.target.probe, plan.observe.metrics) {
        (false, _) => IdleSignal::no_signal("--no-probe forbids requests to it"),
        (true, false) => wait.wait_by_probes(),
        (true, true) => wait.wait(),
    };
    IdleState { after_s: (now() - begin).as_secs(), by }
}

/// One wait for one server.
struct IdleWait<'a> {
    ready: &'a Ready,
    is_stopped: &'a dyn Fn() -> bool,
    deadline: Nanos,
}

impl IdleWait<'_> {
    fn wait(&self) -> IdleSignal {
        match self.read_queue() {
            Ok(Some(first)) => self.wait_by_metrics(first),
            Ok(None) | Err(_) => self.wait_by_probes(),
        }
    }

    fn is_stopped(&self) -> bool {
        (self.is_stopped)()
    }

    fn time_left(&self) -> Duration {
        (self.deadline - now()).into()
    }

    /// What the server says about its queue, if it says something in time.
    fn read_queue(&self) -> Result<Option<QueueDepth>, PageError> {
        let page = read_queue_depth(&self.ready.endpoint);
        let page = await_within(PAGE_LIMIT + ASK_AGAIN, || self.is_stopped(), page);
        page.unwrap_or(Err(PageError::Late(PAGE_LIMIT)))
    }

    /// One small request: how long it took, or whether connections are refused.
    fn probe(&self) -> Result<Nanos, bool> {
        let answer = probe_endpoint(&self.ready.endpoint, &self.ready.dialect);
        match await_within(self.time_left(), || self.is_stopped(), answer) {
            Some(Ok(probe)) => Ok(probe.took),
            Some(Err(ProbeError::Unreachable(failure))) => {
                Err(failure.class == ErrorClass::Connect)
            }
            Some(Err(ProbeError::Refused(_))) | None => Err(false),
        }
    }

    /// Until the gauges say so.
    fn wait_by_metrics(&self, first: QueueDepth) -> IdleSignal {
        let mut last = first;
        let mut moved = now();
        let mut failures = 0;
        while !last.is_empty() {
            if self.is_stopped() {
                return IdleSignal::no_signal("stopped by the user");
            }
            if now() >= self.deadline {
                let QueueDepth { running, waiting } = last;
                return IdleSignal::Unknown(format!(
                    "it reports {running} running and {waiting} waiting requests"
                ));
            }
            if now() - moved > STALE {
                // Work makes it write them again.
                let _ = self.probe();
                moved = now();
            }
            goodput_clock::pause(ASK_AGAIN.into());
            match self.read_queue() {
                Ok(Some(queue)) => {
                    if queue != last {
                        (last, moved) = (queue, now());
                    }
                    failures = 0;
                }
                _ if failures + 1 < TRIES => failures += 1,
                _ => return IdleSignal::no_signal("its metrics page no longer answers"),
            }
        }
        IdleSignal::Metrics
    }

    /// Until small requests are as quick as the first one was.
    fn wait_by_probes(&self) -> IdleSignal {
        let Some(first) = self.ready.probe else {
            return IdleSignal::no_signal(
                "its metrics page has no gauges, and its idle latency is unknown",
            );
        };
        let quick = Nanos((first.0.saturating_mul(2)).max((first + SLACK.into()).0));
        let (mut in_a_row, mut refused) = (0, 0);
        let mut last = None;
        while in_a_row < QUICK_ONES {
            if self.is_stopped() {
                return IdleSignal::no_signal("stopped by the user");
            }
            if now() >= self.deadline {
                let took = last.map_or("got no answer".to_owned(), |took: Nanos| {
                    format!("takes {:.0} ms", took.as_ms())
                });
                let first = first.as_ms();
                return IdleSignal::Unknown(format!(
                    "a small request {took}; the first one took {first:.0} ms"
                ));
            }
            let answer = self.probe();
            refused = if answer == Err(true) { refused + 1 } else { 0 };
            if refused == TRIES {
                return IdleSignal::no_signal("it refuses connections");
            }
            last = answer.ok();
            if last.is_some_and(|took| took <= quick) {
                in_a_row += 1;
            } else {
                in_a_row = 0;
                goodput_clock::pause(ASK_AGAIN.into());
            }
        }
        IdleSignal::Probe
    }
}

async fn read_queue_depth(endpoint: &Arc<Endpoint>) -> Result<Option<QueueDepth>, PageError> {
    Ok(fetch_metrics_page(endpoint, PAGE_LIMIT).await?.and_then(|page| QueueDepth::read(&page)))
}

/// Waits for one answer, unless the user wants to stop.
fn await_within<T>(
    limit: Duration,
    is_stopped: impl Fn() -> bool,
    answer: impl Future<Output = T>,
) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let stopped = async {
        while !is_stopped() {
            tokio::time::sleep(ASK_AGAIN).await;
        }
    };
    let waiting = async {
        let answer = run_until(stopped, tokio::time::timeout(limit, answer)).await;
        answer.ok().and_then(Result::ok)
    };
    tokio::task::LocalSet::new().block_on(&runtime, waiting)
}

#[cfg(test)]
mod tests {
    use std::thread::JoinHandle;

    use goodput_model::{Planned, Request};

    use super::*;
    use crate::readiness;
    use crate::testing::plan_for;

    fn asked(ready: &Ready) -> QueueDepth {
        let wait = IdleWait { ready, is_stopped: &|| false, deadline: Nanos::ZERO };
        wait.read_queue().unwrap().unwrap()
    }

    fn by_probes(ready: &Ready, limit: u64) -> IdleSignal {
        let deadline = now() + Nanos::from_millis(limit);
        IdleWait { ready, is_stopped: &|| false, deadline }.wait_by_probes()
    }

    /// A simulated engine for one request at a time, and a long one sent to it.
    fn busy() -> (Plan, Ready, JoinHandle<()>) {
        let mut plan = plan_for("mock:ttft=100ms,itl=2ms,slots=1");
        let ready = readiness::wait_ready(&mut plan).unwrap();
        let (endpoint, dialect) = (Arc::clone(&ready.endpoint), ready.dialect.clone());
        let long = std::thread::spawn(move || {
            let request = Request::prompt("Hi", Planned::new("long", 2, Some(400)));
            let answer = goodput_wire::send_outside_load(&endpoint, &dialect, &request);
            await_within(Duration::from_secs(20), || false, answer).unwrap();
        });
        while asked(&ready).is_empty() {
            goodput_clock::pause(Nanos::from_millis(1));
        }
        (plan, ready, long)
    }

    #[test]
    fn gauges_tell_when_a_server_is_empty() {
        let (mut plan, ready, long) = busy();
        let signals = || false;
        let begin = now();
        let soon = wait_idle(&plan, &ready, Duration::from_millis(1), &signals);
        assert_eq!(soon.by, IdleSignal::no_signal("it reports 1 running and 0 waiting requests"));
        let stopped = || true;
        let at_once = wait_idle(&plan, &ready, Duration::from_secs(20), &stopped);
        // Of the page, or of the loop after it: the user is heard.
        assert_eq!(at_once.by, IdleSignal::no_signal("stopped by the user"));
        assert!(!asked(&ready).is_empty(), "it was waited for");
        let late = wait_idle(&plan, &ready, Duration::from_secs(20), &signals);
        assert_eq!(late.by, IdleSignal::Metrics);
        assert!(asked(&ready).is_empty());
        assert!(late.after_s > 0.0 && (now() - begin).as_secs() > late.after_s, "{late:?}");
        long.join().unwrap();
        plan.target.probe = false;
        let silent = wait_idle(&plan, &ready, Duration::from_secs(20), &signals).by;
        assert_eq!(silent, IdleSignal::no_signal("--no-probe forbids requests to it"));
    }

    #[test]
    fn quick_answers_tell_when_a_server_without_gauges_is_empty() {
        let (_, mut ready, long) = busy();
        let soon = by_probes(&ready, 100);
        assert!(matches!(soon, IdleSignal::Unknown(why) if why.contains("got no answer")));
        assert_eq!(by_probes(&ready, 20_000), IdleSignal::Probe);
        assert!(asked(&ready).is_empty());
        long.join().unwrap();
        // As if the first one had taken no time: none of 100 ms is as quick.
        ready.probe = Some(Nanos::ZERO);
        let never = by_probes(&ready, 300);
        assert!(
            matches!(never, IdleSignal::Unknown(why) if why.contains("the first one took 0 ms"))
        );
    }

    #[test]
    fn a_server_that_is_gone_is_not_waited_for() {
        let (plan, mut ready, long) = busy();
        long.join().unwrap();
        drop(ready.mock.take());
        let limit = Duration::from_mins(1);
        let gone = wait_idle(&plan, &ready, limit, &|| false);
        assert_eq!(gone.by, IdleSignal::no_signal("it refuses connections"));
        assert!(gone.after_s < 30.0, "{gone:?}");
    }
}
