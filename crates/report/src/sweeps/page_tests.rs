//! The page of several configurations.

use goodput_campaign::curve;
use goodput_model::{CaveatCode, Severity, Verdict};

use super::*;
use crate::sweep::browser::tests::fixture::configuration as made;

fn configuration(value: &str, speed: f64) -> Configuration {
    made(value, speed).unwrap()
}

fn failed(value: &str, why: &str) -> Configuration {
    let one = configuration(value, 1.0);
    Configuration { start: None, sweep: None, failed: Some(why.to_owned()), ..one }
}

fn page(configurations: Vec<Configuration>) -> String {
    let (best, because) = curve::best_configuration(&configurations);
    let schema = Sweeps::SCHEMA.to_owned();
    sweeps_html(&Sweeps { schema, verdict: Verdict::Valid, configurations, best, because })
}

fn has(page: &str, text: &str) {
    assert!(page.contains(text), "{text:?} is not in\n{page}");
}

#[test]
fn the_best_one_comes_first_and_all_are_drawn() {
    let log: Vec<String> = (1..=60).map(|n| format!("line {n}")).collect();
    let page = page(vec![
        configuration("2048", 0.9),
        configuration("4096", 1.0),
        failed("8192", &format!("it ended with 1\n{}", log.join("\n"))),
    ]);
    has(
        &page,
        "class=\"sentence\">batch=4096 is best: 22.4 req/s (22.4–23.1) with p99 TTFT &lt; 500 ms",
    );
    has(&page, "<a href=\"configurations/4096/report.html\">batch=4096</a>");
    assert!(!page.contains("configurations/8192/report.html"), "{page}");
    has(&page, "<td class=\"best\">best: 22.4–23.1</td>");
    has(&page, ">20.2–20.8</td>");
    has(&page, "… 20 lines left out\n");
    has(&page, "line 60\n");
    let order =
        ["id=\"answer\"", "id=\"caveats\"", "id=\"configurations\"", "id=\"ttft-over-load\""]
            .into_iter()
            .chain(["id=\"throughput-latency\"", "id=\"goodput-over-load\"", "id=\"failed\""]);
    let places: Vec<usize> = order.map(|id| page.find(id).expect(id)).collect();
    assert!(places.is_sorted(), "{places:?}");
    let figure = page.split("id=\"ttft-over-load\"").nth(1).unwrap();
    let figure = figure.split("</figure>").next().unwrap();
    // Eight levels of each of two.
    assert_eq!(figure.matches("class=\"dot\"").count(), 16);
    assert!(page.len() < 1_500_000);
}

#[test]
fn a_given_load_is_a_table() {
    let one = |value: &str| {
        let mut one = configuration(value, 1.0);
        let sweep = one.sweep.as_mut().unwrap();
        sweep.goodput = None;
        sweep.points.truncate(2);
        one
    };
    let page = page(vec![one("512"), one("1024"), failed("x", "")]);
    has(
        &page,
        "None of these configurations is called best: the sweep did not search for a goodput",
    );
    has(&page, ">5.00 req/s</td><td class=\"\">300</td>");
    has(&page, "unknown reason");
    assert!(!page.contains("<figure"), "{page}");
}

#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    let evil = "</script><img src=x onerror=alert(1)>\"'&\u{202e}";
    let mut one = configuration("1", 1.0);
    one.values.insert(evil.to_owned(), evil.to_owned());
    one.folder = evil.to_owned();
    let sweep = one.sweep.as_mut().unwrap();
    evil.clone_into(&mut sweep.sweep.target);
    sweep.caveats = vec![Caveat::new(CaveatCode::Drifting, Severity::Warn, evil.to_owned())];
    let page = page(vec![one, failed(evil, &format!("{evil}\n{evil}"))]);
    assert!(!page.contains("<img") && !page.contains('\u{202e}'), "{page}");
    assert_eq!(page.matches("</script>").count(), 1);
    // Each caveat says whose it is.
    has(&page, "=&lt;/script&gt;");
    assert_eq!(
        sweeps_html(&Sweeps {
            schema: String::new(),
            verdict: Verdict::Valid,
            configurations: Vec::new(),
            best: Some(7),
            because: String::new(),
        })
        .matches("None of these configurations is called best")
        .count(),
        1
    );
}
