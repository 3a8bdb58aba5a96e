//! The GPUs of this machine, by the word of their driver.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use goodput_clock::{allowed_cpus, lower_priority, now, pause};
use goodput_model::{GpuFacts, Nanos};
use goodput_observe::Nvml;

use super::Looks;

/// How often. Drivers average power over tens of milliseconds; what lies between two looks is lost.
const EVERY: Nanos = Nanos::from_millis(100);

/// How often, if asked for, where the load has the same processor. A look can keep it for 5 ms
/// inside the kernel, where no thread makes room: ten a second made one request in fifty 3 ms late.
const EVERY_ON_ONE_CPU: Nanos = Nanos::from_millis(1_000);

/// How often to look between the first look and the last. Where the load has the same processor only
/// if asked for.
pub(super) fn sampling_period(is_asked_for: bool) -> Option<Nanos> {
    match allowed_cpus().len() {
        1 => is_asked_for.then_some(EVERY_ON_ONE_CPU),
        _ => Some(EVERY),
    }
}

/// How long the driver may take at first, and to end.
const FIRST_LIMIT: Nanos = Nanos::from_millis(10_000);
const LAST_LIMIT: Nanos = Nanos::from_millis(2_000);

/// How often it is looked whether it has ended.
const STEP: Nanos = Nanos::from_millis(5);

/// A thread that asks the driver. Calls may take long and some wait for the GPU, so it has nothing
/// else to do.
pub(super) struct Driver {
    /// Dropping it ends the thread.
    going: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Opens the driver, for all GPUs or for those named, and looks for the first time; why not, where
    /// it has none.
    pub(super) fn start(
        looks: Looks,
        only: Vec<u32>,
        every: Option<Nanos>,
    ) -> Result<(Self, String, Vec<GpuFacts>), String> {
        let (going, stop) = channel();
        let (tell, told) = channel();
        let thread = std::thread::Builder::new().name("gpus".to_owned());
        let thread = thread.spawn(move || match open_driver(&only) {
            Ok(nvml) => {
                looks.push_gpus(nvml.sample(now()));
                // The receiver is gone only if the run is over.
                let _ = tell.send(Ok((nvml.driver(), nvml.facts())));
                watch_gpus(&nvml, &looks, every, &stop);
            }
            Err(why) => drop(tell.send(Err(why))),
        });
        let thread = thread.map_err(|error| error.to_string())?;
        let silent = |_| Err("the driver does not answer".to_owned());
        let (version, gpus) = told.recv_timeout(FIRST_LIMIT.into()).unwrap_or_else(silent)?;
        Ok((Self { going: Some(going), thread: Some(thread) }, version, gpus))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.going.take());
        // A call into the driver may hang: then the thread is left behind.
        let end = now() + LAST_LIMIT;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && now() < end {
            pause(STEP);
        }
    }
}

fn open_driver(only: &[u32]) -> Result<Nvml, String> {
    // Not the idle policy: the kernel wakes other threads on a processor that runs such a thread, as if
    // it were free, and then they wait for the call to return.
    lower_priority();
    Nvml::open(only)
}

fn watch_gpus(nvml: &Nvml, looks: &Looks, every: Option<Nanos>, stop: &Receiver<()>) {
    let mut due = now();
    loop {
        let goes_on = match every {
            Some(every) => {
                due = (due + every).max(now());
                stop.recv_timeout((due - now()).into()) == Err(RecvTimeoutError::Timeout)
            }
            None => stop.recv().is_ok(),
        };
        // The last look is after the last answer.
        looks.push_gpus(nvml.sample(now()));
        if !goes_on {
            return;
        }
    }
}
