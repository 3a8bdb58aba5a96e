//! Pages of sweeps that are written down here.

use goodput_campaign::curve::{Knee, fit_curve};
use goodput_campaign::sweep::{
    Figures, Goodput, GoodputState, Miss, Point, PointAsk, PointSpread, PointStanding, Sustained,
    SweepFacts, SweepPlan, TimeEstimate, Unclear,
};
use goodput_model::{Caveat, CaveatCode, EndedBy, Severity, StopEarly, Verdict};
use goodput_stats::SloState;
use unicode_width::UnicodeWidthStr;

use super::*;

/// A figure known to a tenth.
pub(crate) fn near(value: f64) -> Bounded {
    Bounded { value, low: Some(value * 0.9), high: Some(value * 1.1) }
}

fn spread(p50: f64, p99: f64) -> PointSpread {
    let p90 = Some(near((p50 * p99).sqrt()));
    PointSpread { p50: Some(near(p50)), p90, p99: Some(near(p99)), mean: Some(p50) }
}

/// A minute of an open loop: TTFT and share of good requests are given, the rest follows.
pub(crate) fn point(number: u32, rate: f64, (p50, p99): (f64, f64), good: f64) -> PointSummary {
    let requests = (rate * 60.0).round() as u64;
    let figures = Figures {
        is_complete: true,
        ended_by: Some(EndedBy::Plan),
        window_s: 60.0,
        requests,
        ok: requests,
        offered_rps: Some(rate),
        scheduled_rps: Some(rate),
        requests_per_s: Some(rate),
        output_tps: Some(rate * 160.0),
        total_tps: Some(rate * 700.0),
        in_flight: Some(rate * 4.0),
        ttft_ms: spread(p50, p99),
        tpot_ms: spread(20.0 + rate, 30.0 + rate),
        e2e_ms: spread(4000.0, 9000.0),
        user_tps: spread(1000.0 / (20.0 + rate), 10.0),
        input_tokens: Some(540.0),
        output_tokens: Some(160.0),
        over_saturated: Some(false),
        queue_limited: Some(false),
        balance: Some(1.0),
        is_steady: Some(true),
        attainment: Some(Bounded { value: good, low: Some(good - 0.01), high: Some(good) }),
        n_eff: Some(requests as f64),
        goodput_rps: Some(near(rate * good)),
        ..Figures::default()
    };
    let ask = PointAsk {
        number,
        purpose: Purpose::Grid,
        level: Level::Rate(rate),
        burn_in_s: 20.0,
        seconds: 60.0,
        requests: None,
        seed: 1,
        stops: Some(StopEarly::Hopeless),
    };
    let standing = if good >= 0.99 {
        PointStanding::Met
    } else {
        PointStanding::Missed(Miss::Term("p99 ttft < 500ms".to_owned()))
    };
    PointSummary { folder: format!("{number:03}"), point: Point { ask, figures }, standing }
}

pub(crate) fn plan(slo: Option<&str>) -> SweepPlan {
    SweepPlan { slo: slo.map(|slo| slo.parse().unwrap()), ..SweepPlan::default() }
}

pub(crate) fn found() -> Goodput {
    Goodput {
        state: GoodputState::Found,
        because: String::new(),
        slo: "p99 ttft < 500ms".to_owned(),
        axis: Axis::Rate,
        confirmed: Some(22.4),
        rejected: Some(23.1),
        confirmed_rps: Some(22.4),
        rejected_rps: Some(23.1),
        measured: None,
        measured_rps: None,
        attainment: Some(0.993),
        seen_attainment: Some(0.9951),
        attainment_low: Some(0.989),
        attainment_high: Some(0.996),
        crossing: None,
        runs: 2,
        requests: 3000,
        over_claim_risk: Some(0.05),
    }
}

