//! Each confounder planted alone: found under its name, with its weight, and nothing else is.

use std::collections::BTreeMap;
use std::time::Duration;

use goodput_model::{
    ArrivalProcess, CalibrationSource, LoadExtent, Mode, Plan, Rate, TokenCalibration,
};
use goodput_stats::{
    CacheSummary, LengthCheck, LevelSummary, RecountSummary, RunFacts, ServerSummary, Summary,
    analyze_run,
};

use super::*;
use crate::sweep::Figures;

fn plan() -> Plan {
    let mut plan = goodput_testkit::test_plan();
    plan.target.extra_body = Some("{\"top_k\":1}".to_owned());
    plan.load.mode = Mode::Open {
        rate: Rate::PerSecond(10.0),
        arrivals: ArrivalProcess::Poisson,
        max_concurrency: Some(64),
    };
    (plan.load.seed, plan.load.duration) = (7, Some(Duration::from_secs(30)));
    plan.load.warmup = LoadExtent::Time(Duration::from_secs(5));
    plan.measure.slo = Some("ttft < 500ms".parse().unwrap());
    plan.measure.attainment = Some(0.99);
    plan
}

fn summary(plan: &Plan) -> Summary {
    let facts = RunFacts {
        version: "0.1".to_owned(),
        model: "m".to_owned(),
        seed: 7,
        workload: "chat: 50 / 10".to_owned(),
        workload_hash: "ab".to_owned(),
        ..RunFacts::default()
    };
    let mut summary = analyze_run(plan, facts, || [].into_iter(), &[], []);
    (summary.window.start_s, summary.window.end_s) = (5.0, 35.0);
    (summary.requests.scheduled, summary.requests.ok, summary.requests.failed) = (300, 290, 10);
    summary.tokens.output = 2_900;
    summary.tokens.output_source = "usage".to_owned();
    summary
}

#[test]
fn facts_of_a_run() {
    let plan = plan();
    let mut summary = summary(&plan);
    let facts = SideFacts::from_run(&plan, &summary, "linux, 2 cores".to_owned());
    assert_eq!(facts.host, "linux, 2 cores");
    assert_eq!(facts.api, "chat, streamed");
    assert_eq!(facts.transport, "HTTP/1.1, connections reuse");
    assert_eq!(facts.load, "open loop, 10/s, poisson, at most 64 in flight");
    assert_eq!(facts.slo, "ttft < 500ms for 99% of requests");
    assert_eq!((facts.extra_body.as_str(), facts.warmup.as_str()), ("{\"top_k\":1}", "5s"));
    assert_eq!((facts.requests, facts.ok, facts.seed), (300, 290, 7));
    assert_eq!(facts.failed_share.to_bits(), (10.0_f64 / 300.0).to_bits());
    assert_eq!(facts.window_s.to_bits(), 30.0_f64.to_bits());
    assert_eq!((facts.output_mean, facts.input_mean), (Some(10.0), None));
    assert_eq!((facts.cached_share, facts.count_with.as_deref()), (None, None));
    summary.lengths.input =
        Some(LengthCheck { planned_mean: 50.0, actual_mean: 51.0, ..LengthCheck::default() });
    summary.cache = Some(CacheSummary { observed: Some(0.25), ..CacheSummary::default() });
    summary.recount = Some(RecountSummary {
        tokenizer: "gpt2".to_owned(),
        n: 290,
        characters: 11_600,
        ..RecountSummary::default()
    });
    summary.client.tcp.min_rtt_ms = Some(0.5);
    let facts = SideFacts::from_run(&plan, &summary, String::new());
    assert_eq!((facts.input_mean, facts.planned_input_mean), (Some(51.0), Some(50.0)));
    assert_eq!((facts.cached_share, facts.characters_mean), (Some(0.25), Some(40.0)));
    assert_eq!((facts.count_with.as_deref(), facts.min_rtt_ms), (Some("gpt2"), Some(0.5)));
}

