//! What failures, and requests that were never sent, leave of a verdict.

use super::*;

#[test]
fn errors_are_not_told_from_hardly_any_pairs() {
    // Three blocks without a failure: 1 - 0.025^(1/n) is left open.
    let gates = Gate::parse_all("errors < +1%").unwrap();
    let of = |block_pairs: u32, n: u32| {
        let gates = gates.clone();
        let settings = PairSettings { block_pairs, gates, ..PairSettings::default() };
        let apart = 180.0 / f64::from(n);
        let pairs: Vec<Pair> = (0..n).map(|k| twice(apart * f64::from(k), 100.0, 1.0)).collect();
        compared(settings, &pairs)
    };
    let few = of(20, 60);
    let errors = finding(&few, "error_share");
    assert_eq!((few.comparison.blocks, errors.change, errors.n), (3, 0.0, 3));
    near(errors.high.unwrap(), 1.0 - 0.025_f64.powf(1.0 / 60.0), 1e-9);
    assert_eq!(
        (few.gates[0].outcome, few.outcome),
        (FigureOutcome::Inconclusive, FigureOutcome::Inconclusive)
    );
    assert_eq!(errors.outcome, FigureOutcome::Inconclusive);
    // 368 pairs would tell it, 20 in each block.
    assert!((16..=18).contains(&errors.further_blocks.unwrap()), "{errors:?}");
    let many = of(100, 400);
    assert_eq!(
        (many.gates[0].outcome, many.outcome),
        (FigureOutcome::Equivalent, FigureOutcome::Equivalent)
    );
    // One failure in each block has no spread, and is still uncertain: 3 of 60 on the candidate alone.
    let mut pairs: Vec<Pair> = (0..60).map(|k| twice(3.0 * f64::from(k), 100.0, 1.0)).collect();
    pairs
        .iter_mut()
        .step_by(20)
        .for_each(|one| one.candidate = failed(one.at, ErrorClass::Connect));
    let found =
        compared(PairSettings { block_pairs: 19, gates, ..PairSettings::default() }, &pairs);
    let errors = finding(&found, "error_share");
    near(errors.change, 0.05, 1e-9);
    assert!(errors.low.unwrap() < 0.01 && errors.p.unwrap() > 0.05, "{errors:?}");
    assert_eq!(found.gates[0].outcome, FigureOutcome::Inconclusive);
}

/// What eight minutes in which nothing differs say where chosen requests were dropped.
fn with_drops(gates: &str, drops: &[(&str, u64)]) -> Comparison {
    let gates = if gates.is_empty() { vec![] } else { Gate::parse_all(gates).unwrap() };
    let mut ledger = Ledger::new(PairSettings { gates, ..PairSettings::default() });
    for pair in &minutes(|_| 1.0) {
        ledger.add(pair);
    }
    let dropped = drops.iter().map(|(why, n)| ((*why).to_owned(), *n)).collect();
    ledger.compare(CompareFacts::default(), &ShadowFacts { dropped, ..facts() }, sides())
}

#[test]
fn what_a_failing_candidate_was_not_sent_counts_as_failed() {
    let gates = "p50 ttft < +5%, errors < +20%";
    let outcomes = |found: &Comparison| found.gates.iter().map(|g| g.outcome).collect::<Vec<_>>();
    // One in a hundred is not yet too many.
    let few = with_drops(gates, &[("errors", 10)]);
    assert_eq!(outcomes(&few), [FigureOutcome::Equivalent; 2]);
    assert_eq!(
        (finding(&few, "error_share").change, few.outcome),
        (0.0, FigureOutcome::Equivalent)
    );
    assert_eq!(caveat(&few, CaveatCode::ShadowDrops), None);
    let found = with_drops(gates, &[("errors", 170)]);
    assert_eq!(outcomes(&found), [FigureOutcome::Equivalent, FigureOutcome::Worse]);
    let errors = finding(&found, "error_share");
    assert_eq!((errors.outcome, found.outcome), (FigureOutcome::Worse, FigureOutcome::Worse));
    near(errors.change, 0.17, 1e-9);
    near(found.gates[1].change.unwrap(), 0.17, 1e-9);
    let row = found.levels[0].rows.iter().find(|row| row.figure == "error_share").unwrap();
    near(row.values[1].unwrap(), 0.17, 1e-9);
    let (severity, text) = caveat(&found, CaveatCode::ShadowDrops).unwrap();
    assert_eq!(severity, Severity::Warn);
    assert!(text.starts_with("170 requests (17.0 % of the chosen) were not sent"), "{text}");
    assert!(!text.contains("calmer"), "{text}");
    // Without gates likewise.
    assert_eq!(with_drops("", &[("errors", 11)]).outcome, FigureOutcome::Worse);
}

