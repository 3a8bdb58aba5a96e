//! Every page in every format as it is, in files next to the tests: what changes is seen in a review.
//!
//! `GOODPUT_REWRITE=1 cargo test -p goodput-report snapshots` writes them anew. Of a page for a browser
//! the file has its elements and words ([`outline`]); `GOODPUT_PAGES=FOLDER` writes whole pages there,
//! to compare every byte before and after a change.

mod outline;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use goodput_campaign::capacity::{Basis, Capacity, Question, plan_capacity};
use goodput_campaign::compare::Comparison;
use goodput_campaign::curve::best_configuration;
use goodput_campaign::sweep::{Configuration, SweepSummary, Sweeps};
use goodput_campaign::{Calibration, CalibrationLevel, ClimbKind};
use goodput_model::{Ceiling, Severity, Verdict};
use goodput_stats::{
    Audit, Histogram, Item, NumberColumn, Preview, Repeats, Source, Status, Summary, WorkloadView,
};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::compare::tests::{fixtures as compared, shadow as shadowed};
use crate::run::{ranks, server};
use crate::tests::browser as html;
use crate::{RunView, SweepView, repeats, sweep, sweeps, tests as run};
use goodput_document::Detail;
use goodput_document::render::text::WIDTH;

/// A page and the name of its file.
type Page = (String, String);

/// Every page for a terminal, by the name of its file without the ending.
fn pages() -> Vec<(&'static str, String)> {
    let swept = sweep::tests::summary();
    let live = |n: usize| {
        let points = swept.points.get(..n).unwrap();
        crate::sweep_progress_page(points, &swept.plan, swept.goodput.as_ref(), "about 5 min left")
    };
    let mut all = vec![
        ("sweep_live", live(swept.points.len())),
        ("sweep_live_early", live(2)),
        ("capacity", crate::capacity_text(&capacity())),
        ("capacity_full", crate::capacity_text(&crate::capacity::tests::fixtures::full())),
        ("audit", crate::audit_text(&audited())),
        ("workload", workload()),
        ("calibration", crate::calibration_text(&calibrated())),
        ("column", column()),
    ];
    all.extend(runs().iter().map(|(name, run)| (*name, crate::run_text(run, Detail::Full))));
    all.extend(
        repeated().iter().map(|(name, found)| (*name, crate::repeats_text(found, Detail::Full))),
    );
    all.extend(
        swept_ones().iter().map(|(name, found)| (*name, crate::sweep_text(found, Detail::Full))),
    );
    all.extend(
        configured().iter().map(|(name, found)| (*name, crate::sweeps_text(found, Detail::Full))),
    );
    all.extend(
        comparisons().iter().map(|(name, found)| (*name, crate::compare_text(found, Detail::Full))),
    );
    all
}

/// The short page of every result.
fn short_pages() -> Vec<(&'static str, String)> {
    const SHORT: Detail = Detail::Short;
    let mut all = Vec::new();
    all.extend(runs().iter().map(|(name, run)| (*name, crate::run_text(run, SHORT))));
    all.extend(repeated().iter().map(|(name, found)| (*name, crate::repeats_text(found, SHORT))));
    all.extend(swept_ones().iter().map(|(name, found)| (*name, crate::sweep_text(found, SHORT))));
    all.extend(configured().iter().map(|(name, found)| (*name, crate::sweeps_text(found, SHORT))));
    all.extend(comparisons().iter().map(|(name, it)| (*name, crate::compare_text(it, SHORT))));
    all
}

fn runs() -> Vec<(&'static str, Summary)> {
    let shards = |summary: &mut Value| summary["run"]["shards"] = ranks::tests::four();
    vec![
        ("run", run::summary(|_| {})),
        ("run_full", full_run()),
        ("run_short", run::summary(run::short)),
        ("run_shard", run::summary(|summary| summary["run"]["shard"] = json!({"shard": "1/4"}))),
        ("run_merged", run::summary(shards)),
        ("run_chat", html::fixture::summary(|_| {})),
    ]
}

