//! The one loop that carries out many runs: repeats, sweeps, sweeps of settings, comparisons, and the
//! levels of a calibration.

use crate::error::Failed;
use crate::interrupt::Interrupt;

/// A step that could not be measured because the target went away is tried again so often.
pub const TRIES: u32 = 2;

/// Decides which run comes next, and measures it.
pub trait Planner {
    /// What is measured at a time.
    type Step;
    /// How it ended.
    type End;

    /// What comes next, by everything measured so far.
    fn next(&mut self) -> Next<Self::Step, Self::End>;

    /// Measures a step and keeps what it says. What cannot be measured at all is an error.
    fn measure(&mut self, step: &Self::Step) -> Result<Outcome, Failed>;

    /// Whether this step ends before the time for everything is over.
    fn has_time(&self, step: &Self::Step) -> bool {
        let _ = step;
        true
    }

    /// The target went away: waits for it, and says whether it is back.
    fn wait_for_target(&mut self, step: &Self::Step) -> bool {
        let _ = step;
        false
    }

    /// After a step that counts: lets the servers come to rest.
    fn wait_until_idle(&mut self, step: &Self::Step) {
        let _ = step;
    }

    /// How it ended when the user stopped it.
    fn end_on_interrupt(&self) -> Self::End;

    /// How it ended when the target went away for good.
    fn end_on_lost_target(&self) -> Self::End;

    /// How it ended when another step would have taken too long.
    fn end_on_timeout(&self) -> Self::End {
        self.end_on_interrupt()
    }
}

/// What a planner wants next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<S, E> {
    /// To measure this.
    Measure(S),
    /// Nothing more.
    Over(E),
}

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is measured.
    Measured,
    /// It is measured as far as it can be: the target went away meanwhile.
    CutShort,
    /// It is to be measured again: the target was not there.
    TargetGone,
}

/// Measures step after step until nothing more is wanted, the user stops it, or the target is gone.
pub fn measure_until_done<P: Planner>(
    planner: &mut P,
    interrupt: &Interrupt,
) -> Result<P::End, Failed> {
    let mut failures = 0;
    loop {
        if interrupt.is_interrupted() {
            return Ok(planner.end_on_interrupt());
        }
        let step = match planner.next() {
            Next::Measure(step) => step,
            Next::Over(end) => return Ok(end),
        };
        if !planner.has_time(&step) {
            return Ok(planner.end_on_timeout());
        }
        let outcome = planner.measure(&step);
        if interrupt.is_interrupted() {
            return Ok(planner.end_on_interrupt());
        }
        let outcome = outcome?;
        failures = if outcome == Outcome::TargetGone { failures + 1 } else { 0 };
        if outcome != Outcome::Measured && (failures > TRIES || !planner.wait_for_target(&step)) {
            let is_stopped = interrupt.is_interrupted();
            return Ok(if is_stopped {
                planner.end_on_interrupt()
            } else {
                planner.end_on_lost_target()
            });
        }
        if outcome != Outcome::TargetGone {
            planner.wait_until_idle(&step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts to a number; what each step does is scripted.
    struct Counting {
        script: Vec<Outcome>,
        steps: Vec<u32>,
        settled: u32,
        waited: u32,
        interrupt: Interrupt,
        stop_at: Option<u32>,
        /// Steps for which there is time.
        most: u32,
    }

    #[derive(Debug, PartialEq, Eq)]
    enum End {
        Complete,
        Interrupted,
        Lost,
        TimeUp,
    }

    impl Planner for Counting {
        type Step = u32;
        type End = End;

        fn next(&mut self) -> Next<u32, End> {
            let done = u32::try_from(self.steps.len()).unwrap();
            if self.script.is_empty() { Next::Over(End::Complete) } else { Next::Measure(done) }
        }

        fn measure(&mut self, step: &u32) -> Result<Outcome, Failed> {
            if self.stop_at == Some(*step) {
                self.interrupt.escalate();
            }
            let outcome = self.script.remove(0);
            self.steps.push(*step);
            Ok(outcome)
        }

        fn has_time(&self, step: &u32) -> bool {
            *step < self.most
        }

        fn end_on_timeout(&self) -> End {
            End::TimeUp
        }

        fn wait_for_target(&mut self, _: &u32) -> bool {
            self.waited += 1;
            true
        }

        fn wait_until_idle(&mut self, _: &u32) {
            self.settled += 1;
        }

        fn end_on_interrupt(&self) -> End {
            End::Interrupted
        }

        fn end_on_lost_target(&self) -> End {
            End::Lost
        }
    }

    fn counting(script: &[Outcome]) -> Counting {
        Counting {
            script: script.to_vec(),
            steps: Vec::new(),
            settled: 0,
            waited: 0,
            interrupt: Interrupt::default(),
            stop_at: None,
            most: u32::MAX,
        }
    }

    fn run(campaign: &mut Counting) -> End {
        let interrupt = campaign.interrupt.clone();
        measure_until_done(campaign, &interrupt).unwrap()
    }

    #[test]
    fn a_target_that_comes_back_is_measured_again_and_one_that_stays_away_ends_it() {
        use Outcome::{CutShort, Measured, TargetGone};
        let mut fine = counting(&[Measured, TargetGone, TargetGone, Measured, CutShort, Measured]);
        assert_eq!(run(&mut fine), End::Complete);
        assert_eq!((fine.steps.len(), fine.waited, fine.settled), (6, 3, 4));
        let mut lost = counting(&[Measured, TargetGone, TargetGone, TargetGone, Measured]);
        assert_eq!(run(&mut lost), End::Lost);
        assert_eq!((lost.steps.len(), lost.waited, lost.settled), (4, 2, 1));
    }

    #[test]
    fn no_step_begins_that_there_is_no_time_for() {
        let mut late = counting(&[Outcome::Measured; 4]);
        late.most = 2;
        assert_eq!((run(&mut late), late.steps.len()), (End::TimeUp, 2));
    }

    #[test]
    fn nothing_is_measured_after_a_stop() {
        let mut stopped = counting(&[Outcome::Measured; 4]);
        stopped.stop_at = Some(1);
        assert_eq!(run(&mut stopped), End::Interrupted);
        assert_eq!((stopped.steps.len(), stopped.settled), (2, 1));
    }
}