#[test]
fn a_shape_does_not_depend_on_who_counts() {
    let (one, summary) = (plan(), summary(&plan()));
    let shape = |plan: &Plan| SideFacts::from_run(plan, &summary, String::new()).shape;
    let mut other = one.clone();
    other.load.seed = 8;
    other.workload.name = "mine".to_owned();
    other.workload.count_with = Some("gpt2".to_owned());
    other.workload.calibration = Some(TokenCalibration {
        source: CalibrationSource::Usage,
        template_tokens: 3,
        message_tokens: 0,
        costs: "1112".to_owned(),
    });
    assert_eq!(shape(&one), shape(&other));
    let calibration = SideFacts::from_run(&other, &summary, String::new()).calibration;
    assert!(calibration.starts_with("usage, template 3+0, words "), "{calibration}");
    other.workload.output = goodput_model::OutputLength::Exact;
    assert_ne!(shape(&one), shape(&other));
}

#[test]
fn loads_say_what_makes_them_one() {
    let load = |mode| {
        let mut plan = plan();
        plan.load.mode = mode;
        SideFacts::from_run(&plan, &summary(&plan), String::new()).load
    };
    let open = |rate, max_concurrency| Mode::Open {
        rate,
        arrivals: ArrivalProcess::Constant,
        max_concurrency,
    };
    assert_eq!(load(open(Rate::PerSecond(0.5), None)), "open loop, 0.5/s, constant");
    assert_eq!(load(open(Rate::Infinite, Some(3))), "all at once, at most 3 in flight");
    let closed = |ms, pause_first| Mode::Closed {
        concurrency: 8,
        think_time: Duration::from_millis(ms),
        pause_first,
    };
    assert_eq!(load(closed(0, false)), "closed loop, 8 users");
    assert_eq!(load(closed(1500, true)), "closed loop, 8 users, 1.5 s between requests, first too");
}

/// A side of 1,000 good requests with everything known.
fn side() -> SideFacts {
    SideFacts {
        version: "0.1".to_owned(),
        host: "linux".to_owned(),
        model: "m".to_owned(),
        api: "chat, streamed".to_owned(),
        transport: "HTTP/1.1, connections reuse".to_owned(),
        workload: "chat".to_owned(),
        workload_hash: "aaaa".to_owned(),
        shape: "5".to_owned(),
        calibration: "server, template 3+0, words 1".to_owned(),
        load: "open loop, 10/s, poisson".to_owned(),
        seed: 1,
        window_s: 30.0,
        warmup: "5s".to_owned(),
        slo: "ttft < 500ms".to_owned(),
        extra_body: String::new(),
        cache: "not cleared".to_owned(),
        requests: 1_000,
        judged: 0,
        ok: 1_000,
        failed_share: 0.0,
        output_source: "usage".to_owned(),
        input_mean: Some(500.0),
        planned_input_mean: Some(500.0),
        output_mean: Some(100.0),
        planned_output_mean: Some(100.0),
        characters_mean: Some(400.0),
        cached_share: Some(0.0),
        count_with: Some("gpt2".to_owned()),
        min_rtt_ms: Some(0.2),
        ttft_ms: Some(100.0),
        server: [("engine".to_owned(), "vllm".to_owned())].into(),
    }
}

fn with(change: impl FnOnce(&mut SideFacts)) -> SideFacts {
    let mut facts = side();
    change(&mut facts);
    facts
}

/// Codes and weights of what is found between a plain side and a changed one.
fn found(is_live: bool, change: impl FnOnce(&mut SideFacts)) -> Vec<(String, Matter)> {
    let all = find_differences(&side(), &with(change), 1, is_live);
    assert!(all.iter().all(|one| one.side == 1 && !one.message.is_empty()));
    all.into_iter().map(|one| (one.code, one.matter)).collect()
}

fn is_one(found: &[(String, Matter)], code: &str, matter: Matter) -> bool {
    matches!(found, [(name, weight)] if name == code && *weight == matter)
}

