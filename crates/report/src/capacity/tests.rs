//! The page of a plan has everything in its order, with the numbers of the text page.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub(crate) mod fixtures;

use goodput_campaign::capacity::{Basis, PlanNote, Question, plan_capacity};

use super::*;
use fixtures::full;

#[test]
fn sections_stand_in_their_order() {
    let page = capacity_html(&full());
    let ids = ["answer", "basis", "capacity", "latency", "cost", "energy", "traffic", "risk"];
    let ids = ids.into_iter().chain(["fan-out", "assumptions"]);
    let places: Vec<usize> = ids.map(|id| page.find(&format!(" id=\"{id}\"")).expect(id)).collect();
    assert!(places.is_sorted(), "{places:?}");
    // The day is above 80 for four hours on each side of its peak. 100 × 1.2 / 20, eight GPUs each at 2.5, and 3 kW + 100 W for each request/s of 16.67.
    let said = "6 replicas (48 GPUs) carry 100 req/s with 20 % headroom: 120.00 per hour, 87,600 \
                per month, 672.0 kWh per day; of 24 hours 8 are at risk on 4 replicas";
    assert!(page.contains(said), "{}", answer_sentence(&full()));
    let kinds = ["Doubtful: ", "Beyond what", "Assumed: ", "two points of the sweep"];
    assert!(kinds.iter().all(|kind| page.contains(kind)), "{page}");
}

/// Every word and number between the labels of the text page is in the page.
#[test]
fn numbers_are_those_of_the_text_page() {
    let full = full();
    let (page, text) = (capacity_html(&full), capacity_text(&full));
    let flat = page.replace(['<', '>', '/'], " ");
    let numbers = text.split(|c: char| c.is_whitespace() || "();:,/".contains(c));
    let numbers = numbers.filter(|word| word.contains('.') && word.parse::<f64>().is_ok());
    let mut seen = 0;
    for number in numbers {
        assert!(flat.contains(number), "{number} of\n{text}");
        seen += 1;
    }
    assert!(seen > 100, "{seen}");
    // A row of each table, by hand.
    for cell in ["with 20 % headroom", "83.3 %", "100.0 %", "WILL MISS", "at risk"] {
        assert!(page.contains(&format!(">{cell}<")), "{cell}");
    }
}

#[test]
fn the_hours_have_their_capacity_line() {
    let full = full();
    let traffic = full.traffic.as_ref().unwrap();
    let chart = charts::hours_chart(&full, traffic);
    // Each hour, and the end of the last.
    assert!(chart.series.iter().all(|series| series.dots.len() == 25));
    let heights: Vec<f64> = chart
        .rules
        .iter()
        .filter_map(|rule| match rule {
            goodput_document::svg::Rule::Height(height, _) => Some(*height),
            _ => None,
        })
        .collect();
    assert_eq!(heights, [80.0, 88.0]);
    assert!(chart.says.contains("80 req/s that 4 replicas"), "{}", chart.says);
    let levels = charts::miss_chance_chart(&full, traffic);
    assert_eq!(levels.series[0].dots[1].y, 2.5);
    assert_eq!(charts::latency_chart(&full).series[1].dots.len(), 5);
}

#[test]
fn a_figure_that_was_typed_has_a_page_and_names_are_text() {
    let question = Question {
        target_rps: 100.0,
        headroom: 0.2,
        gpus_per_replica: None,
        price_per_gpu_hour: None,
        replicas: None,
    };
    let mut typed = plan_capacity(Basis::from_rates(22.0, None).unwrap(), question).unwrap();
    let evil = "</style><img src=x onerror=alert(1)>\"\u{202e}";
    typed.basis.slo = Some(evil.to_owned());
    (typed.basis.path, typed.basis.about) = (evil.to_owned(), evil.to_owned());
    typed.notes.push(PlanNote::new(PlanNoteKind::Doubt, evil));
    let page = capacity_html(&typed);
    assert!(page.contains("6 replicas carry 100 req/s with 20 % headroom<"), "{page}");
    assert!(page.contains("was given, not measured here"));
    assert!(!page.contains("<img") && !page.contains('\u{202e}'));
    assert_eq!(page.matches("</style>").count(), 1);
    for absent in ["id=\"cost\"", "id=\"traffic\"", "<figure"] {
        assert!(!page.contains(absent), "{absent}");
    }
}
