//! What a page says, and that it keeps to its format.

use std::collections::{BTreeMap, BTreeSet};

use goodput_engine::Snapshot;
use goodput_model::{GpuSample, Scrape, ServerReading, Signal, SignalValue};
use serde_json::Value;

use super::super::observed::LatestReadings;
use super::super::page::render_page;
use super::*;

/// Takes a page apart as the format has it; samples by name and sorted labels.
pub(super) fn check(page: &str, format: MetricsFormat) -> BTreeMap<String, f64> {
    let is_open = format == MetricsFormat::OpenMetrics;
    assert!(page.ends_with('\n') && page.ends_with("# EOF\n") == is_open);
    let mut samples = BTreeMap::new();
    let mut families = BTreeSet::new();
    let (mut family, mut kind) = (String::new(), String::new());
    // Buckets of the series at hand: the last bound and its count.
    let mut last = (f64::NEG_INFINITY, 0.0);
    let mut lines = page.lines().filter(|line| *line != "# EOF");
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(!text.is_empty() && families.insert(name.to_owned()), "{name} twice");
            let types = lines.next().unwrap().strip_prefix("# TYPE ").unwrap();
            let (same, of) = types.split_once(' ').unwrap();
            assert_eq!(same, name);
            (family, kind) = (name.to_owned(), of.to_owned());
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap();
        assert!(value.is_finite() && value >= 0.0, "{line}");
        let (name, labels) = series.split_once('{').unwrap();
        let labels = take_apart(labels.strip_suffix('}').unwrap());
        match kind.as_str() {
            "gauge" => assert_eq!(name, family),
            "counter" if is_open => assert_eq!(name, format!("{family}_total")),
            "counter" => assert!(name == family && name.ends_with("_total")),
            "histogram" => {
                let part = name.strip_prefix(family.as_str()).unwrap();
                assert!(["_bucket", "_sum", "_count"].contains(&part), "{line}");
                if part == "_bucket" {
                    let text = &labels["le"];
                    assert!(text.contains('.') || text == "+Inf", "{line}");
                    let bound: f64 = text.parse().unwrap();
                    assert!(bound > last.0 && value >= last.1, "{line}");
                    last = (bound, value);
                } else if part == "_count" {
                    assert_eq!(last, (f64::INFINITY, value), "{line}");
                    last = (f64::NEG_INFINITY, 0.0);
                }
            }
            other => panic!("a family of type {other}"),
        }
        let labels: Vec<_> = labels.iter().map(|(key, text)| format!("{key}={text:?}")).collect();
        let key = format!("{name}{{{}}}", labels.join(","));
        assert!(samples.insert(key, value).is_none(), "{line} is there twice");
    }
    samples
}

/// `a="b",c="d"`, with what the format escapes.
fn take_apart(labels: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = labels;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap();
        let (mut text, mut characters) = (String::new(), after.char_indices());
        let end = loop {
            match characters.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => text.push(match characters.next().unwrap().1 {
                    'n' => '\n',
                    escaped @ ('\\' | '"') => escaped,
                    other => panic!("\\{other} is not an escape"),
                }),
                (_, '\n') => panic!("a line break in a label"),
                (_, other) => text.push(other),
            }
        };
        assert!(found.insert(name.to_owned(), text).is_none(), "{name} twice");
        rest = &after[end + 1..];
        assert!(rest.is_empty() || rest.len() > 1 && rest.starts_with(','), "{labels}");
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    found
}

fn tally() -> MetricsTally {
    let mut tally = MetricsTally::new(true);
    // On a bound, and between two.
    tally.add(&record(&[50, 60, 72]));
    tally.add(&record(&[120, 1_120]));
    // Two answers next to each other: no gap between them.
    let mut two = record(&[50, 55, 70]);
    two.exchange.chunks[1].choice = 1;
    tally.add(&two);
    // A refusal has no latency; a request that ran into its limit has a long one.
    tally.add(&failed(ErrorClass::Http(429), &[]));
    tally.add(&failed(ErrorClass::Timeout, &[]));
    tally.add(&failed(ErrorClass::Timeout, &[90]));
    let mut never_sent = failed(ErrorClass::Connect, &[]);
    never_sent.exchange.stamps.sent_first = None;
    tally.add(&never_sent);
    let beat = |lag| goodput_model::LoopLag { worker: 0, due: Nanos::ZERO, lag };
    tally.observe(ms(1_000), &[beat(ms(1)), beat(ms(70))]);
    tally.observe(ms(17_000), &[beat(Nanos::from_micros(80))]);
    tally
}

