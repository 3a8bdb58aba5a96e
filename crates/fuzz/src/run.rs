//! Inputs to a target, many or one, and what they show.

use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::Nanos;
use rustix::time::{ClockId, clock_gettime};

use crate::memory;
use crate::mutate::InputSource;
use crate::scratch::Scratch;
use crate::targets::{FuzzTarget, ParserInput};
use crate::watch::{ThreadWatch, WatchedThread};

/// Findings of one target after which it is left: the rest would be the same ones.
const ENOUGH: usize = 8;

/// As much stack as the program's own threads have.
const STACK: usize = 2 << 20;

/// How long a target is fuzzed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Inputs 0 to this one: the same on every machine.
    Inputs(u64),
    /// As many as there is time for.
    For(Duration),
}

/// How inputs are made and where findings go.
#[derive(Debug, Clone)]
pub struct FuzzSettings {
    /// Every other seed gives other inputs.
    pub seed: u64,
    /// How long.
    pub extent: Extent,
    /// Threads that share the work.
    pub threads: u64,
    /// Where each thread says what it works on, so that a crash of the process can be repeated.
    pub journals: Option<PathBuf>,
}

/// What went wrong with one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FuzzFinding {
    /// Its number.
    pub index: u64,
    /// What happened.
    pub what: String,
    /// The input.
    pub input: Vec<u8>,
}

/// What became of a target.
#[derive(Debug, Clone, Default)]
pub struct TargetOutcome {
    /// Inputs it was given.
    pub inputs: u64,
    /// How long that took.
    pub took: Duration,
    /// The most bytes it held, and for which input.
    pub most_bytes: (usize, u64),
    /// The most CPU time it took, and for which input.
    pub slowest: (Duration, u64),
    /// What went wrong.
    pub findings: Vec<FuzzFinding>,
}

/// What one input cost, and what was wrong with it.
struct InputReport {
    bytes: usize,
    cpu: Duration,
    wrong: Option<String>,
}

thread_local! {
    /// Whether inputs are given here.
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A panic of a thread that a target has started, where a runtime may have caught it.
static ELSEWHERE: Mutex<Option<String>> = Mutex::new(None);

fn lock_panic_message() -> MutexGuard<'static, Option<String>> {
    ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fuzzes one target.
pub fn run(target: &FuzzTarget, settings: &FuzzSettings) -> io::Result<TargetOutcome> {
    let seeds = (target.seeds)();
    let source = InputSource { seeds: &seeds, words: target.words };
    let start = now();
    let end = match settings.extent {
        Extent::Inputs(_) => None,
        Extent::For(length) => Some(start + Nanos::from(length)),
    };
    let most = match settings.extent {
        Extent::Inputs(count) => count,
        Extent::For(_) => u64::MAX,
    };
    let outcome = Mutex::new(TargetOutcome::default());
    let is_enough = AtomicBool::new(false);
    let threads = settings.threads.max(1);
    let watch =
        ThreadWatch::new(target.name, settings.seed, threads, settings.journals.as_deref())?;
    capture_panics();
    std::thread::scope(|scope| -> io::Result<()> {
        let mut started = Vec::new();
        for (place, thread) in watch.watched_threads().iter().zip(0..threads) {
            let work = ThreadWork { target, source: &source, settings, place, most, end };
            let (outcome, is_enough) = (&outcome, &is_enough);
            let builder = std::thread::Builder::new().stack_size(STACK);
            started.push(builder.spawn_scoped(scope, move || {
                let mine = work.for_each_input(thread, threads, is_enough)?;
                let mut all = outcome.lock().unwrap_or_else(PoisonError::into_inner);
                all.add(mine);
                io::Result::Ok(())
            })?);
        }
        watch.watch_until(|| started.iter().all(std::thread::ScopedJoinHandle::is_finished));
        started.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })?;
    let mut outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome.took = Duration::from_nanos((now() - start).0);
    outcome.findings.sort_by_key(|finding| finding.index);
    Ok(outcome)
}

/// One input to a target: what is wrong with it.
pub fn repeat_input(target: &FuzzTarget, input: &[u8]) -> io::Result<Option<String>> {
    capture_panics();
    Ok(run_input(target, input, &Scratch::new()?).wrong)
}

impl FuzzTarget {
    /// Input number `index` of this seed.
    pub fn input(&self, seed: u64, index: u64) -> Vec<u8> {
        InputSource { seeds: &(self.seeds)(), words: self.words }.make_input(seed, index)
    }
}

/// What one thread works with.
struct ThreadWork<'a> {
    target: &'a FuzzTarget,
    source: &'a InputSource<'a>,
    settings: &'a FuzzSettings,
    place: &'a WatchedThread,
    most: u64,
    end: Option<Nanos>,
}

