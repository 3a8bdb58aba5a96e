use super::*;
use crate::sweep::planner::script::{figures, plan, point};

fn facts() -> SweepFacts {
    SweepFacts { state: SweepState::NoGoodAnswer, ..SweepFacts::default() }
}

fn verdict(points: &[Point]) -> (Verdict, String) {
    let points = points.iter().map(|point| (String::new(), point.clone())).collect();
    let summary = SweepSummary::new(facts(), plan(), points);
    let first = summary.caveats.first().map(|caveat| caveat.message.clone());
    (summary.verdict, first.unwrap_or_default())
}

#[test]
fn a_sweep_of_which_no_point_says_anything_is_void() {
    let mut failing = figures(8.0, 1.0);
    (failing.ok, failing.failed) = (0, failing.requests);
    failing.errors = vec![("http_500".to_owned(), failing.requests)];
    let warm_up = |figures| point(1, Purpose::WarmUp, 16.0, figures);
    let (found, why) = verdict(&[warm_up(failing.clone())]);
    assert_eq!(found, Verdict::Void);
    assert!(why.contains("no request completed (mostly `http_500`)"), "{why}");
    let good = warm_up(figures(8.0, 0.0));
    assert_eq!(verdict(std::slice::from_ref(&good)).0, Verdict::Valid);
    let lost = point(2, Purpose::Bracket, 3.0, failing);
    assert_eq!(verdict(&[good.clone(), lost.clone()]).0, Verdict::Void);
    let kept = point(3, Purpose::Bracket, 3.0, figures(3.0, 0.0));
    assert_eq!(verdict(&[good, lost, kept]).0, Verdict::Valid);
}
