//! The page of a run: its sections, its charts, its numbers, and what it makes of foreign text.

use goodput_stats::{Audit, Details, Summary};
use serde_json::{Value, json};

use super::fixture::{audit, circumstances, details, summary};
use crate::view::{Circumstances, RunView};
use crate::{run_charts, run_html, run_text};

/// Every section, in the order of the page.
const ALL: [&str; 16] = [
    "answer",
    "caveats",
    "latency",
    "distributions",
    "steps",
    "positions",
    "stalls",
    "timeline",
    "breakdowns",
    "server",
    "gpu",
    "client",
    "errors",
    "slo",
    "reproduce",
    "checklist",
];

fn page_of(summary: &Summary, details: &Details) -> String {
    let (audit, circumstances) = (audit(), circumstances());
    run_html(&RunView { summary, details, audit: &audit, circumstances: &circumstances })
}

fn page(change: impl FnOnce(&mut Value)) -> String {
    page_of(&summary(change), &details())
}

/// Ids in the order of the page; an explorer may stand among them.
fn ids(page: &str) -> Vec<&str> {
    // Parts of a section have names too.
    let answer = page.split("<div id=\"").skip(1).filter(|rest| rest.starts_with("answer\""));
    let sections = page.split("<section id=\"").skip(1);
    let ids = answer.chain(sections).filter_map(|rest| rest.split('"').next());
    ids.filter(|id| *id != "explorer").collect()
}

fn links(page: &str) -> Vec<&str> {
    let nav = page.split("<nav").nth(1).and_then(|rest| rest.split("</nav>").next()).unwrap();
    let ids = nav.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next());
    ids.filter(|id| *id != "explorer").collect()
}

/// The answer's sentence.
fn sentence(page: &str) -> &str {
    let rest = page.split("class=\"sentence\">").nth(1).unwrap();
    rest.split('<').next().unwrap()
}