/// Seed's curve: 500 ms are crossed between 20 and 25 requests per second.
pub(crate) fn summary() -> SweepSummary {
    let mut points = vec![
        point(1, 9.0, (90.0, 200.0), 1.0),
        point(2, 5.0, (85.0, 110.0), 1.0),
        point(3, 30.0, (480.0, 2500.0), 0.5),
        point(4, 10.0, (92.0, 180.0), 1.0),
        point(5, 25.0, (220.0, 800.0), 0.9),
        point(6, 15.0, (105.0, 280.0), 0.999),
        point(7, 20.0, (135.0, 450.0), 0.995),
        point(8, 23.1, (180.0, 600.0), 0.97),
        point(9, 22.4, (160.0, 480.0), 0.992),
        point(10, 22.4, (170.0, 495.0), 0.994),
    ];
    points[0].point.ask.purpose = Purpose::WarmUp;
    points[0].point.ask.level = Level::Users(8);
    points[0].point.figures.offered_rps = None;
    points[2].point.figures.over_saturated = Some(true);
    points[2].point.figures.balance = Some(0.8);
    points[2].point.figures.requests_per_s = Some(24.0);
    points[2].point.figures.output_tps = Some(3840.0);
    points[2].standing = PointStanding::Missed(Miss::OverSaturated);
    for place in [8, 9] {
        points[place].point.ask.purpose = Purpose::Confirm;
    }
    SweepSummary {
        schema: SweepSummary::SCHEMA.to_owned(),
        verdict: Verdict::Valid,
        caveats: Vec::new(),
        sweep: SweepFacts {
            version: "0.7.0".to_owned(),
            started: "2026-11-15T10:00:00Z".to_owned(),
            state: SweepState::Complete,
            target: "http://127.0.0.1:8000".to_owned(),
            model: "llama-70b".to_owned(),
            workload: "chat".to_owned(),
            gpus: Some(8),
            estimated: Some(TimeEstimate {
                seconds: 840.0,
                most_seconds: None,
                points: 10,
                parts: Vec::new(),
            }),
            took_s: 792.0,
            ..SweepFacts::default()
        },
        plan: plan(Some("p99 ttft < 500ms")),
        goodput: Some(found()),
        kept_loads: Vec::new(),
        figures: Vec::new(),
        measured_with: None,
        sustained: Some(Sustained {
            level: 22.4,
            seconds: 300.0,
            standing: PointStanding::Met,
            drift: Vec::new(),
        }),
        curve: fit_curve(&points),
        points,
    }
}

fn page(change: impl FnOnce(&mut SweepSummary)) -> String {
    let mut summary = summary();
    change(&mut summary);
    sweep_text(&summary, Detail::Full)
}

/// A field in one line.
fn one_line(page: &str, label: &str) -> String {
    let from = page.lines().skip_while(|line| !line.starts_with(label));
    let rest = from.clone().skip(1).take_while(|line| line.starts_with("            "));
    let lines: Vec<&str> = from.take(1).chain(rest).flat_map(str::split_whitespace).collect();
    lines.join(" ")
}

fn has(page: &str, line: &str) {
    assert!(page.contains(line), "{line:?} is not in\n{page}");
}

#[test]
fn levels_that_are_too_short_to_judge_are_named() {
    let mut summary = summary();
    summary.curve.knee = Some(Knee { level: 40.0, beyond: None });
    summary.curve.too_short = vec![60.0, 90.0];
    let knee = one_line(&sweep_text(&summary, Detail::Full), "Knee");
    assert!(knee.ends_with("; 60.0 and 90.0 were too short to judge"), "{knee}");
    summary.curve.knee = None;
    let knee = one_line(&sweep_text(&summary, Detail::Full), "Knee");
    assert_eq!(knee, "Knee undecided: 60.0 and 90.0 were too short to judge");
}

#[test]
fn where_a_run_is_in_doubt_its_point_says_so() {
    let mut summary = summary();
    let point = &mut summary.points[2];
    point.point.figures.slo_state = Some(SloState::Undecided);
    point.standing = PointStanding::Met;
    assert_eq!(point_standing_text(point), "kept (undecided)");
    point.standing = PointStanding::Missed(Miss::Term("p99 ttft < 500ms".to_owned()));
    assert_eq!(point_standing_text(point), "missed (undecided): p99 ttft < 500ms");
    point.standing = PointStanding::Unclear(Unclear::GivenUpTooEarly);
    assert!(point_standing_text(point).starts_with("unclear: stopped early"));
    // Beyond doubt.
    point.point.figures.slo_state = Some(SloState::Met);
    point.standing = PointStanding::Met;
    assert_eq!(point_standing_text(point), "kept");
}

