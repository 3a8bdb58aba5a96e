use goodput_model::Verdict;

use super::{cell, design};
use crate::compare::*;

/// Carries out what is asked until it is done; each run is judged by `verdict`.
fn carry_out(
    design: &Design,
    most: usize,
    verdict: impl Fn(&RunAsk) -> Verdict,
) -> (Vec<Vec<RunAsk>>, Vec<ComparedRun>, Option<Stopped>) {
    let (mut steps, mut done) = (Vec::new(), Vec::new());
    while steps.len() < most {
        match next_design_step(design, &done) {
            DesignStep::Done(stopped) => return (steps, done, Some(stopped)),
            DesignStep::Measure(asks) => {
                // Far apart in turn: nothing is ever known.
                let value = |ask: &RunAsk| {
                    if (ask.block + ask.side).is_multiple_of(2) { 100.0 } else { 200.0 }
                };
                done.extend(asks.iter().map(|ask| ComparedRun {
                    verdict: verdict(ask),
                    doubt: None,
                    ..cell(*ask, &[("ttft_p50", value(ask))])
                }));
                steps.push(asks);
            }
        }
    }
    (steps, done, None)
}

#[test]
fn every_second_block_is_the_reverse_of_the_one_before() {
    let mut design = Design { levels: Vec::new(), ..design(&[40]) };
    design.sides.push("c".to_owned());
    let (steps, _, stopped) = carry_out(&design, 1000, |_| Verdict::Valid);
    assert_eq!((steps.len(), stopped), (120, Some(Stopped::LastLook)));
    let asks: Vec<RunAsk> = steps.into_iter().flatten().collect();
    let order = |block: usize| -> Vec<u32> {
        asks[3 * block..3 * block + 3].iter().map(|ask| ask.side).collect()
    };
    for pair in 0..20 {
        let mut back = order(2 * pair + 1);
        back.reverse();
        assert_eq!(order(2 * pair), back, "blocks {} and {}", 2 * pair + 1, 2 * pair + 2);
    }
    // Drawn: all six orders come up in twenty draws (one is missing once in six).
    let drawn: std::collections::BTreeSet<_> = (0..40).map(order).collect();
    assert_eq!(drawn.len(), 6);
    for (place, ask) in asks.iter().enumerate() {
        assert_eq!((ask.number as usize, ask.block as usize), (place + 1, place / 3 + 1));
        assert_eq!(ask.seed, 7 + u64::from(ask.block) - 1);
    }
}

#[test]
fn all_levels_belong_to_a_block_and_all_sides_to_a_step_at_once() {
    let levels = vec![Level::Rate(1.0), Level::Rate(2.0)];
    let mut design = Design { levels, seed: u64::MAX, ..design(&[3]) };
    let (steps, _, _) = carry_out(&design, 1000, |_| Verdict::Valid);
    assert_eq!(steps.len(), 12);
    let places: Vec<_> = steps.iter().map(|asks| (asks[0].block, asks[0].level)).collect();
    assert_eq!(places[..5], [(1, 0), (1, 0), (1, 1), (1, 1), (2, 0)]);
    // Sides share the draw; no block and no level has that of another.
    let seeds: Vec<u64> = steps.iter().map(|asks| asks[0].seed).collect();
    let first = i64::MAX.cast_unsigned();
    assert_eq!(seeds, [first, first, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    design.at_once = true;
    let (steps, done, _) = carry_out(&design, 1000, |_| Verdict::Valid);
    assert_eq!((steps.len(), done.len()), (6, 12));
    assert_eq!((steps[1][0].number, steps[1][1].number, steps[1][0].level), (3, 4, 1));
    assert_eq!(estimate_remaining_s(&design, &done[..2], 10.0), (50.0, 50.0));
}

#[test]
fn it_goes_on_where_it_was() {
    let design = design(&[6, 8]);
    let (steps, done, _) = carry_out(&design, 1000, |_| Verdict::Valid);
    for (place, asks) in steps.iter().enumerate() {
        assert_eq!(next_design_step(&design, &done[..place]), DesignStep::Measure(asks.clone()));
    }
    assert_eq!(estimate_remaining_s(&design, &done[..3], 10.0), (90.0, 130.0));
    assert_eq!(estimate_remaining_s(&design, &done[..12], 10.0), (40.0, 40.0));
    assert_eq!(estimate_remaining_s(&design, &done, 10.0), (0.0, 0.0));
}

#[test]
fn blocks_with_a_void_run_are_left_and_replaced() {
    let design = design(&[6]);
    // The first run of blocks 2 and 4.
    let first = |ask: &RunAsk| ask.number == 3 || ask.number == 6;
    let verdict = |ask: &RunAsk| if first(ask) { Verdict::Void } else { Verdict::Suspect };
    let (steps, done, stopped) = carry_out(&design, 1000, verdict);
    assert_eq!(stopped, Some(Stopped::LastLook));
    let asked: Vec<u32> = steps.iter().map(|asks| asks[0].block).collect();
    assert_eq!(asked, [1, 1, 2, 3, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8]);
    assert_eq!(findings(&design, &done)[0].n, 6);
    // Three of six may be; the fourth ends it.
    let (steps, _, stopped) = carry_out(&design, 1000, |_| Verdict::Void);
    assert_eq!((steps.len(), stopped), (4, Some(Stopped::Void)));
}

#[test]
fn a_look_ends_it_once_all_is_known() {
    let same = |_: &RunAsk| 100.0;
    let until = |design: &Design, value: &dyn Fn(&RunAsk) -> f64| {
        let mut done = Vec::new();
        loop {
            match next_design_step(design, &done) {
                DesignStep::Measure(asks) => {
                    done.extend(asks.iter().map(|ask| cell(*ask, &[("ttft_p50", value(ask))])));
                }
                DesignStep::Done(stopped) => return (done.len() / 2, stopped),
            }
        }
    };
    let mut design = design(&[6, 8, 12]);
    assert_eq!(until(&design, &same), (6, Stopped::Known));
    let never = |ask: &RunAsk| if (ask.block + ask.side).is_multiple_of(2) { 130.0 } else { 100.0 };
    assert_eq!(until(&design, &never), (12, Stopped::LastLook));
    // A target against itself should say how far blocks spread.
    design.same_target = true;
    assert_eq!(until(&design, &same), (12, Stopped::Known));
}

#[test]
fn nonsense_is_done() {
    let done =
        |design: &Design| next_design_step(design, &[]) == DesignStep::Done(Stopped::LastLook);
    assert!(done(&Design { looks: vec![0], ..design(&[]) }));
    assert!(done(&Design { sides: Vec::new(), ..design(&[6]) }));
    assert_eq!(estimate_remaining_s(&design(&[6]), &[], f64::NAN), (0.0, 0.0));
}