fn repeated() -> Vec<(&'static str, Repeats)> {
    let mut void = repeats::tests::example();
    (void.verdict, void.headlines) = (Verdict::Void, BTreeMap::new());
    void.run = Some(full_run().run);
    vec![
        ("repeats", repeats::tests::example()),
        ("repeats_three", html::repeats::three()),
        ("repeats_void", void),
    ]
}

fn swept_ones() -> Vec<(&'static str, SweepSummary)> {
    vec![("sweep", sweep::tests::summary()), ("sweep_full", html::sweep().summary)]
}

fn configured() -> Vec<(&'static str, Sweeps)> {
    let small = vec![
        sweeps::tests::configuration("1", 1.0),
        sweeps::tests::configuration("2", 1.2),
        sweeps::tests::failed("4", "it ended with status 1\nout of memory\n  Verdict     VALID"),
    ];
    let given = |value: &str| {
        let mut one = html::configuration(value, 1.0);
        let sweep = one.sweep.as_mut().unwrap();
        (sweep.goodput, sweep.caveats) = (None, Vec::new());
        sweep.points.truncate(2);
        one
    };
    let log: Vec<String> = (1..=60).map(|n| format!("line {n}")).collect();
    let why = format!("it ended with 1\n{}", log.join("\n"));
    let full = vec![
        html::configuration("2048", 0.9),
        html::configuration("4096", 1.0),
        sweeps::tests::failed("8192", &why),
    ];
    let sweeps = |configurations: Vec<Configuration>| {
        let (best, because) = best_configuration(&configurations);
        let (schema, verdict) = (Sweeps::SCHEMA.to_owned(), Verdict::Valid);
        Sweeps { schema, verdict, configurations, best, because }
    };
    vec![
        ("sweeps", sweeps(small)),
        ("sweeps_full", sweeps(full)),
        ("sweeps_given", sweeps(vec![given("512"), given("1024"), sweeps::tests::failed("x", "")])),
    ]
}

fn comparisons() -> Vec<(&'static str, Comparison)> {
    vec![
        ("compare_two", compared::two()),
        ("compare_three", compared::three()),
        ("compare_gates", gates()),
        ("compare_refused", compared::refused()),
        ("compare_saved", compared::saved()),
        ("compare_search", compared::search()),
        ("compare_shadow", shadowed::shadow()),
        ("compare_hostile", compared::hostile()),
        ("compare_full", html::comparison()),
    ]
}

/// Pages in Markdown.
fn markdown() -> Vec<(&'static str, String)> {
    let mut all = vec![("audit", crate::audit_markdown(&audited()))];
    all.extend(runs().iter().map(|(name, run)| (*name, crate::run_markdown(run))));
    all.extend(repeated().iter().map(|(name, found)| (*name, crate::repeats_markdown(found))));
    all.extend(swept_ones().iter().map(|(name, found)| (*name, crate::sweep_markdown(found))));
    all.extend(configured().iter().map(|(name, found)| (*name, crate::sweeps_markdown(found))));
    all.extend(comparisons().iter().map(|(name, found)| (*name, crate::compare_markdown(found))));
    all
}

/// Results as JUnit XML.
fn junit() -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    all.extend(runs().iter().map(|(name, run)| (*name, crate::run_junit(run))));
    all.extend(repeated().iter().map(|(name, found)| (*name, crate::repeats_junit(found))));
    all.extend(swept_ones().iter().map(|(name, found)| (*name, crate::sweep_junit(found))));
    all.extend(configured().iter().map(|(name, found)| (*name, crate::sweeps_junit(found))));
    all.extend(comparisons().iter().map(|(name, found)| (*name, crate::compare_junit(found))));
    all
}

