//! What the server says about its own queue: while it is measured, and to see that it is empty.

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_clock::now;
use goodput_model::{BatchFacts, Nanos, Plan};
use goodput_observe::Queue;
use goodput_wire::{Endpoint, metrics_page, probe};
use serde::Serialize;

use crate::readiness::Ready;

/// How often a server under load is asked, and how long it has to answer.
const EVERY: Duration = Duration::from_secs(1);

/// So many questions in a row without an answer are enough.
const TRIES: u32 = 3;

/// How often a server that shall be empty is asked.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// A gauge that stands still for so long may be stale: some engines write it only when they work.
const STALE: Nanos = Nanos::from_millis(2_000);

/// Small requests that must be quick, one after the other.
const QUICK_ONES: u32 = 2;

/// What a small request may take longer than the first one of an idle server.
const SLACK: Duration = Duration::from_millis(50);

/// Looks at the server's gauges once a second, on a thread of its own.
pub(crate) struct Gauges {
    /// Dropping it ends the thread.
    _going: Sender<()>,
    thread: Option<JoinHandle<Vec<(Nanos, Queue)>>>,
}

/// What was seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Vec<(Nanos, Queue)>);

impl Gauges {
    /// Begins to look. A server that does not answer, or says nothing of the kind, is soon left alone.
    pub(crate) fn watch(endpoint: Arc<Endpoint>) -> Self {
        let (going, stop) = channel();
        let thread = std::thread::Builder::new().name("gauges".to_owned());
        let thread = thread.spawn(move || look(&endpoint, &stop, EVERY)).ok();
        Self { _going: going, thread }
    }

    /// Ends it; a look that is under way takes a second at most.
    pub(crate) fn finish(self) -> Seen {
        let Self { _going: going, thread } = self;
        drop(going);
        Seen(thread.and_then(|thread| thread.join().ok()).unwrap_or_default())
    }
}

impl Seen {
    /// What was seen between two instants; `None` if nothing was.
    pub(crate) fn between(&self, from: Nanos, to: Nanos) -> Option<BatchFacts> {
        let inside = self.0.iter().filter(|(at, _)| (from..=to).contains(at));
        let (running, waiting): (Vec<f64>, Vec<f64>) =
            inside.map(|(_, queue)| (queue.running, queue.waiting)).unzip();
        if running.is_empty() {
            return None;
        }
        let samples = running.len() as u64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / samples as f64;
        let max = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        Some(BatchFacts {
            running_mean: mean(&running),
            running_max: max(&running),
            waiting_mean: mean(&waiting),
            waiting_max: max(&waiting),
            samples,
        })
    }
}

fn look(endpoint: &Arc<Endpoint>, stop: &Receiver<()>, every: Duration) -> Vec<(Nanos, Queue)> {
    let mut seen = Vec::new();
    let mut failures = 0;
    let mut due = now();
    loop {
        let asked = now();
        match queue(endpoint, every) {
            // As it was somewhere in between.
            Some(queue) => {
                seen.push((asked + Nanos((now() - asked).0 / 2), queue));
                failures = 0;
            }
            None => failures += 1,
        }
        due = (due + every.into()).max(now());
        let pause = Duration::from_nanos((due - now()).0);
        let goes_on =
            failures < TRIES && stop.recv_timeout(pause) == Err(RecvTimeoutError::Timeout);
        if !goes_on {
            return seen;
        }
    }
}

/// What the server says, if it says something in time.
fn queue(endpoint: &Arc<Endpoint>, limit: Duration) -> Option<Queue> {
    Queue::read(&within(limit, metrics_page(endpoint))?.ok()??)
}

/// Waits for one answer.
fn within<T>(limit: Duration, answer: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let waiting = async { tokio::time::timeout(limit, answer).await };
    tokio::task::LocalSet::new().block_on(&runtime, waiting).ok()
}

/// Whether and when a server had nothing left to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Emptied {
    /// Seconds until it was known, or given up.
    pub(crate) after_s: f64,
    /// Who says so.
    pub(crate) by: By,
}

/// Who says that a server is empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    /// Its own gauges.
    Metrics,
    /// Small requests that were as quick as the first one.
    Probe,
    /// Nobody: why it is not known.
    Unknown(String),
}

/// Waits until the server has no request left.
pub(crate) fn wait_empty(plan: &Plan, ready: &Ready, limit: Duration) -> Emptied {
    let begin = now();
    let deadline = begin + limit.into();
    let by = if !plan.target.probe {
        By::Unknown("it is not to be asked".to_owned())
    } else if let Some(first) = queue(&ready.endpoint, EVERY) {
        by_metrics(ready, first, deadline)
    } else {
        by_probes(ready, deadline)
    };
    Emptied { after_s: (now() - begin).as_secs(), by }
}

/// Until the gauges say so.
fn by_metrics(ready: &Ready, first: Queue, deadline: Nanos) -> By {
    let mut last = first;
    let mut moved = now();
    let mut failures = 0;
    while !last.is_empty() {
        if now() >= deadline {
            let Queue { running, waiting } = last;
            return By::Unknown(format!("it says that {running} run and {waiting} wait"));
        }
        if now() - moved > STALE {
            // Work makes it write them anew.
            within(rest(deadline), probe(&ready.endpoint, &ready.dialect));
            moved = now();
        }
        goodput_clock::pause(ASK_AGAIN.into());
        match queue(&ready.endpoint, EVERY) {
            Some(queue) => {
                if queue != last {
                    (last, moved) = (queue, now());
                }
                failures = 0;
            }
            None if failures + 1 < TRIES => failures += 1,
            None => return By::Unknown("its metrics page no longer answers".to_owned()),
        }
    }
    By::Metrics
}