impl ThreadWork<'_> {
    /// Every input of one thread.
    fn for_each_input(
        &self,
        thread: u64,
        threads: u64,
        is_enough: &AtomicBool,
    ) -> io::Result<TargetOutcome> {
        let scratch = Scratch::new()?;
        self.place.note_thread();
        let mut outcome = TargetOutcome::default();
        let mut index = thread;
        while index < self.most && self.end.is_none_or(|end| now() < end) {
            if is_enough.load(Ordering::Relaxed) {
                break;
            }
            let input = self.source.make_input(self.settings.seed, index);
            self.place.begin_input(index);
            let look = run_input(self.target, &input, &scratch);
            self.place.end_input();
            outcome.add_report(index, look, input);
            if outcome.findings.len() >= ENOUGH {
                is_enough.store(true, Ordering::Relaxed);
            }
            index += threads;
        }
        Ok(outcome)
    }
}

impl TargetOutcome {
    fn add_report(&mut self, index: u64, look: InputReport, input: Vec<u8>) {
        self.inputs += 1;
        self.most_bytes = self.most_bytes.max((look.bytes, index));
        self.slowest = self.slowest.max((look.cpu, index));
        self.findings.extend(look.wrong.map(|what| FuzzFinding { index, what, input }));
    }

    fn add(&mut self, other: Self) {
        self.inputs += other.inputs;
        self.most_bytes = self.most_bytes.max(other.most_bytes);
        self.slowest = self.slowest.max(other.slowest);
        self.findings.extend(other.findings);
    }
}

/// Gives one input to a target and looks at what it did.
fn run_input(target: &FuzzTarget, input: &[u8], scratch: &Scratch) -> InputReport {
    IS_OURS.set(true);
    let begun = memory::start_measuring();
    let start = cpu_time();
    let checked =
        panic::catch_unwind(AssertUnwindSafe(|| (target.check)(&ParserInput { input, scratch })));
    let cpu = cpu_time().saturating_sub(start);
    let bytes = memory::peak_since(begun);
    let other = lock_panic_message().take();
    let limits = &target.limits;
    let most = limits.bytes + limits.per_byte * input.len();
    let wrong = match checked {
        Err(_) => PANIC.take().or_else(|| Some("a panic".to_owned())),
        Ok(Err(what)) => Some(what),
        Ok(Ok(())) if other.is_some() => other,
        Ok(Ok(())) if bytes > most => Some(format!(
            "it held {bytes} bytes for {} bytes of input; the limit is {most}",
            input.len()
        )),
        Ok(Ok(())) if cpu > limits.time => Some(format!(
            "it took {} ms; the limit is {}",
            cpu.as_millis(),
            limits.time.as_millis()
        )),
        Ok(Ok(())) => None,
    };
    InputReport { bytes, cpu, wrong }
}

/// Keeps what panics say for the report, instead of writing it to the terminal.
fn capture_panics() {
    static HEARD: Once = Once::new();
    HEARD.call_once(|| {
        panic::set_hook(Box::new(|info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let said = info.payload_as_str().unwrap_or("no words");
            let said = format!("panicked at {place}: {said}");
            if IS_OURS.get() {
                PANIC.set(Some(said));
            } else {
                *lock_panic_message() = Some(said);
            }
        }));
    });
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