#[test]
fn the_answer_comes_first() {
    let page = page(|_| {});
    assert!(page.starts_with(
        "http://127.0.0.1:8000\nmodel llama-70b · 2026-11-15T10:00:00Z · goodput 0.7.0\n"
    ));
    assert_eq!(
        one_line(&page, "Goodput"),
        "Goodput 22.4 req/s (22.4 confirmed, 23.1 over the limit) with p99 ttft < 500ms: \
         attainment 99.3 % (98.9–99.6) by the fit, 99.5 % in 2 runs with 3,000 requests; the limit \
         is more than 3 % below it with a probability of about 5 %"
    );
    assert_eq!(
        one_line(&page, "Knee"),
        "Knee 25.0 req/s is the highest rate that the server delivers (99 %) without a growing \
         queue; not at 30.0"
    );
    let sustained = "Sustained 5.0 min at 22.4 req/s: kept the SLO; no drift";
    assert_eq!(one_line(&page, "Sustained"), sustained);
    assert_eq!(one_line(&page, "Time"), "Time 13.2 min; estimated before: about 14 min (-6 %)");
    let order =
        ["Goodput ", "Knee ", "Sustained ", "Verdict ", "TTFT in ms", "Requests per second"];
    let order = order.into_iter().chain(["per GPU", "  #", "Kneedle ", "USL ", "Time "]);
    let places: Vec<usize> = order.map(|label| page.find(label).expect(label)).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn every_kind_of_answer() {
    let answer = |change: fn(&mut Goodput)| {
        let page = page(|summary| change(summary.goodput.as_mut().unwrap()));
        one_line(&page, "Goodput")
    };
    assert_eq!(
        answer(|goodput| {
            (goodput.state, goodput.rejected) = (GoodputState::AtLeast, None);
            goodput.because = "--to was reached".to_owned();
        }),
        "Goodput at least 22.4 req/s (22.4 confirmed; --to was reached) with p99 ttft < 500ms: \
         attainment 99.3 % (98.9–99.6) by the fit, 99.5 % in 2 runs with 3,000 requests"
    );
    assert_eq!(
        answer(|goodput| {
            (goodput.state, goodput.confirmed) = (GoodputState::Unreachable, None);
            goodput.because = "at 0.10 req/s p99 TTFT is 900 ms".to_owned();
        }),
        "Goodput no load keeps p99 ttft < 500ms: at 0.10 req/s p99 TTFT is 900 ms"
    );
    assert_eq!(
        answer(|goodput| {
            (goodput.state, goodput.confirmed) = (GoodputState::Unclear, None);
            goodput.because = "the server changed in between".to_owned();
        }),
        "Goodput undecided what load keeps p99 ttft < 500ms, because the server changed in between"
    );
    let users = answer(|goodput| {
        (goodput.axis, goodput.confirmed, goodput.rejected) =
            (Axis::Concurrency, Some(32.0), Some(36.0));
        goodput.crossing = Some(Bounded { value: 34.0, low: Some(31.0), high: None });
    });
    assert!(
        users.starts_with("Goodput 32 users (32 confirmed, 36 over the limit) with "),
        "{users}"
    );
    assert!(users.contains(": 22.4 req/s, attainment"), "{users}");
    assert!(users.ends_with("puts the limit at 34 (31–…) users"), "{users}");
    // A void result has no good news.
    let void = page(|summary| summary.verdict = Verdict::Void);
    let void = one_line(&void, "Goodput");
    assert!(void.starts_with("Goodput NOT SHOWN: these numbers are void: 22.4"), "{void}");
    let none = page(|summary| (summary.goodput, summary.plan.slo) = (None, None));
    has(&none, "Goodput     not searched for: no --slo was given\n");
    assert!(!none.contains("the SLO\n"), "{none}");
}

#[test]
fn charts_show_the_promise_and_the_answer() {
    let page = page(|_| {});
    has(&page, "TTFT in ms (logarithmic) over offered req/s\n");
    has(&page, "x p50   o p90   * p99   ╌ SLO p99 ttft < 500ms   ┊ goodput 22.4\n");
    has(&page, "o answered   x good   ┊ peak 22.5 good req/s at 25.0 req/s\n");
    has(&page, "Output tok/s per GPU (of 8) over tok/s per user (median)\n");
    let tpot = self::page(|summary| {
        summary.plan = plan(Some("tpot < 50ms"));
        summary.sweep.gpus = None;
    });
    has(&tpot, "TPOT in ms (logarithmic) over offered req/s\n");
    has(&tpot, "╌ SLO tpot < 50ms");
    has(&tpot, "Output tok/s of the server (GPU count not given) over");
    // No line for a limit that grows with the prompt, nor for a floor.
    let grows = self::page(|s| s.plan = plan(Some("p99 ttft < 100ms + 0.5ms/token")));
    assert!(grows.contains("TTFT in ms") && !grows.contains("╌"), "{grows}");
    // Levels far apart stand on a logarithmic axis, and the warm-up on none.
    assert!(!page.contains("batch size") && !page.contains("Loops"), "{page}");
}

#[test]
fn tables_show_every_point() {
    let page = page(|_| {});
    has(&page, "     20.0    20.00     80.00    3200.0     400.0     25.00    40.00    4000.0 *\n");
    // Over-saturated: on no front.
    has(&page, "     30.0    24.00     120.0    3840.0     480.0     20.00    50.00    4000.0\n");
    has(&page, "  1      C8 warm-up     540       –   90.00   200.0  ±10%  29.00  39.00  1440.0\n");
    has(&page, "  3    30.0 grid      1,800    80.0   480.0  2500.0  ±10%  50.00  60.00  3840.0\n");
    has(&page, "  3    30.0 grid     50.0 (49.0–50.0)   15.00  missed: queue grows\n");
    has(&page, " 10    22.4 confirm  99.4 (98.4–99.4)   22.27  kept\n");
    assert!(!page.contains('~'), "{page}");
    let few = self::page(|s| s.points[1].point.figures.ttft_ms.p99 = Some(bounded(110.0)));
    has(&few, "  2    5.00 grid        300   100.0   85.00  ~110.0        25.00  35.00   800.0\n");
    has(&few, "~           one end of its interval is unknown\n");
}

fn bounded(value: f64) -> Bounded {
    Bounded { value, low: None, high: None }
}

#[test]
fn open_and_closed_loops_are_compared_where_as_many_are_in_flight() {
    let page = page(|summary| {
        // The third has no partner: 400 are in flight nowhere else.
        for (number, users, p99) in [(11, 40, 150.0), (12, 90, 220.0), (13, 400, 500.0)] {
            let mut twin = point(number, f64::from(users) / 4.0, (90.0, p99), 1.0);
            twin.point.ask.purpose = Purpose::Twin;
            twin.point.ask.level = Level::Users(users);
            twin.point.figures.offered_rps = None;
            summary.points.push(twin);
        }
    });
    has(&page, "     40            40.00     180.0              40.00     150.0   1.20\n");
    has(&page, "     90            89.60     480.0              90.00     220.0   2.18\n");
    let loops = one_line(&page, "Loops");
    let expected = "Loops with 89.6 in flight, p99 TTFT is 480.0 ms in the open loop and 220.0 ms in \
                    the closed one: 2.2 times.";
    assert!(loops.starts_with(expected), "{loops}");
    assert!(!page.contains("\n    400  "), "{page}");
}

#[test]
fn batch_sizes_where_the_server_tells_them() {
    let page = page(|summary| {
        for (place, point) in summary.points.iter_mut().enumerate() {
            point.point.figures.batch = Some(8.0 + 4.0 * place as f64);
        }
    });
    has(&page, "Medians in ms (logarithmic) over the server's batch size\n");
    has(&page, "x TTFT   o TPOT\n");
}

#[test]
fn shapes_are_descriptions() {
    let text = page(|summary| {
        let level = Bounded { value: 21.0, low: Some(18.0), high: Some(24.0) };
        summary.curve.kneedle = Some(goodput_campaign::curve::Kneedle { level, points: 7 });
        summary.curve.usl = Some(goodput_campaign::curve::Usl {
            gamma: 0.6,
            alpha: 0.09,
            beta: 0.0004,
            peak: Some(Bounded { value: 147.0, low: Some(100.0), high: None }),
            points: 9,
            r2: 0.98,
        });
    });
    assert_eq!(
        one_line(&text, "Kneedle"),
        "Kneedle throughput bends at 21.0 (18.0–24.0) req/s (a description, from 7 levels, unstable \
         below 8)"
    );
    assert_eq!(
        one_line(&text, "USL"),
        "USL γ 0.60 req/s, α 0.0900, β 0.000400: peak at 147.0 (100.0–…) in flight, beyond what was \
         measured (a description, from 9 points, R² 0.98)"
    );
    let few = page(|summary| {
        summary.points.truncate(4);
        (summary.curve.kneedle, summary.curve.usl) = (None, None);
    });
    has(&few, "Kneedle     needs 5 levels, has 3\n");
}

/// A page whose foreign text is hostile stays inside its 80 columns and obeys nothing.
#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    let evil = "\x1b[2J\u{202e}日本語\r\n".repeat(9);
    let page = page(|summary| {
        summary.sweep.target.clone_from(&evil);
        summary.sweep.model.clone_from(&evil);
        summary.sweep.workload.clone_from(&evil);
        summary.sweep.started.clone_from(&evil);
        summary.goodput.as_mut().unwrap().slo.clone_from(&evil);
        summary.goodput.as_mut().unwrap().because.clone_from(&evil);
        summary.points[3].standing = PointStanding::Missed(Miss::Term(evil.clone()));
        summary.sustained.as_mut().unwrap().drift = vec![evil.clone()];
        summary.caveats = vec![Caveat::new(CaveatCode::Drifting, Severity::Warn, evil.clone())];
    });
    assert!(!page.contains('\x1b') && !page.contains('\u{202e}') && !page.contains('\r'), "{page}");
    has(&page, "\\u{1b}[2J");
    for line in page.lines() {
        assert!(line.width() <= 80, "{} columns: {line}", line.width());
    }
    let step = sweep_point_line(&summary().points[3], None);
    assert!(step.width() <= 80 && !step.contains('\x1b'), "{step}");
}

