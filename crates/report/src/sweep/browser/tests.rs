//! The page of a sweep: what is on it, in which order, and that nothing from outside is markup.

pub(crate) mod fixture;

use goodput_campaign::sweep::{GoodputState, PointStanding, Purpose};
use goodput_model::{Caveat, CaveatCode, Severity, Verdict};
use goodput_stats::{Distribution, Item, Status};

use super::*;
use crate::explorer::tests::full;
use crate::sweep_html;
use fixture::{Sweep, sweep};

fn page(made: &Sweep) -> String {
    sweep_html(&view(made))
}

fn view(made: &Sweep) -> SweepView<'_> {
    SweepView {
        summary: &made.summary,
        points: &made.points,
        circumstances: &made.circumstances,
        audit: Some(&made.audit),
    }
}

fn changed(change: impl FnOnce(&mut Sweep)) -> String {
    let mut made = sweep().unwrap();
    change(&mut made);
    page(&made)
}

fn has(page: &str, text: &str) {
    assert!(page.contains(text), "{text:?} is not in\n{page}");
}

/// What is inside the figure of this name.
fn figure<'a>(page: &'a str, name: &str) -> &'a str {
    let from = page.split(&format!("<figure id=\"{name}\"")).nth(1);
    from.and_then(|rest| rest.split("</figure>").next()).unwrap_or_default()
}

/// The sentence of the answer.
fn sentence(page: &str) -> &str {
    let from = page.split("class=\"sentence\">").nth(1);
    from.and_then(|rest| rest.split("</p>").next()).unwrap_or_default()
}