type Plant = fn(&mut SideFacts);

#[test]
fn the_same_is_the_same() {
    assert_eq!(found(true, |_| {}), []);
    assert_eq!(found(false, |_| {}), []);
    assert_eq!(find_differences(&SideFacts::default(), &SideFacts::default(), 1, true), []);
}

#[test]
fn what_servers_did_is_found_live_and_saved() {
    use Matter::{Refuse, Warn};
    let plants: [(&str, Matter, Plant); 22] = [
        ("cache_state", Refuse, |facts| facts.cached_share = Some(0.051)),
        ("cache_state", Warn, |facts| facts.cached_share = Some(0.05)),
        ("cache_state", Warn, |facts| facts.cached_share = Some(0.021)),
        ("cache_state", Warn, |facts| facts.cache = "cleared before the run".to_owned()),
        ("output_length", Refuse, |facts| facts.output_mean = Some(95.0)),
        ("output_length", Refuse, |facts| facts.output_mean = Some(106.0)),
        ("output_length", Warn, |facts| facts.output_mean = Some(98.0)),
        // Both twice as long, and only one asked for it.
        ("output_length", Refuse, |facts| facts.planned_output_mean = Some(50.0)),
        ("tokenizer", Refuse, |facts| facts.input_mean = Some(511.0)),
        ("tokenizer", Warn, |facts| facts.input_mean = Some(503.0)),
        ("failed_share", Refuse, |facts| facts.failed_share = 0.051),
        ("failed_share", Warn, |facts| facts.failed_share = 0.011),
        ("path_rtt", Warn, |facts| facts.min_rtt_ms = Some(5.3)),
        ("path_rtt", Matter::Info, |facts| facts.min_rtt_ms = Some(1.3)),
        ("token_source", Refuse, |facts| facts.output_source = "chunks".to_owned()),
        ("token_source", Refuse, |facts| facts.output_source = "mixed".to_owned()),
        ("token_source", Matter::Info, |facts| facts.output_source = "token_ids".to_owned()),
        ("count_with", Warn, |facts| facts.count_with = Some("o200k".to_owned())),
        ("transport", Warn, |facts| facts.transport = "HTTP/2, connections reuse".to_owned()),
        ("model", Matter::Info, |facts| facts.model = "n".to_owned()),
        ("api", Refuse, |facts| facts.api = "chat, not streamed".to_owned()),
        ("extra_body", Refuse, |facts| facts.extra_body = "{\"top_k\":1}".to_owned()),
    ];
    for (code, matter, plant) in plants {
        for is_live in [true, false] {
            let all = found(is_live, plant);
            assert!(is_one(&all, code, matter), "{code} {matter:?} {is_live}: {all:?}");
            // It does not matter who is the reference.
            let back = find_differences(&with(plant), &side(), 1, is_live);
            assert_eq!((back.len(), back[0].matter), (1, matter), "{code}");
        }
    }
}

#[test]
fn within_the_limits_nothing_is_found() {
    let plants: [Plant; 6] = [
        |facts| facts.cached_share = Some(0.02),
        |facts| facts.output_mean = Some(101.0),
        |facts| facts.input_mean = Some(502.5),
        |facts| facts.failed_share = 0.01,
        |facts| facts.min_rtt_ms = Some(1.2),
        // A closed loop that got further: other prompts and answers, each as planned.
        |facts| {
            (facts.output_mean, facts.planned_output_mean) = (Some(120.0), Some(120.0));
            (facts.input_mean, facts.planned_input_mean) = (Some(600.0), Some(600.0));
        },
    ];
    for (place, plant) in plants.into_iter().enumerate() {
        assert_eq!(found(true, plant), [], "{place}");
        assert_eq!(found(false, plant), [], "{place}");
    }
}

