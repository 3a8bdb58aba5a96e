//! [`run_worker`]: the thread of a worker, with one current-thread runtime, from its first connection to its
//! last answer.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use goodput_clock::{now, request_prompt_wakeups, run_until};
use goodput_model::{ConnectionPolicy, Nanos};
use tokio::runtime::LocalOptions;

use crate::arrivals::Arrivals;
use crate::self_check::{CanaryTask, measure_loop_lag};
use crate::users::Users;
use crate::worker::{EngineWorker, WorkerContext};

/// Longest time spent on opening connections before the run.
const CONNECT_AHEAD: Duration = Duration::from_secs(5);

/// Where a worker's requests come from.
pub(crate) enum WorkSource {
    /// An open loop. This many connections are sure to be needed at once.
    Open(Arrivals, u32),
    /// Users of a closed loop.
    Closed(Users),
}

/// Runs a worker on the current thread until its source ends and its last answer has come.
pub(crate) fn run_worker(
    id: u32,
    shared: Arc<WorkerContext>,
    source: WorkSource,
    ready: std::sync::mpsc::Sender<()>,
) -> std::io::Result<()> {
    if !shared.pin_to.is_empty() {
        goodput_clock::pin_to(shared.pin_to[id as usize % shared.pin_to.len()])?;
    }
    request_prompt_wakeups();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    runtime.block_on(async move {
        let worker = Rc::new(EngineWorker::new(id, shared)?);
        worker.connect_ahead(&source).await;
        // The engine waits for every worker; it may have given up, and then there is nothing to do.
        let _ = ready.send(());
        drop(ready);
        worker.observe_from_the_epoch();
        match source {
            WorkSource::Open(arrivals, _) => worker.serve_open(arrivals).await,
            WorkSource::Closed(users) => worker.serve_closed(users).await,
        }
        worker.wait_for_answers().await;
        Ok(())
    })
}

impl EngineWorker {
    /// Opens what is sure to be needed. A failure here will show in the requests.
    async fn connect_ahead(&self, source: &WorkSource) {
        if self.shared.connections == ConnectionPolicy::PerRequest {
            return;
        }
        let count = match source {
            WorkSource::Open(_, count) => *count,
            WorkSource::Closed(users) => users.count,
        };
        let over = async {
            tokio::select! {
                () = tokio::time::sleep(CONNECT_AHEAD) => {}
                () = self.shared.control.wait_until_stopped() => {}
            }
        };
        // What was opened by then is there.
        let _ = run_until(over, self.client.connect_ahead(count)).await;
    }

    /// Starts what this worker observes about itself.
    fn observe_from_the_epoch(self: &Rc<Self>) {
        let worker = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let EngineWorker { id, shared, timer, .. } = worker.as_ref();
            // The engine sets the epoch once all workers are there.
            let epoch = loop {
                match shared.epoch.get() {
                    Some(epoch) => break *epoch,
                    None => timer.sleep_until(now() + Nanos::from_millis(1)).await,
                }
            };
            if let Some(canary) = &shared.canary {
                let task = CanaryTask {
                    canary: canary.clone(),
                    worker: *id,
                    workers: shared.workers,
                    lead: Rc::clone(&worker.lead),
                    epoch,
                    seen: Arc::clone(&shared.seen),
                };
                tokio::task::spawn_local(task.run(timer.clone()));
            }
            let seen = Arc::clone(&shared.seen);
            let (id, timer) = (*id, timer.clone());
            drop(worker);
            measure_loop_lag(id, timer, epoch, seen).await;
        });
    }
}