#[test]
fn everything_is_there_in_its_order() {
    let page = changed(|_| {});
    assert_eq!(
        sentence(&page),
        "22.4 req/s (21.6–23.1) with p99 TTFT &lt; 500 ms and p99 TPOT &lt; 50 ms"
    );
    let order = [
        "id=\"answer\"",
        "id=\"caveats\"",
        "id=\"ttft-over-load\"",
        "id=\"tpot-over-load\"",
        "id=\"e2e-over-load\"",
        "id=\"throughput-latency\"",
        "id=\"goodput-over-load\"",
        "id=\"attainment-over-load\"",
        "id=\"points\"",
        "id=\"cdf-ttft\"",
        "id=\"user-speed\"",
        "id=\"queue-over-load\"",
        "id=\"energy-over-load\"",
        "id=\"shape\"",
        "id=\"explorer\"",
        "id=\"reproduce\"",
    ];
    let places: Vec<usize> = order.map(|id| page.find(id).expect(id)).to_vec();
    assert!(places.is_sorted(), "{places:?}");
    // The navigation leads to sections that are there, and no id is used twice.
    for part in
        page.split("<nav").nth(1).unwrap().split("</nav>").next().unwrap().split("href=\"#").skip(1)
    {
        let id = part.split('"').next().unwrap();
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
    for word in [
        "22.4 confirmed, 23.1 over the limit",
        "448.0 per GPU (of 8)",
        "estimated before: about 20 min",
    ] {
        has(&page, word);
    }
}

#[test]
fn charts_have_a_mark_for_every_level() {
    let made = sweep().unwrap();
    let page = page(&made);
    let marks = |name: &str| figure(&page, name).matches("class=\"dot\"").count();
    // Eleven points on the curve at eight levels; three percentiles.
    assert_eq!(["ttft-over-load", "tpot-over-load", "e2e-over-load"].map(marks), [24; 3]);
    // Answered, good, and the peak.
    assert_eq!(marks("goodput-over-load"), 17);
    assert_eq!(marks("attainment-over-load"), 8);
    // Every point once, and the knee is none of the others.
    let on_front = made.summary.curve.pareto.len();
    let knee = made.summary.points.iter().position(|point| level_of(point) == 25.0).unwrap();
    let twice = usize::from(made.summary.curve.pareto.contains(&knee));
    assert!(on_front > 3);
    assert_eq!(marks("throughput-latency"), 11 + twice);
    assert_eq!(marks("user-against-gpu"), 11);
    assert_eq!(marks("queue-over-load"), 24);
    assert_eq!(marks("latency-over-batch"), 22);
    assert_eq!(marks("energy-over-load"), 8);
    // One curve for each of the eight levels.
    for name in ["cdf-ttft", "cdf-tpot", "cdf-e2e", "cdf-itl"] {
        let curves = figure(&page, name).matches("<path class=\"t").count();
        assert!(curves >= 8, "{name}: {curves}");
    }
    has(figure(&page, "ttft-over-load"), "SLO p99 ttft &lt; 500ms");
    has(figure(&page, "ttft-over-load"), "goodput 22.4 req/s");
    let files: Vec<String> = sweep_charts(&view(&made)).into_iter().map(|file| file.name).collect();
    assert_eq!(files.len(), page.matches("<figure").count());
    for name in files {
        has(&page, &format!("<figure id=\"{name}\""));
    }
}

#[test]
fn points_lead_to_their_pages() {
    let mut made = sweep().unwrap();
    let whole = page(&made);
    assert_eq!(whole.matches("/report.html\"").count(), 12);
    has(&whole, "<a href=\"points/010/report.html\">points/010</a>");
    // One that cannot be read, one that is not a folder below this page.
    made.points.remove(0);
    for evil in ["javascript:alert(1)//", "../../etc", "/etc", "//host/x", "a b"] {
        evil.clone_into(&mut made.summary.points[1].folder);
        evil.clone_into(&mut made.points[0].folder);
        assert_eq!(page(&made).matches("/report.html\"").count(), 10, "{evil}");
    }
}

#[test]
fn every_kind_of_answer() {
    let answer = |change: fn(&mut goodput_campaign::sweep::Goodput)| {
        sentence(&changed(|made| change(made.summary.goodput.as_mut().unwrap()))).to_owned()
    };
    let slo = "p99 TTFT &lt; 500 ms and p99 TPOT &lt; 50 ms";
    // The interval is that of the limit, wherever the confirmed level lies.
    let outside = answer(|goodput| goodput.crossing.as_mut().unwrap().low = Some(22.5));
    assert_eq!(outside, format!("22.4 req/s (22.5–23.1) with {slo}"));
    let least = answer(|goodput| {
        (goodput.state, goodput.rejected) = (GoodputState::AtLeast, None);
    });
    assert_eq!(least, format!("At least 22.4 req/s with {slo}"));
    let none = answer(|goodput| {
        (goodput.state, goodput.confirmed) = (GoodputState::Unreachable, None);
        goodput.because = "at 0.10 req/s p99 TTFT is 900 ms".to_owned();
    });
    assert_eq!(none, format!("No load keeps {slo}: at 0.10 req/s p99 TTFT is 900 ms"));
    let unclear = answer(|goodput| {
        goodput.state = GoodputState::Unclear;
        goodput.because = "the server changed".to_owned();
    });
    assert_eq!(
        unclear,
        format!(
            "Undecided what load keeps {slo}, because the server changed; 22.4 req/s was confirmed"
        )
    );
    let void = changed(|made| made.summary.verdict = Verdict::Void);
    assert!(sentence(&void).starts_with("These numbers are void: 22.4 req/s"), "{void}");
    let not_asked = changed(|made| (made.summary.goodput, made.summary.plan.slo) = (None, None));
    assert!(sentence(&not_asked).starts_with("25.0 req/s is the highest rate"), "{not_asked}");
    let grows = slo_text(Some(&"p99 ttft < 100ms + 1ms/token, errors < 1%".parse().unwrap()), "");
    assert_eq!(grows, "p99 ttft < 100ms + 1ms/token and errors < 1 %");
}

#[test]
fn little_is_known_and_odd_numbers() {
    let nothing = changed(|made| {
        made.summary.points.clear();
        made.points.clear();
        made.summary.curve = goodput_campaign::curve::fit_curve(&[]);
    });
    assert!(!nothing.contains("<figure") && !nothing.contains("id=\"explorer\""), "{nothing}");
    has(&nothing, "id=\"reproduce\"");
    // No folder can be read: what the summary has is shown all the same.
    let unread = changed(|made| made.points.clear());
    has(&unread, "id=\"ttft-over-load\"");
    assert!(!unread.contains("id=\"cdf-ttft\"") && !unread.contains("id=\"explorer\""));
    let odd = changed(|made| {
        made.summary.sweep.took_s = f64::NAN;
        for (point, value) in
            made.summary.points.iter_mut().skip(1).zip([f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0])
        {
            point.point.ask.level = Level::Rate(value);
            point.point.figures.output_tps = Some(value);
            point.point.figures.in_flight = Some(value);
        }
        let quantiles = vec![(0.0, f64::NAN), (0.5, -1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)];
        let odd = Distribution { n: 1, censored: 1, quantiles, histogram: Vec::new() };
        made.points[3].details.distributions.insert("ttft".to_owned(), odd);
        made.points[3].details.slo_grid.window_s = f64::NAN;
        made.points[4].details.slo_grid.cells.push((u16::MAX, u16::MAX, u64::MAX, u64::MAX));
    });
    let shown = odd.split("<script>").next().unwrap();
    assert!(!shown.contains("NaN") && !shown.contains("inf\""), "{shown}");
}

#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    let evil = "</script><img src=x onerror=alert(1)>\"'&\u{202e}\x1b[2J";
    let page = changed(|made| {
        let text = || evil.to_owned();
        let facts = &mut made.summary.sweep;
        (facts.target, facts.model, facts.workload) = (text(), text(), text());
        (facts.started, facts.version) = (text(), text());
        let goodput = made.summary.goodput.as_mut().unwrap();
        (goodput.slo, goodput.because) = (text(), text());
        made.summary.points[2].standing =
            PointStanding::Missed(goodput_campaign::sweep::Miss::Term(text()));
        made.summary.points[2].folder = text();
        made.summary.points[2].point.figures.doubts = vec![text()];
        made.summary.sustained.as_mut().unwrap().drift = vec![text()];
        made.summary.caveats = vec![Caveat::new(CaveatCode::Drifting, Severity::Warn, text())];
        made.circumstances.facts.push((text(), text()));
        made.circumstances.plan = format!("{evil}\n{evil}");
        made.circumstances.command = text();
        made.audit.items[0].title = text();
        made.audit.items[0].evidence = text();
        made.audit.items[0].advice = text();
    });
    assert!(
        !page.contains("<img") && !page.contains('\u{202e}') && !page.contains('\x1b'),
        "{page}"
    );
    // The page's own script, and its data.
    assert_eq!(page.matches("</script>").count(), 2);
}