#[test]
fn what_saved_runs_differ_in_cannot_differ_live() {
    use Matter::{Info, Refuse, Warn};
    let plants: [(&str, Matter, Plant); 8] = [
        ("load", Refuse, |facts| facts.load = "open loop, 12/s, poisson".to_owned()),
        ("warmup", Warn, |facts| facts.warmup = "0s".to_owned()),
        ("version", Warn, |facts| facts.version = "0.2".to_owned()),
        ("host", Warn, |facts| facts.host = "macos".to_owned()),
        ("window", Warn, |facts| facts.window_s = 60.0),
        ("window", Info, |facts| facts.window_s = 40.0),
        ("seed", Info, |facts| facts.seed = 2),
        ("workload_hash", Warn, |facts| facts.workload_hash = String::new()),
    ];
    for (code, matter, plant) in plants {
        assert!(is_one(&found(false, plant), code, matter), "{code}: {:?}", found(false, plant));
        assert_eq!(found(true, plant), [], "{code}");
    }
    let far: Plant = |facts| facts.min_rtt_ms = Some(60.0);
    assert!(is_one(&found(false, far), "path_rtt", Refuse));
    assert!(is_one(&found(true, far), "path_rtt", Warn), "live paths are as they are");
}

#[test]
fn another_workload_is_refused_and_another_draw_of_it_is_not() {
    let hash = |text: &'static str| move |facts: &mut SideFacts| facts.workload_hash = text.into();
    for is_live in [true, false] {
        let all = found(is_live, hash("bbbb"));
        assert!(is_one(&all, "workload_hash", Matter::Refuse), "{all:?}");
    }
    assert_eq!(found(false, hash("bbbb | aaaa")), [], "a run more, with a seed of its own");
    let other_seed = found(false, |facts| {
        facts.seed = 2;
        facts.workload_hash = "bbbb".to_owned();
    });
    assert!(is_one(&other_seed, "seed", Matter::Info), "{other_seed:?}");
    let other_shape = found(false, |facts| {
        facts.seed = 2;
        facts.shape = "6".to_owned();
        facts.workload_hash = "bbbb".to_owned();
    });
    assert!(is_one(&other_shape, "workload_hash", Matter::Refuse), "{other_shape:?}");
    let all = find_differences(
        &side(),
        &with(|f| (f.workload, f.workload_hash) = ("code".into(), "bbbb".into())),
        2,
        false,
    );
    assert_eq!(all[0].side, 2);
    assert!(
        all[0].message.contains("`chat` on the reference, `code` on this side"),
        "{}",
        all[0].message
    );
    assert!(all[0].message.contains("hash aaaa against bbbb"), "{}", all[0].message);
    assert!(all[0].affects_metric("ttft_p99") && all[0].affects_metric("attainment"));
}

#[test]
fn prompts_cut_to_two_tokenizers_are_named() {
    let all = find_differences(
        &side(),
        &with(|facts| {
            facts.workload_hash = "bbbb".to_owned();
            facts.calibration = "server, template 3+0, words 2".to_owned();
        }),
        1,
        false,
    );
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].code.as_str(), all[0].matter), ("tokenizer", Matter::Refuse));
    assert!(all[0].advice.contains("--count-with"));
    assert!(all[0].affects_metric("tpot_p50") && !all[0].affects_metric("ttft_p50"));
    // The same words, in another template; and words without a count on one side.
    for calibration in ["server, template 9+4, words 1", ""] {
        let own = with(|facts| {
            facts.workload_hash = "bbbb".to_owned();
            facts.calibration = calibration.to_owned();
        });
        let all = find_differences(&side(), &own, 1, false);
        assert_eq!((all[0].code.as_str(), all[0].matter), ("tokenizer", Matter::Warn));
    }
    let counted = found(false, |facts| {
        facts.workload_hash = "bbbb".to_owned();
        facts.calibration = String::new();
        facts.input_mean = Some(600.0);
    });
    assert!(is_one(&counted, "tokenizer", Matter::Refuse), "each once: {counted:?}");
}