#[test]
fn a_candidate_that_is_behind_is_not_shown_to_be_as_fast() {
    let gates = "p50 ttft < +5%, errors < +5%";
    for why in ["waited", "queue_full", "queue_bytes"] {
        let few = with_drops(gates, &[(why, 50)]);
        assert_eq!(few.outcome, FigureOutcome::Equivalent, "{why}");
        let found = with_drops(gates, &[(why, 51)]);
        let outcomes: Vec<FigureOutcome> = found.gates.iter().map(|gate| gate.outcome).collect();
        assert_eq!(outcomes, [FigureOutcome::Inconclusive, FigureOutcome::Equivalent], "{why}");
        let ttft = finding(&found, "ttft_p50");
        assert_eq!((ttft.outcome, ttft.further_blocks), (FigureOutcome::Inconclusive, None));
        let (severity, text) = caveat(&found, CaveatCode::ShadowDrops).unwrap();
        assert_eq!(severity, Severity::Warn);
        assert!(text.contains("from the calmer minutes"), "{text}");
    }
    // What is slow all the same is slow.
    let gates = Gate::parse_all("p50 ttft < +5%").unwrap();
    let mut ledger = Ledger::new(PairSettings { gates, ..PairSettings::default() });
    for pair in &minutes(|_| 1.2) {
        ledger.add(pair);
    }
    let dropped = BTreeMap::from([("waited".to_owned(), 900)]);
    let shadow = ShadowFacts { dropped, ..facts() };
    let found = ledger.compare(CompareFacts::default(), &shadow, sides());
    assert_eq!(found.gates[0].outcome, FigureOutcome::Worse);
}

#[test]
fn another_share_than_was_asked_for_is_said() {
    let said = |share: f64, passed: u64, chosen: u64| {
        let shadow = ShadowFacts { share, passed, chosen, ..facts() };
        let ledger = Ledger::new(PairSettings::default());
        let found = ledger.compare(CompareFacts::default(), &shadow, sides());
        let text = "there are few conversations, or they begin alike";
        let own = found.caveats.into_iter().find(|caveat| caveat.message.contains(text));
        own.map(|own| (own.severity, own.message))
    };
    let (severity, text) = said(0.05, 200, 200).unwrap();
    assert_eq!(severity, Severity::Warn);
    assert!(text.starts_with("100.0 % of the requests were chosen instead of 5.0 %"), "{text}");
    // 0.95^200 is 0.004 %, and 0.95^199 of fewer requests says nothing yet.
    assert_eq!(said(0.05, 200, 0).unwrap().0, Severity::Info);
    assert_eq!((said(0.05, 199, 199), said(0.05, 199, 0)), (None, None));
    // Chance, and less than twice the share however sure it is.
    assert_eq!((said(0.05, 200, 18), said(0.05, 1_000_000, 90_000)), (None, None));
    assert_eq!((said(1.0, 500, 500), said(0.5, 1_000, 500)), (None, None));
    assert_eq!(said(0.5, 1_000, 1_000).unwrap().0, Severity::Warn);
}