/// Twelve points with as much in each as there can be.
#[test]
fn the_largest_page_stays_small() {
    let page = changed(|made| {
        for (place, point) in made.points.iter_mut().enumerate() {
            point.details.slo_grid = full(62);
            let long = 1.0 + place as f64 / 7.0;
            for found in point.details.distributions.values_mut() {
                found.quantiles = (0..200)
                    .map(|step| (f64::from(step) / 199.0, long * 1.07f64.powi(step)))
                    .collect();
            }
        }
        for (place, point) in made.summary.points.iter_mut().enumerate() {
            point.point.ask.level = Level::Rate(3.0 + 2.5 * place as f64);
            point.point.ask.purpose = Purpose::Grid;
        }
    });
    assert!(page.len() < 1_500_000, "{}", page.len());
    assert!(page.len() > 700_000, "not the worst case: {}", page.len());
    // Twelve loads; curves of eight of them can be told apart.
    assert_eq!(page.matches(" (falls behind)</th>").count(), 1);
    has(figure(&page, "cdf-ttft"), "4 loads in between are not shown.");
}

#[test]
fn charts_that_belong_together_stand_side_by_side() {
    let page = changed(|_| {});
    let charts_in = |id: &str| {
        let part = page.split(&format!("<section id=\"{id}\">")).nth(1).unwrap();
        let part = part.split("</section>").next().unwrap();
        let row = part.split("<div class=\"charts\">").nth(1).unwrap_or_default();
        (part.matches("<figure").count(), row.matches("<figure").count())
    };
    assert_eq!(charts_in("latency"), (3, 3));
    assert_eq!(charts_in("goodput"), (2, 2));
    // The front, and percentiles of TTFT and TPOT over throughput.
    assert_eq!(charts_in("throughput"), (3, 2));
}

/// A run by itself tells neither how other loads go nor how another run would; the sweep around it does.
#[test]
fn the_checklist_judges_the_sweep() {
    let with_checks = |made: &mut Sweep| {
        let missing = |check: &str| Item {
            check: check.to_owned(),
            title: check.to_owned(),
            status: Status::Missing,
            evidence: "one alone".to_owned(),
            advice: "measure more".to_owned(),
            ..made.audit.items[0].clone()
        };
        made.audit.items = ["sweep", "repeats", "warmup", "storage"].map(missing).to_vec();
    };
    let checklist = |page: &str| page.split("Checklist of the sweep").nth(1).unwrap().to_owned();
    let row = |check: &str, class: &str, status: &str, evidence: &str, advice: &str| {
        format!(
            "<th scope=\"row\" class=\"\">{check}</th><td class=\"{class}\">{status}</td><td \
             class=\"\">{evidence}</td><td class=\"\">{advice}</td>"
        )
    };
    let page = checklist(&changed(with_checks));
    let loads = "8 loads, from 5 req/s to 31 req/s";
    has(&page, &row("repeats", "good", "ok", "2 runs confirm the goodput", ""));
    assert!(page.contains("before each of 11 points at least 20.0 s of its load"), "{page}");
    has(&page, &row("storage", "doubt", "missing", "one alone", "measure more"));
    has(&page, &row("sweep", "good", "ok", loads, ""));
    // What is missing comes first.
    assert!(page.find("storage") < page.find("repeats"), "{page}");
    let alone = checklist(&changed(|made| {
        with_checks(made);
        made.summary.goodput.as_mut().unwrap().runs = 1;
        made.summary.points.truncate(1);
    }));
    has(&alone, &row("repeats", "doubt", "missing", "one alone", "measure more"));
    has(&alone, &row("sweep", "doubt", "missing", "one alone", "measure more"));
}

/// Headline and explorer give one answer.
#[test]
fn the_explorer_says_what_the_headline_says() {
    let page = changed(|_| {});
    let says = page.split("id=\"slo-says\"").nth(1).unwrap().split("</p>").next().unwrap();
    has(says, &format!("As asked: {}; ", sentence(&page)));
    let none = changed(|made| made.summary.goodput = None);
    let says = none.split("id=\"slo-says\"").nth(1).unwrap().split("</p>").next().unwrap();
    has(says, "(as measured, not confirmed)");
}