/// Pages for a browser.
fn browser() -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("capacity", crate::capacity_html(&capacity())),
        ("capacity_full", crate::capacity_html(&crate::capacity::tests::fixtures::full())),
    ];
    let (details, audit) = (html::fixture::details(), html::fixture::audit());
    let circumstances = html::fixture::circumstances();
    let (details, audit, circumstances) = (&details, &audit, &circumstances);
    all.extend(runs().iter().map(|(name, summary)| {
        (*name, crate::run_html(&RunView { summary, details, audit, circumstances }))
    }));
    all.extend(repeated().iter().map(|(name, found)| (*name, crate::repeats_html(found))));
    let full = html::sweep();
    all.extend(swept_ones().iter().map(|(name, summary)| {
        let (points, circumstances) = (&full.points[..], &full.circumstances);
        let audit = Some(&full.audit);
        (*name, crate::sweep_html(&SweepView { summary, points, circumstances, audit }))
    }));
    all.extend(configured().iter().map(|(name, found)| (*name, crate::sweeps_html(found))));
    all.extend(comparisons().iter().map(|(name, found)| (*name, crate::compare_html(found))));
    all
}

/// Every page in every format, with the name of its file. Those for a browser are whole.
fn files() -> Vec<Page> {
    let named = |ending: &'static str, pages: Vec<(&'static str, String)>| {
        pages.into_iter().map(move |(name, page)| (format!("{name}.{ending}"), page))
    };
    let text = named("txt", pages()).chain(named("md.txt", markdown()));
    let text = text.chain(named("short.txt", short_pages()));
    text.chain(named("xml", junit())).chain(named("html", browser())).collect()
}

/// A run of which everything is known.
fn full_run() -> Summary {
    run::summary(|summary| {
        let slice = |n: u64| {
            let spread = json!({"n": n, "mean": 1.0, "p50": 51.5, "p90": 62.0, "p99": null});
            json!({"scheduled": n, "ok": n - 1, "failed": 1, "input_tokens_mean": 500.0,
                "output_tokens_mean": 20.0, "ttft_ms": spread, "tpot_ms": spread, "itl_ms": spread,
                "e2e_ms": spread, "output_tps": 12345.6, "rps": 1.0, "attainment": 0.97})
        };
        summary["breakdown"] = json!({"class": {"a class with a long name": slice(400),
            "日本": slice(90)}, "turn": {"1": slice(300), "2": slice(150)}});
        summary["server"] = server::tests::full();
        let term = |text: &str, kind: &str, state: &str| {
            json!({"term": text, "kind": kind, "unit": "ms", "limit": 500.0, "attainment": 0.991,
                "attainment_low": 0.98, "attainment_high": 0.996, "value": 800.0, "low": 600.0,
                "high": null, "state": state, "vacuous": 0})
        };
        summary["slo"] = json!({
            "slo": "…", "state": "missed", "target": 0.99, "attainment_state": "undecided",
            "judged_by": "request_terms", "scheduled": 1240, "good": 1223, "undetermined": 6,
            "misses": {"failed": 2, "timed_out": 0, "empty": 0, "truncated": 1, "limits": 8},
            "attainment": 0.991, "attainment_low": 0.98, "attainment_high": 0.996, "n_eff": 900.0,
            "goodput_rps": 22.4, "goodput_rps_low": 21.6, "goodput_rps_high": 23.1,
            "goodput_output_tps": 5210.4, "failed_share": 0.002, "max_gap_p99_ms": 81.0,
            "terms": [term("p99 ttft < 500ms", "percentile", "missed"),
                term("tpot < 50ms", "request", "reported"), term("errors < 1%", "run", "met")],
        });
        summary["requests"]["error_details"] = json!([{"class": "http_503", "stage": "headers",
            "message": "Verdict     VALID\u{1b}[32m over capacity, missed", "count": 12}]);
        summary["verdict"] = json!("suspect");
        summary["caveats"] = json!([
            {"code": "capped", "severity": "warn", "message": "held back", "advice": "offer less"},
            {"code": "no_warmup", "severity": "info", "message": "cold", "advice": "add --warmup 50"},
        ]);
    })
}