fn look(facts: RunLabels, tally: MetricsTally) -> RunSnapshot {
    let seen =
        Snapshot { started: 12, ok: 3, failed: 4, tokens: 99, lost: 2, ..Snapshot::default() };
    let offered = planned_load(&facts.load.mode, ms(5_000));
    RunSnapshot {
        facts,
        seen,
        tally,
        readings: LatestReadings::default(),
        stand: RunPosition::Measured,
        elapsed: ms(5_000),
        offered,
    }
}

/// A scrape of this page that says two figures, of which the second is beyond sense.
fn scrape(endpoint: u32, running: f64, kv: f64) -> Scrape {
    let values = [(Signal::Running, running), (Signal::KvUsage, kv)];
    let values = values.map(|(signal, value)| (signal, SignalValue::Number(value)));
    let reading = ServerReading { values: values.into(), ..ServerReading::default() };
    Scrape { at: ms(1), took: ms(1), endpoint, outcome: Ok(reading) }
}

#[test]
fn what_the_server_and_its_gpus_said_last_is_published_again() {
    let mut readings = LatestReadings::default();
    let silent = Scrape { outcome: Err("refused".to_owned()), ..scrape(1, 1.0, 0.5) };
    let first = [scrape(0, 7.0, f64::NAN), scrape(1, 3.0, 0.25)];
    let gpu = |gpu, power_w| GpuSample { gpu, power_w, ..GpuSample::default() };
    let gpus = [gpu(0, Some(300.0)), gpu(1, None)];
    let seen = |scrapes, gpus| Observation { at: ms(1), beats: &[], scrapes, gpus };
    readings.observe(&seen(&first, &gpus));
    // The first says something else now, the second nothing; there is no third word of the GPUs.
    let second = [scrape(0, 9.0, 0.75), silent];
    readings.observe(&seen(&second, &[]));
    // As many sources as there may be.
    let many: Vec<_> = (2..200).map(|endpoint| scrape(endpoint, 1.0, 0.0)).collect();
    readings.observe(&seen(&many, &[]));
    let page = |readings: &LatestReadings| {
        let look = RunSnapshot { readings: readings.clone(), ..look(facts(), tally()) };
        let text = render_page(&[look], MetricsFormat::OpenMetrics);
        check(&text, MetricsFormat::OpenMetrics)
    };
    let samples = page(&readings);
    let of = |name: &str, label: &str| {
        samples.get(&format!("{name}{{{label},run=\"run\",target=\"http://h:1\"}}")).copied()
    };
    let up = |place: &str| of("goodput_server_scrape_success", place);
    assert_eq!([up("endpoint=\"0\""), up("endpoint=\"1\"")], [Some(1.0), Some(0.0)]);
    let running = |place: &str| of("goodput_server_requests_running", place);
    assert_eq!([running("endpoint=\"0\""), running("endpoint=\"1\"")], [Some(9.0), None]);
    assert_eq!(of("goodput_server_kv_usage_ratio", "endpoint=\"0\""), Some(0.75));
    let power = |gpu: &str| {
        samples.get(&format!(
            "goodput_gpu_power_watts{{gpu=\"{gpu}\",run=\"run\",target=\"http://h:1\"}}"
        ))
    };
    assert_eq!([power("0"), power("1")], [Some(&300.0), None]);
    let pages = samples.keys().filter(|name| name.starts_with("goodput_server_scrape_success"));
    assert_eq!(pages.count(), 64);
    let none = page(&LatestReadings::default());
    assert!(none.keys().all(|name| !name.contains("_server_") && !name.contains("_gpu_")));
}