#[test]
fn nothing_measured_and_odd_numbers() {
    let none = page(|summary| {
        summary.points.clear();
        summary.curve = fit_curve(&[]);
        summary.sweep.state = SweepState::TargetLost;
    });
    has(&none, "Points      none with usable results\n");
    has(&none, "State       ended because the target became unreachable and did not come back:\n");
    has(&none, "Knee        none found: no level delivered 99 %\n");
    let odd = page(|summary| {
        summary.sweep.took_s = f64::NAN;
        for (point, value) in summary.points.iter_mut().zip([f64::NAN, f64::INFINITY, -1.0, 1e300])
        {
            let figures = &mut point.point.figures;
            (figures.ttft_ms.p99, figures.in_flight) = (Some(bounded(value)), Some(value));
            (figures.output_tps, figures.attainment) = (Some(value), Some(bounded(value)));
            (figures.goodput_rps, figures.batch) = (Some(bounded(value)), Some(value));
            figures.user_tps.p50 = Some(bounded(value));
            point.point.ask.level = Level::Rate(value);
        }
    });
    assert!(odd.lines().all(|line| line.width() <= 80), "{odd}");
}

#[test]
fn before_and_while_it_goes_on() {
    let parts = [("warm-up", 20.0), ("search", 360.0), ("sustained", 300.0)];
    let parts = parts.map(|(name, seconds)| (name.to_owned(), seconds)).to_vec();
    assert_eq!(
        sweep_estimate(&TimeEstimate { seconds: 840.0, most_seconds: None, points: 13, parts }),
        "about 14 min for about 13 points: warm-up 20 s, search 6 min, sustained 5 min"
    );
    let summary = summary();
    assert_eq!(
        sweep_point_line(&summary.points[8], Some(13)),
        "9/13 22.4 req/s confirm: kept · 99.2 % good · TTFT p50/p99 160/480 ms"
    );
    assert_eq!(
        sweep_point_line(&summary.points[2], None),
        "3 30.0 req/s grid: missed: queue grows · 50.0 % good · TTFT p50/p99 480/2500 ms"
    );
    for n in 0..=summary.points.len() {
        let live = sweep_progress_page(&summary.points[..n], &summary.plan, None, "");
        assert!(live.lines().count() <= 20, "{live}");
        assert!(live.lines().all(|line| line.width() <= 80), "{live}");
        has(&live, "no goodput yet\n");
    }
    let answer = summary.goodput.as_ref();
    let live = sweep_progress_page(&summary.points, &summary.plan, answer, "about 5 min left");
    assert!(live.starts_with("10 points · ") && live.contains(" · about 5 min left\n"), "{live}");
    has(&live, "┊ goodput 22.4\n");
    has(&live, "10 22.4 req/s confirm: kept");
    has(&live, "so far with p99 ttft < 500ms: 22.4 req/s kept, 23.1 over the limit\n");
}

#[test]
fn every_standing_has_words() {
    let all = [
        (PointStanding::Missed(Miss::RateLimited), "missed: rejected (429, 503)"),
        (PointStanding::Missed(Miss::Errors), "missed: errors"),
        (PointStanding::Missed(Miss::Attainment), "missed: too few were good"),
        (PointStanding::Unclear(Unclear::Client), "unclear: the client was the limit"),
        (PointStanding::Unclear(Unclear::ServerGone), "unclear: server unreachable"),
    ];
    let long = "p99 ttft < 500ms + 0.25ms/token of the prompt";
    let all = all.into_iter().chain([(
        PointStanding::Missed(Miss::Term(long.to_owned())),
        "missed: p99 ttft < 500ms +\n",
    )]);
    for (state, words) in all {
        let page = page(|summary| summary.points[4].standing = state);
        has(&page, words);
    }
}