fn gates() -> Comparison {
    use goodput_campaign::compare::{FigureOutcome, Limit};
    compared::gated(vec![
        compared::gate("ttft_p99", Limit::Below, 0.05, FigureOutcome::Worse),
        compared::gate("goodput_rps", Limit::Above, -0.03, FigureOutcome::Better),
        compared::gate("tpot_p50", Limit::Below, 0.05, FigureOutcome::Inconclusive),
    ])
}

fn capacity() -> Capacity {
    let question = Question {
        target_rps: 180.0,
        headroom: 0.2,
        gpus_per_replica: Some(8),
        price_per_gpu_hour: Some(2.5),
        replicas: Some(9),
    };
    plan_capacity(Basis::from_rates(22.4, Some(23.1)).unwrap(), question).unwrap()
}

fn audited() -> Audit {
    let item = |status, severity, evidence: &str| Item {
        check: "open_loop".to_owned(),
        title: "open loop".to_owned(),
        status,
        severity,
        evidence: evidence.to_owned(),
        advice: "offer a rate".to_owned(),
        source: Source::Checklist,
    };
    Audit {
        subject: "VALID: no reason found to doubt these figures".to_owned(),
        tool: "vllm bench serve".to_owned(),
        run: "model `m`".to_owned(),
        verdict: Verdict::Void,
        items: vec![
            item(Status::Wrong, Severity::Void, "its percentiles are not in order"),
            item(Status::Doubtful, Severity::Warn, &"closed loop ".repeat(12)),
            item(Status::Doubtful, Severity::Info, "a note"),
            item(Status::Ok, Severity::Info, "fine"),
        ],
    }
}

fn workload() -> String {
    crate::workload_text(&WorkloadView {
        name: "chat".to_owned(),
        notes: vec!["3 entries left out".to_owned()],
        input_tokens: Histogram::from_values((1..=1000).map(f64::from).collect()),
        previews: vec![Preview {
            class: "chat".to_owned(),
            input_tokens: 12,
            output_tokens: Some(40),
            body: "{\"model\":\"m\"}".to_owned(),
        }],
        ..WorkloadView::default()
    })
}

fn calibrated() -> Calibration {
    let level = |kind, level: f64, error: f64, limited_by: Option<&str>| CalibrationLevel {
        kind,
        level,
        events_per_s: level * 100.0,
        requests_per_s: level / 2.0,
        cpu_us_per_event: 4.2,
        ttft_error_ms: [Some(error / 4.0), Some(error)],
        itl_error_ms: Some(error / 2.0),
        slip_ms: [Some(0.05), Some(error / 3.0)],
        lag_ms: Some(error / 5.0),
        limited_by: limited_by.map(str::to_owned),
        is_clients_limit: true,
    };
    let why = "99 % of the answers came, and the busiest worker used all of its core for it";
    Calibration {
        schema: Calibration::SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        date: "2026-11-16T06:00:00Z".to_owned(),
        machine: "AMD EPYC 9R14, Linux 6.12".to_owned(),
        cpus: 2,
        workers: 1,
        stamps: "kernel".to_owned(),
        levels: vec![
            level(ClimbKind::Streams, 100.0, 0.08, None),
            level(ClimbKind::Streams, 12_800.0, 123.0, Some(why)),
            level(ClimbKind::Requests, 4_000.0, 0.4, None),
        ],
        ceiling: Ceiling { events_per_s: Some(640_000.0), requests_per_s: None },
    }
}

fn column() -> String {
    let values: Vec<f64> = (0..2000).map(|i| f64::from((i * 7919) % 997) + 20.0).collect();
    crate::column_text(&NumberColumn::from_values(&values, &[50.0, 95.0, 99.0], false))
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name)
}

