use proptest::prelude::*;

use super::{against_100, blocks, design, joined};
use crate::compare::rank::{Runs, rank_runs};
use crate::compare::*;

/// Two sides are better than the reference and one is worse, each told at one of the last steps;
/// the level of the pairs without the reference is too strict to tell them apart. By who is ahead
/// directly the worst would stand before the reference.
#[test]
fn who_is_better_than_the_better_is_better() {
    let percents = [9.0f64, 1.0, 5.5, 4.5, 10.0, 0.5, 8.0, 1.5];
    let rows: Vec<[f64; 4]> = percents
        .iter()
        .map(|percent| {
            let by = (percent / 100.0).exp();
            [100.0, 100.0 / by, 100.0 * by, 100.01 / by]
        })
        .collect();
    let of = |metric: &str, rows: &[[f64; 4]]| {
        blocks(metric, &rows.iter().map(<[f64; 4]>::as_slice).collect::<Vec<_>>())
    };
    let mut done = of("ttft_p99", &rows);
    // Plain differences of the others take the first steps.
    let plain: Vec<[f64; 4]> =
        [0.0, 0.1, -0.1, 0.2, 0.0, -0.2, 0.1, 0.0].map(|by| [10.0 + by, 20.0, 30.0, 40.0]).into();
    for metric in ["ttft_p50", "tpot_p50", "tpot_p99", "output_tokens_per_s", "goodput_rps"] {
        done = joined(done, &of(metric, &plain));
    }
    let mut design = design(&[8]);
    design.sides.extend(["c".to_owned(), "d".to_owned()]);
    let all = findings(&design, &done);
    let own: Vec<_> = all.iter().filter(|found| found.metric == "ttft_p99").collect();
    let told: Vec<_> = own.iter().map(|found| found.outcome).collect();
    assert_eq!(told, [FigureOutcome::Better, FigureOutcome::Worse, FigureOutcome::Better]);
    let ranks = rank_sides(&design, &done, &all, &[]);
    let places: Vec<_> = ranks
        .iter()
        .filter(|rank| rank.metric == "ttft_p99")
        .map(|rank| (rank.side, rank.rank, rank.behind.clone()))
        .collect();
    let expected = [(1, 1, vec![]), (3, 1, vec![]), (0, 3, vec![1, 3]), (2, 4, vec![0, 1, 3])];
    assert_eq!(places, expected);
}

/// Sides with any words between them.
struct Words {
    values: Vec<f64>,
    words: Vec<Vec<FigureOutcome>>,
}

impl Words {
    /// What is said of the second against the first.
    fn between(&self, [one, other]: [u32; 2]) -> FigureOutcome {
        self.words[one as usize][other as usize]
    }
}

impl Runs for Words {
    fn side_value(&self, metric: &ComparedMetric, _: u32, side: u32) -> Option<f64> {
        self.values.get(side as usize).copied().filter(|_| metric.name == "ttft_p99")
    }

    /// Of a figure that is better when it is lower, with a margin of 3 %.
    fn test_sides(&self, _: (&ComparedMetric, u32), sides: [u32; 2], _: f64) -> Option<[f64; 2]> {
        match self.between(sides) {
            FigureOutcome::Better => Some([-0.2, -0.1]),
            FigureOutcome::Worse => Some([0.1, 0.2]),
            FigureOutcome::Equivalent => Some([-0.01, 0.01]),
            FigureOutcome::Inconclusive => Some([-0.1, 0.1]),
            FigureOutcome::NoVerdict | FigureOutcome::Described => None,
        }
    }
}

fn word() -> impl Strategy<Value = FigureOutcome> {
    use FigureOutcome::*;
    prop_oneof![Just(Better), Just(Worse), Just(Equivalent), Just(Inconclusive), Just(NoVerdict)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the pairs say, even in circles; and where they say what the values say, each of them
    /// stands in the ranking.
    #[test]
    fn no_place_contradicts_a_finding(
        values in proptest::collection::vec(1.0f64..2.0, 3..8),
        words in proptest::collection::vec(proptest::collection::vec(word(), 8), 8),
        by_value in any::<bool>(),
    ) {
        let mut runs = Words { values, words };
        let count = runs.values.len() as u32;
        let is_told = |word: FigureOutcome| matches!(word, FigureOutcome::Better | FigureOutcome::Worse);
        for (one, row) in runs.words.iter_mut().enumerate().take(count as usize) {
            for (other, word) in row.iter_mut().enumerate().take(count as usize) {
                if by_value && is_told(*word) {
                    let is_lower = runs.values[other] < runs.values[one];
                    *word = if is_lower { FigureOutcome::Better } else { FigureOutcome::Worse };
                }
            }
        }
        let sides = (0..count).map(|side| side.to_string()).collect();
        let design = Design { sides, ..design(&[6]) };
        let pair = against_100("ttft_p99", &[100.0; 6]);
        let base = findings(&super::design(&[6]), &pair)[0].clone();
        let found = |side| Finding { side, outcome: runs.between([0, side]), ..base.clone() };
        let all: Vec<Finding> = (1..count).map(found).collect();
        let ranks = rank_runs(&design, 1, &runs, &all, &[]);
        prop_assert_eq!(ranks.len(), count as usize);
        let of = |side: u32| ranks.iter().find(|rank| rank.side == side).unwrap();
        let is_ahead = |one: u32, other: u32| {
            of(other).behind.contains(&one) && of(one).rank < of(other).rank
        };
        for one in 0..count {
            let own = of(one);
            prop_assert_eq!(own.rank as usize, own.behind.len() + 1);
            // The order is transitive, and no side is before itself.
            prop_assert!(own.behind.iter().all(|ahead| is_ahead(*ahead, one)), "{:?}", ranks);
            let above = own.behind.iter().flat_map(|ahead| &of(*ahead).behind);
            prop_assert!(above.into_iter().all(|above| own.behind.contains(above)), "{:?}", ranks);
            for other in (one + 1..count).filter(|_| one == 0 || by_value) {
                let holds = match runs.between([one, other]) {
                    FigureOutcome::Better => is_ahead(other, one),
                    FigureOutcome::Worse => is_ahead(one, other),
                    _ => true,
                };
                prop_assert!(holds, "{one} and {other}: {:?}", ranks);
            }
        }
        // Best first, by place and then by value.
        prop_assert!(ranks.is_sorted_by(|a, b| (a.rank, a.value) <= (b.rank, b.value)));
    }
}