#[test]
fn records_show_on_the_page_as_they_were() {
    let odd = "say \"hi\" \\ a\nb";
    let other = RunLabels { target: odd.to_owned(), stream: false, ..facts() };
    let looks = [look(facts(), tally()), look(other, MetricsTally::new(false))];
    let text = check(&render_page(&looks, MetricsFormat::Text), MetricsFormat::Text);
    assert_eq!(
        check(&render_page(&looks, MetricsFormat::OpenMetrics), MetricsFormat::OpenMetrics),
        text
    );

    let common = r#"run="run",target="http://h:1""#;
    let of = |name: &str| text[&format!("{name}{{{common}}}")];
    let counts = [
        ("goodput_requests_scheduled_total", 12.0),
        ("goodput_requests_sent_total", 6.0),
        ("goodput_requests_in_flight", 5.0),
        ("goodput_requests_ok_total", 3.0),
        ("goodput_output_tokens_total", 99.0),
        ("goodput_prompt_tokens_total", 21.0),
        ("goodput_records_lost_total", 2.0),
        ("goodput_offered_requests_per_second", 20.0),
        ("goodput_run_elapsed_seconds", 5.0),
        ("goodput_ttft_seconds_count", 5.0),
        ("goodput_ttft_seconds_sum", 0.050 + 0.120 + 0.050 + 0.500 + 0.090),
        ("goodput_e2e_seconds_count", 5.0),
        ("goodput_e2e_seconds_sum", 0.072 + 1.120 + 0.070 + 0.500 + 0.090),
        ("goodput_itl_seconds_count", 4.0),
        ("goodput_itl_seconds_sum", 0.010 + 0.012 + 1.0 + 0.020),
        ("goodput_schedule_slip_seconds_count", 6.0),
        ("goodput_client_lag_seconds_count", 3.0),
        // That of 70 ms was 16 s ago.
        ("goodput_client_lag_max_seconds", 0.000_08),
    ];
    for (name, expected) in counts {
        assert!((of(name) - expected).abs() < 1e-9, "{name} is {}, not {expected}", of(name));
    }
    let bucket = |name: &str, le: &str| {
        text[&format!("goodput_{name}_seconds_bucket{{le=\"{le}\",{common}}}")]
    };
    // 50, 50, 90, 120 ms, and one that never came.
    let ttft = ["0.03", "0.05", "0.1", "0.15", "80.0", "+Inf"].map(|le| bucket("ttft", le));
    assert_eq!(ttft, [0.0, 2.0, 3.0, 4.0, 4.0, 5.0]);
    // Both that were given up are longer than anything, whatever they had said.
    let e2e = ["0.05", "0.1", "2.0", "600.0", "+Inf"].map(|le| bucket("e2e", le));
    assert_eq!(e2e, [0.0, 2.0, 3.0, 3.0, 5.0]);
    let itl = ["0.0075", "0.01", "0.015", "0.02", "1.0"].map(|le| bucket("itl", le));
    assert_eq!(itl, [0.0, 1.0, 2.0, 3.0, 4.0]);
    let slip = ["0.001", "0.002"].map(|le| bucket("schedule_slip", le));
    assert_eq!(slip, [0.0, 6.0]);
    let class = |class: &str| {
        text.get(&format!("goodput_requests_failed_total{{class=\"{class}\",{common}}}")).copied()
    };
    let classes = ["timeout", "http_429", "connect", "cut"].map(class);
    assert_eq!(classes, [Some(2.0), Some(1.0), Some(1.0), None]);
    let odd = format!("goodput_ttft_seconds_count{{run=\"run\",target={odd:?}}}");
    assert_eq!(text.get(&odd), Some(&0.0));
}