#[test]
fn a_difference_spoils_what_it_bears_on() {
    let spoiled = |plant: Plant, metrics: &[&str]| -> Vec<bool> {
        let all = find_differences(&side(), &with(plant), 1, true);
        metrics.iter().map(|metric| all[0].affects_metric(metric)).collect()
    };
    let metrics = ["ttft_p99", "tpot_p50", "e2e_p99", "output_tokens_per_s", "attainment"];
    let shorter: Plant = |facts| facts.output_mean = Some(50.0);
    assert_eq!(spoiled(shorter, &metrics), [false, false, true, true, true]);
    let tokens: Plant = |facts| facts.input_mean = Some(600.0);
    assert_eq!(spoiled(tokens, &metrics), [false, true, false, true, false]);
    let failures: Plant = |facts| facts.failed_share = 0.2;
    assert_eq!(spoiled(failures, &metrics), [true, true, true, true, false]);
    let warm: Plant = |facts| facts.cached_share = Some(0.9);
    assert_eq!(spoiled(warm, &metrics), [true; 5]);
    let slo: Plant = |facts| facts.slo = "ttft < 400ms".to_owned();
    assert_eq!(spoiled(slo, &metrics), [false, false, false, false, true]);
    let both = found(false, |facts| facts.slo = "ttft < 400ms".to_owned());
    assert!(is_one(&both, "slo", Matter::Refuse), "{both:?}");
    let none = found(false, |facts| facts.slo = String::new());
    assert!(is_one(&none, "slo", Matter::Info), "{none:?}");
}

#[test]
fn two_tokenizers_are_compared_by_characters() {
    // As many tokens on both, but those of the candidate hold a tenth less.
    let all = found(true, |facts| {
        facts.input_mean = Some(550.0);
        facts.characters_mean = Some(360.0);
    });
    let refused = |code: &str| (code.to_owned(), Matter::Refuse);
    assert_eq!(all, [refused("tokenizer"), refused("output_length")]);
    // What counts all answers alike is what is left to compare.
    let other = with(|facts| {
        facts.input_mean = Some(550.0);
        facts.characters_mean = Some(360.0);
    });
    let spoiled = |metric: &str| {
        find_differences(&side(), &other, 1, true).iter().any(|found| found.affects_metric(metric))
    };
    assert!(!spoiled("recounted_tokens_per_s") && !spoiled("characters_per_s"));
    assert!(spoiled("e2e_p50") && spoiled("requests_per_s") && spoiled("output_tokens_per_s"));
    // Other tokens, the same text.
    let all = found(true, |facts| {
        facts.input_mean = Some(550.0);
        facts.output_mean = Some(110.0);
    });
    assert_eq!(all, [refused("tokenizer")]);
    // A template that is two tokens longer does not make another tokenizer.
    let short = |input: f64| {
        with(|facts| (facts.input_mean, facts.planned_input_mean) = (Some(input), Some(20.0)))
    };
    let all = find_differences(&short(20.0), &short(22.0), 1, true);
    assert_eq!((all.len(), all[0].matter), (1, Matter::Warn));
}

#[test]
fn answers_of_free_length_differ_by_chance() {
    let free = |ok, mean| {
        with(|facts| {
            facts.ok = ok;
            facts.output_mean = Some(mean);
            facts.planned_output_mean = None;
        })
    };
    let matter = |ok, mean| find_differences(&free(ok, 100.0), &free(ok, mean), 1, true)[0].matter;
    // Two standard errors of 200 answers a side are 20 %, of 20,000 they are 2 %.
    assert_eq!(matter(200, 110.0), Matter::Warn);
    assert_eq!(matter(200, 104.0), Matter::Info);
    assert_eq!(matter(20_000, 104.0), Matter::Warn);
    assert_eq!(matter(20_000, 110.0), Matter::Refuse);
    assert_eq!(matter(200, 125.0), Matter::Refuse);
}

