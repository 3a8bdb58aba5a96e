//! Which threads go first where there are fewer processors than threads.

/// How far threads that can wait step back for those that measure and pass on.
const NICE: i32 = 10;

/// Lets other threads go first: for a thread that runs during the load and can wait.
pub fn give_way() {
    // No process is named, so it is the calling thread. Without it the thread competes like any
    // other.
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Lets other threads go first, and makes room the moment that one of them wakes up. A niceness
/// alone does not: since Linux 6.6 a thread keeps its processor for up to 3 ms whoever wakes up.
/// Only for a thread whose work may be left undone for as long as other programs use the processor.
#[expect(unsafe_code, reason = "no safe binding sets the scheduling policy")]
pub fn give_way_at_once() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and the parameters are only read during the call.
    let outcome = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    if outcome != 0 {
        give_way();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            give_way();
            assert_eq!(policy().0, 10);
            give_way_at_once();
            assert_eq!(policy().1, i64::from(libc::SCHED_IDLE));
        })
        .join()
        .unwrap();
        assert_eq!(policy(), before);
    }
}