#[test]
fn a_page_without_runs_and_runs_without_rates_are_pages() {
    for format in [MetricsFormat::Text, MetricsFormat::OpenMetrics] {
        let empty = check(&render_page(&[], format), format);
        assert_eq!(empty.into_values().collect::<Vec<_>>(), [1.0]);
    }
    let think_time = Duration::ZERO;
    let closed = goodput_model::Mode::Closed { concurrency: 8, think_time, pause_first: false };
    let facts = RunLabels { load: Load { mode: closed, ..load() }, ..facts() };
    let mut look = look(facts, MetricsTally::new(true));
    let users = |look: &RunSnapshot| {
        let page = render_page(std::slice::from_ref(look), MetricsFormat::Text);
        assert!(!page.contains("goodput_offered_requests_per_second"));
        check(&page, MetricsFormat::Text)[r#"goodput_users{run="run",target="http://h:1"}"#]
    };
    assert_eq!(users(&look), 8.0);
    look.stand = RunPosition::Drain;
    assert_eq!(users(&look), 0.0);
}

/// Names of ours in a text, as samples have them.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("goodput_")).map(str::to_owned).collect()
}

/// A server and a GPU that tell everything.
fn all_readings() -> LatestReadings {
    let values = Signal::ALL.iter().map(|signal| (*signal, SignalValue::Number(1.0)));
    let reading = ServerReading { values: values.collect(), ..ServerReading::default() };
    let scrape = Scrape { at: ms(1), took: ms(1), endpoint: 0, outcome: Ok(reading) };
    let gpu = GpuSample {
        busy: Some(0.5),
        sm_active: Some(0.5),
        dram_active: Some(0.5),
        memory_used: Some(1.0),
        power_w: Some(1.0),
        temperature_c: Some(1.0),
        throttled: Some(Vec::new()),
        ..GpuSample::default()
    };
    let mut readings = LatestReadings::default();
    readings.observe(&Observation { at: ms(1), beats: &[], scrapes: &[scrape], gpus: &[gpu] });
    readings
}

#[test]
fn dashboard_and_documents_name_the_series_that_there_are() {
    let closed = goodput_model::Mode::Closed {
        concurrency: 8,
        think_time: Duration::ZERO,
        pause_first: false,
    };
    let users = RunLabels { load: Load { mode: closed, ..load() }, ..facts() };
    let full = RunSnapshot { readings: all_readings(), ..look(facts(), tally()) };
    let looks = [full, look(RunLabels { run: "b".to_owned(), ..users }, tally())];
    let page = render_page(&looks, MetricsFormat::Text);
    // A family of buckets has no sample of its own name.
    let is_sample = |line: &&str| !line.starts_with('#');
    let samples: BTreeSet<String> = page.lines().filter(is_sample).flat_map(names).collect();
    let known = names(&page);
    let families: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .map(str::to_owned)
        .collect();

    let guide = include_str!("../../../../../docs/live.md");
    let readme = include_str!("../../../../../integrations/README.md");
    for text in [guide, readme] {
        let unknown: Vec<_> = names(text).difference(&known).cloned().collect();
        assert_eq!(unknown, Vec::<String>::new());
    }
    let told = names(guide);
    let missing: Vec<_> = families.difference(&told).collect();
    assert!(missing.is_empty(), "docs/live.md is silent about {missing:?}");

    let dashboard = include_str!("../../../../../integrations/grafana-goodput.json");
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36);
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert!(variables.iter().any(|variable| variable["type"] == "datasource"));
    let panels = dashboard["panels"].as_array().unwrap();
    let mut used = BTreeSet::new();
    for panel in panels {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let named = names(expression);
            assert!(!named.is_empty(), "{expression} asks for nothing of ours");
            used.extend(named);
        }
    }
    for variable in variables {
        used.extend(names(variable["query"].as_str().unwrap_or_default()));
        used.extend(names(variable["query"]["query"].as_str().unwrap_or_default()));
    }
    let unknown: Vec<_> = used.iter().filter(|name| !samples.contains(*name)).collect();
    assert!(unknown.is_empty(), "the dashboard asks for {unknown:?}");
    for needed in ["goodput_ttft_seconds_bucket", "goodput_requests_in_flight"] {
        assert!(used.contains(needed), "{needed}");
    }
}