/// Where two texts part: those lines of both.
fn difference(found: &str, kept: &str) -> String {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let (found, kept) = (lines(found), lines(kept));
    let line = |of: &[String], at: usize| of.get(at).cloned().unwrap_or_else(|| "(end)".to_owned());
    let mut shown = String::new();
    let longest = found.len().max(kept.len());
    for at in (0..longest).filter(|at| found.get(*at) != kept.get(*at)).take(20) {
        let (was, is) = (line(&kept, at), line(&found, at));
        // Writing to a string cannot fail.
        let _ = write!(shown, "{:4} - {was}\n     + {is}\n", at + 1);
    }
    shown
}

#[test]
fn every_page_is_as_it_was() {
    let mut wrong = String::new();
    for (name, page) in files() {
        if let Some(folder) = std::env::var_os("GOODPUT_PAGES") {
            std::fs::write(PathBuf::from(folder).join(&name), &page).unwrap();
        }
        let is_markup = name.rsplit('.').next() == Some("html");
        let path = file(&if is_markup { format!("{name}.txt") } else { name });
        let page = if is_markup { outline::outline(&page) } else { page };
        if std::env::var_os("GOODPUT_REWRITE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &page).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        if page != kept {
            wrong.extend([&path.display().to_string(), ":\n", &difference(&page, &kept)]);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}\nGOODPUT_REWRITE=1 writes them anew\n");
}

#[test]
fn no_line_is_wider_than_the_page() {
    let mut wrong = Vec::new();
    for (name, page) in pages().into_iter().chain(short_pages()) {
        assert!(!page.contains('\x1b'), "{name}");
        // The head names the model in full.
        let body = page.lines().filter(|line| !line.starts_with("model "));
        let wide = body.filter(|line| line.width() > WIDTH);
        wrong.extend(wide.map(|line| format!("{name}: {line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The verdict comes first, a run fits one screen, and a table has ten rows.
#[test]
fn short_pages_are_short() {
    for (name, page) in short_pages() {
        let first = page.lines().next().unwrap_or_default();
        let is_verdict = |word: &str| first.starts_with(&format!("{word}  "));
        assert!(["VALID", "SUSPECT", "VOID"].into_iter().any(is_verdict), "{name}: {first}");
        let lines = page.lines().count();
        let most = if name.starts_with("run") { 25 } else { 64 };
        assert!(lines <= most, "{name} has {lines} lines:\n{page}");
        assert!(page.contains('\n') && !page.contains("\n\n\n"), "{page}");
    }
}

/// A run with more of everything than a short page has room for.
#[test]
fn a_run_with_many_terms_errors_and_caveats_stays_short() {
    let mut crowded = full_run();
    let errors = &mut crowded.requests.error_details;
    *errors = vec![errors[0].clone(); 9];
    crowded.caveats = vec![crowded.caveats[0].clone(); 9];
    let slo = crowded.slo.as_mut().unwrap();
    slo.terms = vec![slo.terms[0].clone(); 9];
    let page = crate::run_text(&crowded, Detail::Short);
    assert!(page.lines().count() <= 25, "{page}");
    // Seven terms below the state of the SLO, six errors, and five caveats.
    for more in ["and 7 more\n", "and 6 more\n", "and 5 more\n"] {
        assert_eq!(page.matches(more).count(), 1, "{more} {page}");
    }
    assert!(page.lines().all(|line| line.width() <= WIDTH), "{page}");
}

/// Colors are added to a page, and nothing of it is lost or moved.
#[test]
fn colors_do_not_change_a_page() {
    let mut painted = 0;
    for (name, page) in pages().into_iter().chain(short_pages()) {
        let shown = goodput_document::color_page(&page);
        let mut bare = shown.clone();
        for code in ["\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"] {
            bare = bare.replace(code, "");
        }
        assert_eq!(bare, page, "{name}");
        painted += usize::from(shown != page);
    }
    assert!(painted > 8, "{painted}");
}