/// Until small requests are as quick as the first one was.
fn by_probes(ready: &Ready, deadline: Nanos) -> By {
    let Some(first) = ready.probe else {
        return By::Unknown("it has no gauges, and it is not known how quick it is".to_owned());
    };
    let quick = Nanos((first.0.saturating_mul(2)).max((first + SLACK.into()).0));
    let mut in_a_row = 0;
    let mut last = None;
    while in_a_row < QUICK_ONES {
        if now() >= deadline {
            let took = last.map_or("has no answer".to_owned(), |took: Nanos| {
                format!("takes {:.0} ms", took.as_ms())
            });
            let first = first.as_ms();
            return By::Unknown(format!("a small request {took}; the first took {first:.0} ms"));
        }
        let answer = within(rest(deadline), probe(&ready.endpoint, &ready.dialect));
        last = answer.and_then(Result::ok).map(|probe| probe.took);
        if last.is_some_and(|took| took <= quick) {
            in_a_row += 1;
        } else {
            in_a_row = 0;
            goodput_clock::pause(ASK_AGAIN.into());
        }
    }
    By::Probe
}

fn rest(deadline: Nanos) -> Duration {
    Duration::from_nanos((deadline - now()).0)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use goodput_model::{Planned, Request};

    use super::*;
    use crate::args::{Arguments, Verb};
    use crate::{plan, readiness};

    /// A simulated engine for one request at a time, and a long one sent to it.
    fn busy() -> (Plan, Ready, JoinHandle<()>) {
        let words = ["goodput", "run", "mock:ttft=100ms,itl=2ms,slots=1", "--rate", "1"];
        let Verb::Run(args) = Arguments::parse_from(words).verb else { panic!("not a run") };
        let mut plan = plan::resolve(&args).unwrap();
        let ready = readiness::wait(&mut plan, true).unwrap();
        let (endpoint, dialect) = (Arc::clone(&ready.endpoint), ready.dialect.clone());
        let long = std::thread::spawn(move || {
            let request = Request::prompt("Hi", Planned::new("long", 2, Some(400)));
            let answer = goodput_wire::ask(&endpoint, &dialect, &request);
            within(Duration::from_secs(20), answer).unwrap();
        });
        while queue(&ready.endpoint, EVERY).unwrap().is_empty() {
            goodput_clock::pause(Nanos::from_millis(1));
        }
        (plan, ready, long)
    }

    #[test]
    fn gauges_tell_when_a_server_is_empty() {
        let (mut plan, ready, long) = busy();
        let gauges = Gauges::watch(Arc::clone(&ready.endpoint));
        let begin = now();
        let soon = wait_empty(&plan, &ready, Duration::from_millis(1));
        assert_eq!(soon.by, By::Unknown("it says that 1 run and 0 wait".to_owned()));
        let late = wait_empty(&plan, &ready, Duration::from_secs(20));
        assert_eq!(late.by, By::Metrics);
        assert!(queue(&ready.endpoint, EVERY).unwrap().is_empty());
        assert!(late.after_s > 0.0 && (now() - begin).as_secs() > late.after_s, "{late:?}");
        let facts = gauges.finish().between(begin, now()).unwrap();
        assert_eq!(facts.running_max, 1.0);
        long.join().unwrap();
        plan.target.probe = false;
        let silent = wait_empty(&plan, &ready, Duration::from_secs(20)).by;
        assert_eq!(silent, By::Unknown("it is not to be asked".to_owned()));
    }

    #[test]
    fn quick_answers_tell_when_a_server_without_gauges_is_empty() {
        let (_, mut ready, long) = busy();
        let soon = by_probes(&ready, now() + Nanos::from_millis(100));
        assert!(matches!(soon, By::Unknown(why) if why.contains("has no answer")));
        assert_eq!(by_probes(&ready, now() + Duration::from_secs(20).into()), By::Probe);
        assert!(queue(&ready.endpoint, EVERY).unwrap().is_empty());
        long.join().unwrap();
        // As if the first one had taken no time: none of 100 ms is as quick.
        ready.probe = Some(Nanos::ZERO);
        let never = by_probes(&ready, now() + Nanos::from_millis(300));
        assert!(matches!(never, By::Unknown(why) if why.contains("the first took 0 ms")));
    }

    #[test]
    fn a_server_that_is_gone_is_left_alone() {
        let (_, ready, long) = busy();
        long.join().unwrap();
        let endpoint = Arc::clone(&ready.endpoint);
        drop(ready);
        let (_going, stop) = channel();
        // It comes back though nobody told it to stop.
        assert!(look(&endpoint, &stop, Duration::from_millis(20)).is_empty());
    }

    #[test]
    fn only_what_was_seen_inside_counts() {
        let at = |second: u64, running: f64, waiting: f64| {
            (Nanos::from_millis(second * 1000), Queue { running, waiting })
        };
        let seen =
            Seen(vec![at(1, 90.0, 50.0), at(2, 4.0, 0.0), at(3, 8.0, 1.0), at(4, 70.0, 9.0)]);
        let window = seen.between(Nanos::from_millis(1_500), Nanos::from_millis(3_000));
        let expected = BatchFacts {
            running_mean: 6.0,
            running_max: 8.0,
            waiting_mean: 0.5,
            waiting_max: 1.0,
            samples: 2,
        };
        assert_eq!(window, Some(expected));
        assert_eq!(seen.between(Nanos::from_millis(3_001), Nanos::from_millis(3_999)), None);
        assert_eq!(Seen::default().between(Nanos::ZERO, Nanos::from_millis(9)), None);
    }
}
