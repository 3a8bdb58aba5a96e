//! At which loads sides can be set against each other.

use goodput_campaign::compare::{self, ComparedRun, RunAsk, SideFacts};
use goodput_campaign::sweep::Level;
use goodput_model::Verdict;

use super::folders::{SideResults, SideRun};
use super::targets::ComparedServer;
use crate::error::Failed;
use crate::events::Observer;

/// The loads.
pub(super) struct Levels {
    /// Loads that the reference and another have, ascending; empty if a load is not a number.
    pub(super) named: Vec<Level>,
    /// Whether all runs are of one level, whatever each side calls it.
    is_one: bool,
    /// Whether the answers of sweeps are a level of their own, behind the others.
    has_answers: bool,
}

impl Levels {
    /// Known before anything is measured.
    pub(super) fn new(
        targets: &[ComparedServer],
        sides: &[SideResults],
        observer: &dyn Observer,
    ) -> Result<Self, Failed> {
        let has_answer = |side: &SideResults| !side.answers.is_empty();
        let has_answers = sides.first().is_some_and(has_answer)
            && sides.iter().skip(1).any(has_answer)
            && sides.iter().any(|side| side.answers.iter().any(Option::is_some));
        let who: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        let reference = sides.first().map(levels_of_side).unwrap_or_default();
        // Servers get the loads of the reference.
        let of = |(target, side): (&ComparedServer, &SideResults)| {
            if target.is_live() { reference.clone() } else { levels_of_side(side) }
        };
        let all: Vec<Vec<Option<Level>>> = targets.iter().zip(sides).map(of).collect();
        let (levels, left) = Self::shared_levels(&who, &all, has_answers)?;
        if !left.is_empty() {
            observer.notice(format!(
                "left out, because only one side measured them: {}",
                levels_text(&left)
            ));
        }
        Ok(levels)
    }

    /// From the loads of each side; and those that only one side has.
    fn shared_levels(
        who: &[&str],
        all: &[Vec<Option<Level>>],
        has_answers: bool,
    ) -> Result<(Self, Vec<Option<Level>>), Failed> {
        let Some((reference, others)) = all.split_first() else {
            return Err(Failed::internal("a comparison without sides"));
        };
        // One load on each side: whether it is the same is for the check to say.
        if all.iter().all(|levels| levels.len() <= 1) && !reference.is_empty() {
            let named = reference.iter().flatten().copied().collect();
            return Ok((Self { named, is_one: true, has_answers }, Vec::new()));
        }
        let is_shared = |level: &Level| others.iter().any(|other| other.contains(&Some(*level)));
        let named: Vec<Level> = reference.iter().flatten().copied().filter(is_shared).collect();
        if named.is_empty() && !has_answers {
            let of = |(name, levels): (&&str, &Vec<_>)| format!("{name}: {}", levels_text(levels));
            let each: Vec<String> = who.iter().zip(all).map(of).collect();
            let message = format!("no load level was measured on both sides ({})", each.join("; "));
            return Err(Failed::usage(message)
                .hint("sweep both with the same --rates, or compare them live"));
        }
        let is_left = |level: &Option<Level>| !level.is_some_and(|level| named.contains(&level));
        let left = sort_levels(all.iter().flatten().copied().filter(is_left).collect());
        Ok((Self { named, is_one: false, has_answers }, left))
    }

    pub(super) fn has_runs(&self) -> bool {
        self.is_one || !self.named.is_empty()
    }

    /// The place of this run's load.
    pub(super) fn place_of(&self, run: &SideRun) -> Option<u32> {
        if self.is_one {
            return Some(0);
        }
        let level = run.load_level()?;
        let place = self.named.iter().position(|named| *named == level)?;
        u32::try_from(place).ok()
    }

    /// The place behind them all.
    fn answer_place(&self) -> u32 {
        u32::try_from(self.named.len().max(usize::from(self.is_one))).unwrap_or(u32::MAX)
    }

    /// The runs of a side, each at its place.
    pub(super) fn compared_runs(&self, side: u32, taken: &SideResults) -> Vec<ComparedRun> {
        let mut cells: Vec<ComparedRun> = Vec::new();
        let mut add = |(level, seed): (u32, u64), (verdict, doubt), figures, facts| {
            let number = u32::try_from(cells.len() + 1).unwrap_or(u32::MAX);
            let before = cells.iter().filter(|cell: &&ComparedRun| cell.ask.level == level).count();
            let block = u32::try_from(before + 1).unwrap_or(u32::MAX);
            cells.push(ComparedRun {
                ask: RunAsk { number, block, side, level, seed },
                verdict,
                doubt,
                figures,
                facts,
            });
        };
        for run in &taken.runs {
            if let Some(level) = self.place_of(run) {
                let figures = compare::comparable_figures(&run.summary);
                let summary = &run.summary;
                let believed = (
                    Verdict::from_caveats_of_part(&summary.caveats),
                    compare::gravest_caveat(&summary.caveats),
                );
                add((level, run.plan.load.seed), believed, figures, run.side_facts());
            }
        }
        if self.has_answers {
            for answer in &taken.answers {
                let figures = answer.map(|answer| ("goodput_rps".to_owned(), answer));
                let figures = figures.into_iter().collect();
                add((self.answer_place(), 0), (Verdict::Valid, None), figures, common_facts(taken));
            }
        }
        cells
    }
}