#[test]
fn unknown_caches_are_named_where_there_was_something_in_them() {
    let silent = |share| {
        let reference = with(|facts| facts.cached_share = Some(share));
        find_differences(&reference, &with(|facts| facts.cached_share = None), 1, true)
    };
    assert_eq!(silent(0.02), []);
    let all = silent(0.3);
    assert_eq!((all.len(), all[0].matter), (1, Matter::Warn));
    assert!(all[0].message.starts_with("the reference took 30%"), "{}", all[0].message);
}

#[test]
fn messages_name_both_values_and_are_harmless() {
    let all = find_differences(&side(), &with(|facts| facts.output_mean = Some(80.0)), 1, true);
    assert!(
        all[0].message.contains("100.0 tokens on average on the reference and 80.0 on this side")
    );
    assert!(all[0].message.contains("a difference of 25%"), "{}", all[0].message);
    let hostile = with(|facts| facts.model = format!("\u{1b}]0;{}", "x".repeat(10_000)));
    let all = find_differences(&side(), &hostile, 1, true);
    assert!(!all[0].message.contains('\u{1b}') && all[0].message.len() < 400);
    let odd = with(|facts| {
        facts.output_mean = Some(f64::NAN);
        facts.input_mean = Some(0.0);
        facts.min_rtt_ms = Some(f64::INFINITY);
        facts.window_s = f64::NAN;
        facts.failed_share = f64::NAN;
    });
    assert!(!find_differences(&side(), &odd, 1, false).is_empty());
}

#[test]
fn runs_of_a_side_are_taken_together() {
    let one = with(|facts| {
        facts.ok = 300;
        facts.requests = 300;
        facts.min_rtt_ms = Some(0.3);
    });
    let other = with(|facts| {
        facts.ok = 100;
        facts.requests = 200;
        facts.failed_share = 0.5;
        facts.output_mean = Some(80.0);
        facts.characters_mean = None;
        facts.workload_hash = "bbbb".to_owned();
        facts.seed = 2;
        facts.window_s = 60.0;
        facts.count_with = None;
    });
    let both = SideFacts::merge(&[&one, &other]);
    assert_eq!((both.ok, both.requests, both.seed), (400, 500, 1));
    assert_eq!(both.output_mean, Some(95.0));
    assert_eq!(both.characters_mean, Some(400.0));
    assert_eq!(both.failed_share.to_bits(), 0.2_f64.to_bits());
    assert_eq!((both.window_s.to_bits(), both.min_rtt_ms), (45.0_f64.to_bits(), Some(0.2)));
    assert_eq!(both.workload_hash, "aaaa | bbbb");
    assert_eq!(
        (both.load.as_str(), both.count_with.as_deref()),
        ("open loop, 10/s, poisson", Some("gpt2"))
    );
    assert_eq!(SideFacts::merge(&[&both, &one]).workload_hash, "aaaa | bbbb");
    assert_eq!(SideFacts::merge(&[&other, &one]).workload_hash, "aaaa | bbbb", "in any order");
    // Known from the definition of FNV-1a.
    assert_eq!(
        [text_fingerprint(""), text_fingerprint("a")],
        ["cbf29ce484222325", "af63dc4c8601ec8c"]
    );
    let nothing = with(|facts| (facts.ok, facts.requests) = (0, 0));
    assert_eq!(SideFacts::merge(&[&nothing]).output_mean, Some(100.0));
    assert_eq!(SideFacts::merge(&[]), SideFacts::default());
}

#[test]
fn the_batch_of_a_point_is_what_the_server_says() {
    let mut summary = summary(&plan());
    assert_eq!(Figures::from_summary(&summary).batch, None);
    let running = LevelSummary { mean: 6.5, ..LevelSummary::default() };
    let levels = BTreeMap::from([("running".to_owned(), running)]);
    summary.server = Some(ServerSummary { levels, ..ServerSummary::default() });
    assert_eq!(Figures::from_summary(&summary).batch, Some(6.5));
}
