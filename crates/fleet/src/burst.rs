//! How far the clocks of two machines are apart: several questions in a row, of which the one with
//! the shortest way there and back is believed (as NTP does).

use goodput_model::{ClockOffset, Nanos};

/// Questions of a burst: chance delays of a network are rarely in all of them.
const QUESTIONS: u32 = 8;

/// How long others wait for the answer of one.
const PATIENCE: Nanos = Nanos::from_millis(1_000);

/// How fast two monotonic clocks may drift apart: 50 parts in a million, more than quartz does.
const DRIFT_PER_NANO: u64 = 20_000;

/// A burst of questions to one rank.
#[derive(Debug, Default)]
pub(crate) struct Burst {
    asked: u32,
    id: u64,
    sent: Nanos,
    best: Option<ClockOffset>,
}

impl Burst {
    /// The next question goes out now, with this number.
    pub(crate) fn note_question(&mut self, id: u64, now: Nanos) {
        (self.id, self.sent) = (id, now);
        self.asked += 1;
    }

    /// An answer, with the clocks of both; `false` where it answers something else.
    pub(crate) fn note_answer(
        &mut self,
        id: u64,
        theirs: (Nanos, Nanos),
        ours: (Nanos, Nanos),
    ) -> bool {
        if self.asked == 0 || id != self.id {
            return false;
        }
        let heard = offset_from_answer(self.sent, theirs, ours);
        if self.best.is_none_or(|best| heard.error_ns < best.error_ns) {
            self.best = Some(heard);
        }
        true
    }

    /// Whether it was asked lately.
    pub(crate) fn is_fresh(&self, now: Nanos) -> bool {
        now - self.sent < PATIENCE
    }

    /// Whether all was asked.
    pub(crate) fn is_over(&self) -> bool {
        self.asked >= QUESTIONS
    }

    /// The best answer so far.
    pub(crate) fn best(&self) -> Option<ClockOffset> {
        self.best
    }
}

/// From when a question was sent, the clocks there when it came, and here when the answer did.
/// Wherever between the two the other clock was read, the offset is wrong by half their distance at
/// most.
fn offset_from_answer(sent: Nanos, theirs: (Nanos, Nanos), ours: (Nanos, Nanos)) -> ClockOffset {
    let back = ours.0 - sent;
    let half = back.0 / 2;
    ClockOffset {
        offset_ns: signed_difference(theirs.0, sent + Nanos(half)),
        error_ns: back.0.div_ceil(2),
        wall_ns: signed_difference(theirs.1, ours.1 - Nanos(half)),
    }
}

fn signed_difference(a: Nanos, b: Nanos) -> i64 {
    let difference = i128::from(a.0) - i128::from(b.0);
    i64::try_from(difference).unwrap_or(if difference > 0 { i64::MAX } else { i64::MIN })
}

/// An offset, and when it was measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredOffset {
    pub(crate) clock: ClockOffset,
    pub(crate) at: Nanos,
}

impl MeasuredOffset {
    /// The better of two at an instant: old ones are worth less, as clocks drift.
    pub(crate) fn better_of(self, old: Option<Self>, now: Nanos) -> Self {
        let error = |of: &Self| of.clock.error_ns.saturating_add((now - of.at).0 / DRIFT_PER_NANO);
        old.filter(|old| error(old) < error(&self)).unwrap_or(self)
    }
}

/// An instant of rank 0 on the clock that is so far from its own.
pub(crate) fn on_rank_clock(instant: Nanos, clock: ClockOffset) -> Nanos {
    Nanos(instant.0.saturating_add_signed(clock.offset_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A network whose way there and back takes what the test says, to a clock that is so far off.
    fn ask(burst: &mut Burst, ways: (u64, u64), apart: u64) {
        let sent = Nanos(1_000_000);
        burst.note_question(u64::from(burst.asked), sent);
        let (there, back) = (sent.0 + ways.0, sent.0 + ways.0 + ways.1);
        let theirs = (Nanos(there + apart), Nanos(there + 70));
        assert!(burst.note_answer(burst.id, theirs, (Nanos(back), Nanos(back))));
    }

    #[test]
    fn the_shortest_way_is_believed() {
        let mut burst = Burst::default();
        ask(&mut burst, (900, 100), 5_000);
        assert_eq!(burst.best().unwrap().error_ns, 500);
        ask(&mut burst, (30, 10), 5_000);
        ask(&mut burst, (400, 400), 5_000);
        // 40 there and back, of which 30 there: wrong by 10, and at most by 20.
        let best = ClockOffset { offset_ns: 5_010, error_ns: 20, wall_ns: 80 };
        assert_eq!(burst.best(), Some(best));
        assert!(!burst.is_over());
        (3..QUESTIONS).for_each(|_| ask(&mut burst, (100, 100), 5_000));
        assert!(burst.is_over());
        assert_eq!(burst.best(), Some(best));
    }

    #[test]
    fn only_the_question_that_was_asked_is_answered() {
        let mut burst = Burst::default();
        let clocks = (Nanos(5), Nanos(5));
        assert!(!burst.note_answer(0, clocks, clocks));
        burst.note_question(7, Nanos(1));
        assert!(!burst.note_answer(6, clocks, clocks));
        assert!(burst.note_answer(7, clocks, clocks));
    }

    #[test]
    fn no_clock_is_too_far_off() {
        let far = (Nanos(u64::MAX), Nanos::ZERO);
        let heard = offset_from_answer(Nanos(10), far, (Nanos(20), Nanos(u64::MAX)));
        assert_eq!((heard.offset_ns, heard.wall_ns), (i64::MAX, i64::MIN));
        assert_eq!(on_rank_clock(Nanos(5), heard), Nanos(i64::MAX as u64 + 5));
        let back = ClockOffset { offset_ns: -3, ..ClockOffset::default() };
        assert_eq!(
            (on_rank_clock(Nanos(5), back), on_rank_clock(Nanos(1), back)),
            (Nanos(2), Nanos::ZERO)
        );
    }

    #[test]
    fn an_old_measurement_holds_until_drift_could_have_spoiled_it() {
        let measured = |error_ns, at| MeasuredOffset {
            clock: ClockOffset { error_ns, ..ClockOffset::default() },
            at: Nanos(at),
        };
        // After 1 ms a clock may have drifted by 50 ns.
        let (old, new) = (measured(100, 0), measured(140, 1_000_000));
        assert_eq!(new.better_of(Some(old), Nanos(1_000_000)).clock.error_ns, 140);
        let worse = measured(160, 1_000_000);
        assert_eq!(worse.better_of(Some(old), Nanos(1_000_000)).clock.error_ns, 100);
        assert_eq!(new.better_of(None, Nanos(1_000_000)).clock.error_ns, 140);
    }
}