/// What a reader sees of a part, without markup.
fn seen(page: &str, id: &str) -> String {
    let part = page.split(&format!("<section id=\"{id}\">")).nth(1).unwrap();
    let part = part.split("</section>").next().unwrap();
    let mut out = String::new();
    let mut inside = true;
    for c in part.chars() {
        match c {
            '<' => inside = false,
            '>' => {
                inside = true;
                out.push(' ');
            }
            c if inside => out.push(c),
            _ => {}
        }
    }
    let out = out.replace("&#39;", "'");
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn sections_come_in_their_order_and_can_be_reached() {
    let page = page(|_| {});
    assert_eq!(ids(&page), ALL);
    assert_eq!(links(&page), ALL);
    assert!(page.len() < 400_000, "{}", page.len());
    let drawn = page.split("<script>").next().unwrap();
    assert!(!drawn.contains("NaN") && !drawn.contains("inf "), "a number that is none");
}

#[test]
fn what_is_not_known_has_no_section() {
    let bare = summary(|value| {
        for name in ["server", "gpu", "slo", "waterfall", "breakdown", "client"] {
            value.as_object_mut().unwrap().remove(name);
        }
        value["requests"]["error_details"] = json!([]);
    });
    let empty = Audit { items: Vec::new(), ..audit() };
    let view = RunView {
        summary: &bare,
        details: &Details::default(),
        audit: &empty,
        circumstances: &Circumstances::default(),
    };
    let page = run_html(&view);
    let left = ["answer", "caveats", "latency", "client", "reproduce"];
    assert_eq!(ids(&page), left);
    assert_eq!(links(&page), left);
    assert!(!page.contains("<figure"), "nothing is drawn");
    assert!(run_charts(&view).is_empty());
}

#[test]
fn the_answer_is_what_was_promised_or_carried() {
    assert_eq!(
        sentence(&page(|_| {})).replace('\u{a0}', " "),
        "22.2 req/s (22.1–22.3) of goodput with p99 ttft &lt; 500ms, p99 tpot &lt; 50ms: met; 99.0 % \
         (98.5 %–99.4 %) of 2,688 requests were good"
    );
    let without = page(|value| {
        value["slo"] = Value::Null;
        value["metrics"]["ttft"]["percentiles"]["99"] =
            json!({"value": 395.6, "low": 364.3, "high": 426.9, "quality": "ok"});
        let tpot = json!({"value": 29.7, "low": null, "high": null, "quality": "not_estimable"});
        value["metrics"]["tpot"]["n"] = json!(40);
        value["metrics"]["tpot"]["percentiles"]["99"] = tpot;
        value["metrics"]["tpot"]["percentiles"]["90"] = json!({"value": 25.5, "low": 24.0, "high": null, "high_is_censored": true,
                "quality": "few"});
    });
    assert_eq!(
        sentence(&without).replace('\u{a0}', " "),
        "22.4 req/s carried with p99 TTFT 395.6 ms (364.3–426.9) and p90 TPOT ~25.50 ms \
         (24.00–&gt;limit)"
    );
}

/// A run of a few requests says what it can.
#[test]
fn a_short_run_has_its_median_and_what_is_sure() {
    let page = page(|value| {
        value["slo"] = Value::Null;
        crate::tests::short(value);
    });
    assert_eq!(
        sentence(&page).replace('\u{a0}', " "),
        "22.4 req/s carried with median TTFT ~442.0 ms (16 requests) and median TPOT ~21.50 ms (16 \
         requests)"
    );
    let tiles: Vec<_> = page.split("class=\"cards\"").nth(1).unwrap().split("<div>").collect();
    for tile in [
        "<dt>TTFT p50, ms</dt><dd class=\"figure\">~442.0</dd><dd class=\"note\">≥ 420.5</dd>",
        // Sixteen have neither a p99 nor a p95.
        "<dt>TTFT p90, ms</dt><dd class=\"figure\">~601.5</dd><dd class=\"note\">≥ 512.2</dd>",
        "<dt>TPOT p50, ms</dt><dd class=\"figure\">~21.50</dd><dd class=\"note\">≤ 24.75</dd>",
    ] {
        assert!(tiles.iter().any(|found| found.contains(tile)), "{tile}\n{tiles:#?}");
    }
    let latency = seen(&page, "latency");
    assert!(latency.contains(" 16 460.0 ≥ 431.2 ~442.0 ≥ 420.5 ~601.5 ≥ 512.2 n/e 720.5"));
    assert!(
        latency.contains("p99 needs 1,000 requests to stand alone: --duration 35m at this rate")
    );
    let cdf = seen(&page, "distributions");
    assert!(cdf.contains("50 % are at most 442.0 ms, 90 % are at most 601.5 ms"), "{cdf}");
}

#[test]
fn a_void_run_has_no_headline() {
    let page = page(|value| {
        value["verdict"] = json!("void");
        value["caveats"] = json!([
            {"code": "capped", "severity": "info", "message": "a note"},
            {"code": "schedule_slip", "severity": "void", "message": "sent 80 ms late"}]);
    });
    assert_eq!(sentence(&page), "No result: these numbers are void: sent 80 ms late");
    let top = page.split("<section id=\"latency\"").next().unwrap();
    assert!(!top.contains("class=\"cards\""), "no figures stand out");
    assert!(top.contains("void: not to be used"));
    // The worst comes first.
    let caveats = seen(&page, "caveats");
    assert!(
        caveats.starts_with("Caveats void sent 80 ms late schedule_slip note a note"),
        "{caveats}"
    );
    assert!(seen(&page, "slo").contains("NOT SHOWN"));
    assert!(!page.contains("id=\"explorer\"") && !page.contains("slo-data\">"));
    assert!(!page.contains("class=\"good\">met"), "no good news");
}

/// The table for a browser says what that for a terminal says.
#[test]
fn numbers_are_those_of_the_text_page() {
    let summary = summary(|value| {
        let ttft = &mut value["metrics"]["ttft"];
        ttft["censored"] = json!(3);
        ttft["percentiles"]["99.9"] =
            json!({"value": null, "low": null, "high": null, "is_censored": true, "quality": "ok"});
        ttft["percentiles"]["99"]["quality"] = json!("rough");
        ttft["percentiles"]["99"]["high"] = Value::Null;
        value["metrics"]["e2e"]["n"] = json!(40);
        value["metrics"]["e2e"]["percentiles"]["99"]["quality"] = json!("not_estimable");
    });
    let words = run_text(&summary, crate::Detail::Full);
    let page = page_of(&summary, &details());
    let html = seen(&page, "latency");
    for label in ["TTFT ±0.1", "TPOT", "ITL ±0.09", "Max gap", "E2E", "tok/s each"] {
        let line = words.lines().find(|line| line.starts_with(label)).unwrap();
        let row = html.split(&format!(" {label} ")).nth(1).unwrap().replace(',', "");
        for figure in line.trim_start_matches(label).split_whitespace() {
            let figure = figure.replace('>', "&gt;");
            assert!(row.contains(&figure), "{label}: {figure} is not in {row}");
        }
    }
    assert!(
        ["~395.6 ≥ 364.3", "n/e", "3 &gt; limit"].iter().all(|part| html.contains(part)),
        "{html}"
    );
    let joined = words.split_whitespace().collect::<Vec<_>>().join(" ");
    for (id, part) in
        [("latency", "Throughput"), ("server", "Queue"), ("gpu", "Energy"), ("slo", "Goodput")]
    {
        let prose = seen(&page, id);
        let prose = prose.split(&format!(" {part} ")).nth(1).unwrap();
        let begin: String = prose.chars().take(60).collect();
        assert!(joined.contains(&format!("{part} {begin}")), "{part} {begin}");
    }
}

#[test]
fn every_point_is_drawn() {
    let (summary, details) = (summary(|_| {}), details());
    let (audit, circumstances) = (audit(), circumstances());
    let view = RunView {
        summary: &summary,
        details: &details,
        audit: &audit,
        circumstances: &circumstances,
    };
    let charts = run_charts(&view);
    let chart = |name: &str| &charts.iter().find(|chart| chart.name == name).unwrap().svg;
    assert_eq!(charts.len(), 19);
    // As many corners as the line has points, and a mark for each point that has one.
    let corners = |svg: &str| {
        let path = svg.split("data-name=").nth(1).and_then(|rest| rest.split(" d=\"").nth(1));
        let path = path.and_then(|rest| rest.split('"').next()).unwrap();
        path.matches(['L', 'M']).count()
    };
    assert_eq!(corners(chart("cdf-ttft")), 200);
    assert_eq!(corners(chart("timeline-tokens")), 312);
    let full = details.distributions["e2e"].histogram.iter().filter(|(_, n)| *n > 0).count();
    assert_eq!(chart("histogram-e2e").matches("<rect class=\"t3 mark\"").count(), full);
    assert_eq!(chart("itl-position").matches("class=\"dot\"").count(), 8 * 3);
    assert_eq!(chart("stalls").matches("class=\"dot\"").count(), 60);
    assert_eq!(chart("timeline-errors").matches("<rect class=\"t5 mark\"").count(), 3);
    // Steps that took time.
    assert_eq!(chart("ttft-steps").matches("class=\"part\"").count(), 5 + 7);
    let page = page_of(&summary, &details);
    for chart in &charts {
        assert!(page.contains(&format!("<figure id=\"{}\"", chart.name)), "{}", chart.name);
        assert!(chart.svg.contains("<style>") && !chart.svg.contains("NaN"), "{}", chart.name);
    }
}

/// Replaces every text in a value.
fn poison(value: &mut Value, text: &str, keep: &[&str]) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| poison(one, text, keep)),
        Value::Object(all) => {
            for (name, one) in all.iter_mut() {
                match one {
                    Value::String(old) if !keep.contains(&name.as_str()) => *old = text.to_owned(),
                    one => poison(one, text, keep),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn foreign_text_is_text_wherever_it_stands() {
    let hostile = "</script><img src=x onerror=alert(1)>\"'&\u{202e}\u{1b}";
    let summary = summary(|value| {
        // What must be one of a few words.
        let words =
            ["verdict", "code", "severity", "state", "quality", "ended_by", "attainment_state"];
        poison(value, hostile, &words);
        value["run"]["notes"] = json!([hostile]);
        let breakdown = value["breakdown"]["class"].clone();
        value["breakdown"] = json!({hostile: {hostile: breakdown["chat"]}});
        value["client"]["threads"] = json!({hostile: value["client"]["threads"]["pacer"]});
        value["run"]["system"] = json!({"found": {"engine": hostile}, "said": {hostile: hostile}});
        value["gpu"]["devices"][0]["throttled"] = json!({hostile: 0.5});
    });
    let mut audit = audit();
    for item in &mut audit.items {
        for text in [&mut item.title, &mut item.evidence, &mut item.advice, &mut item.check] {
            hostile.clone_into(text);
        }
    }
    let circumstances = Circumstances {
        facts: vec![(hostile.to_owned(), hostile.to_owned())],
        plan: format!("{hostile}\n{hostile}"),
        command: hostile.to_owned(),
    };
    let details = details();
    let view = RunView {
        summary: &summary,
        details: &details,
        audit: &audit,
        circumstances: &circumstances,
    };
    let page = run_html(&view);
    assert!(page.matches("&lt;img src=x").count() > 40, "it is there");
    assert!(!page.contains("<img") && !page.contains('\u{202e}') && !page.contains('\u{1b}'));
    // The page's own script, and data if there are any.
    let scripts = page.matches("<script").count();
    assert_eq!(page.matches("</script>").count(), scripts);
    assert_eq!(page.matches("<script>").count(), 1);
    // No attribute was left: quotes come in pairs inside every tag.
    let body = page.split("</style>").nth(1).unwrap().split("<script>").next().unwrap();
    for tag in body.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
    for chart in run_charts(&view) {
        assert!(!chart.svg.contains("<img") && !chart.svg.contains('\u{202e}'), "{}", chart.name);
    }
}