/// What was the same at all points of a sweep.
fn common_facts(taken: &SideResults) -> SideFacts {
    let facts = taken.runs.first().map_or_else(SideFacts::default, SideRun::side_facts);
    SideFacts {
        load: "search".to_owned(),
        window_s: 0.0,
        warmup: String::new(),
        cached_share: None,
        ttft_ms: None,
        ..facts
    }
}

/// The loads of a side, ascending, each once.
fn levels_of_side(taken: &SideResults) -> Vec<Option<Level>> {
    sort_levels(taken.runs.iter().map(SideRun::load_level).collect())
}

fn sort_levels(mut levels: Vec<Option<Level>>) -> Vec<Option<Level>> {
    let key = |level: &Option<Level>| {
        level.map(|level| (matches!(level, Level::Users(_)), level.value()))
    };
    levels.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
    levels.dedup();
    levels
}

fn levels_text(levels: &[Option<Level>]) -> String {
    let text = |level: &Option<Level>| match level {
        Some(Level::Rate(rate)) => format!("{rate}/s"),
        Some(Level::Users(1)) => "1 user".to_owned(),
        Some(Level::Users(users)) => format!("{users} users"),
        None => "a changing load".to_owned(),
    };
    let all: Vec<String> = levels.iter().map(text).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use goodput_campaign::compare::{Design, Figure, FigureOutcome, Quantity, SavedSide, Side};

    use super::*;
    use crate::events::Silent;

    const NAMES: [&str; 2] = ["a", "b"];

    fn rates(rates: &[f64]) -> Vec<Option<Level>> {
        rates.iter().map(|rate| Some(Level::Rate(*rate))).collect()
    }

    #[test]
    fn sweeps_meet_at_the_loads_that_both_have() {
        let all = [rates(&[2.0, 4.0, 8.0]), rates(&[4.0, 8.0, 9.0])];
        let (levels, left) = Levels::shared_levels(&NAMES, &all, false).unwrap();
        assert_eq!(levels.named, [Level::Rate(4.0), Level::Rate(8.0)]);
        assert_eq!((left, levels.answer_place()), (rates(&[2.0, 9.0]), 2));
        let apart = [rates(&[2.0, 4.0]), rates(&[8.0])];
        let refused = Levels::shared_levels(&NAMES, &apart, false).map(drop).unwrap_err();
        assert!(refused.to_string().contains("a: 2/s, 4/s; b: 8/s"), "{refused}");
        // What they found can be compared all the same.
        let (levels, _) = Levels::shared_levels(&NAMES, &apart, true).unwrap();
        assert!(!levels.has_runs() && levels.answer_place() == 0);
    }

    #[test]
    fn one_load_on_each_side_is_one_level() {
        for (all, named) in [
            ([rates(&[4.0]), rates(&[8.0])], vec![Level::Rate(4.0)]),
            ([vec![None], vec![None]], vec![]),
            ([vec![None], vec![]], vec![]),
        ] {
            let (levels, left) = Levels::shared_levels(&NAMES, &all, false).unwrap();
            assert!(levels.is_one && levels.has_runs() && left.is_empty());
            assert_eq!(levels.named, named);
        }
        let mixed = sort_levels(vec![Some(Level::Users(1)), Some(Level::Rate(9.0)), None, None]);
        assert_eq!(mixed, [None, Some(Level::Rate(9.0)), Some(Level::Users(1))]);
    }

    #[test]
    fn a_sweep_without_an_answer_is_a_run_without_the_figure() {
        let found = Some(Figure { value: 20.0, low: None, high: None });
        let side = |answers: &[Option<Figure>]| SideResults {
            answers: answers.to_vec(),
            has_sweep: true,
            ..SideResults::default()
        };
        let target = |name: &str| ComparedServer {
            name: name.to_owned(),
            place: super::super::targets::RunSource::Saved(Vec::new()),
        };
        let targets = NAMES.map(target);
        let levels =
            Levels::new(&targets, &[side(&[found, None]), side(&[None])], &Silent).unwrap();
        let figures = |taken: &SideResults| -> Vec<usize> {
            levels.compared_runs(0, taken).iter().map(|cell| cell.figures.len()).collect()
        };
        assert_eq!(figures(&side(&[found, None])), [1, 0]);
        assert_eq!(figures(&side(&[None])), [0]);
        // Where no side has an answer there is nothing to compare.
        assert!(Levels::new(&targets, &[side(&[None]), side(&[None])], &Silent).is_err());
    }

    #[test]
    fn what_sweeps_found_is_a_figure_of_its_own() {
        let side = |value: f64| {
            let figure = Figure { value, low: Some(value - 1.0), high: Some(value + 1.0) };
            let answers = vec![Some(figure)];
            let taken = SideResults { answers, has_sweep: true, ..SideResults::default() };
            let (levels, _) = Levels::shared_levels(&NAMES, &[vec![], vec![]], true).unwrap();
            SavedSide { side: Side::default(), runs: levels.compared_runs(0, &taken) }
        };
        let design = Design { quantity: Quantity::Goodput, ..Design::default() };
        let sides = vec![side(20.0), side(25.0)];
        let found =
            compare::compare_saved(compare::CompareFacts::default(), design, sides, None, false);
        let [finding] = found.findings.as_slice() else { panic!("{:?}", found.findings) };
        assert_eq!((finding.metric.as_str(), finding.n), ("goodput_rps", 1));
        // By way of logarithms, which round.
        assert!((finding.change - 0.25).abs() < 1e-12, "{}", finding.change);
        assert_eq!(finding.outcome, FigureOutcome::NoVerdict);
    }
}
