//! Which threads go first where there are fewer processors than threads.

use std::num::NonZero;

/// How far threads that can wait step back for those that measure and pass on.
const NICE: i32 = 10;

/// The shortest time slice that Linux grants.
const SLICE_NS: u64 = 100_000;

/// Asks the kernel to run the current thread as soon as there is something to do: timers without the
/// usual slack of 50 µs, and a short time slice, for which Linux since 6.12 interrupts a thread with
/// a longer one. Where it refuses, the cost is visible as schedule slip.
pub fn request_prompt_wakeups() {
    let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
    set_slice(SLICE_NS);
}

/// `struct sched_attr` of the kernel, in its first version.
#[repr(C)]
struct SchedAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Of a thread without a deadline: its time slice.
    runtime: u64,
    deadline: u64,
    period: u64,
}

#[expect(unsafe_code, reason = "no safe binding sets the time slice")]
fn set_slice(runtime: u64) {
    let attributes = SchedAttributes {
        size: size_of::<SchedAttributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: rustix::process::getpriority_process(None).unwrap_or(0),
        priority: 0,
        runtime,
        deadline: 0,
        period: 0,
    };
    // SAFETY: 0 is the calling thread, and the attributes are only read during the call. A kernel
    // that does not know them changes nothing.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Lets other threads go first: for a thread that runs during the load and can wait.
pub fn lower_priority() {
    // No process is named, so it is the calling thread. Without it the thread competes like any
    // other.
    let _ = rustix::process::setpriority_process(None, NICE);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time slice of the calling thread, by the kernel; none before Linux 6.12.
    fn slice() -> Option<u64> {
        let facts = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = facts.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    #[test]
    fn a_prompt_thread_keeps_its_niceness() {
        std::thread::spawn(|| {
            lower_priority();
            let before = slice();
            request_prompt_wakeups();
            assert_eq!(rustix::process::getpriority_process(None), Ok(NICE));
            // A kernel that shows slices has changed it, or does not let threads choose.
            assert!(slice() == Some(SLICE_NS) || slice() == before, "{:?}", slice());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_thread_alone_gives_way() {
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // The third field follows the name, which ends with the last parenthesis; 19 is the
            // niceness, 41 the policy.
            let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
            let field = |number: usize| fields[number - 3].parse::<i64>().unwrap();
            (field(19), field(41))
        };
        let before = policy();
        std::thread::spawn(move || {
            lower_priority();
            assert_eq!(policy().0, 10);
            assert_eq!(policy().1, i64::from(libc::SCHED_OTHER));
        })
        .join()
        .unwrap();
        assert_eq!(policy(), before);
    }
}
