use goodput_model::SignalKind;

use super::*;
use crate::text::ParsedPage;

#[test]
fn tables_are_sound() {
    for dialect in &DIALECTS {
        for place in dialect.places {
            let kind = place.signal.kind();
            let what = format!("{} {}", dialect.name, place.signal.name());
            assert!(place.parts().count() > 0, "{what}");
            assert!(place.scale > 0.0, "{what}");
            assert!(place.count.is_none() || kind == SignalKind::Histogram, "{what}");
            for part in place.parts() {
                assert!(!part.is_minus || kind == SignalKind::Gauge, "{what}");
                let is_base = !part.name.ends_with("_bucket") && !part.name.ends_with("_count");
                assert!(kind != SignalKind::Histogram || is_base, "{what}");
            }
        }
    }
}

fn gauge(page: &str, place: &FigureSource<'_>) -> Result<Option<f64>, index::Nonsense> {
    let page = ParsedPage::parse(page);
    SeriesIndex::new(&page).gauge(place)
}

#[test]
fn gauges_are_added_and_shares_averaged() {
    let of = |dialect: usize, signal: Signal| {
        *DIALECTS[dialect].places.iter().find(|place| place.signal == signal).unwrap()
    };
    let running = of(0, Signal::Running);
    let share = of(0, Signal::KvUsage);
    let page = |name: &str, values: &[&str]| {
        let lines = values.iter().enumerate();
        let lines = lines.map(|(n, value)| format!("{name}{{engine=\"{n}\"}} {value}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let requests = |values: &[&str]| gauge(&page("vllm:num_requests_running", values), &running);
    assert_eq!(requests(&["3", "4"]), Ok(Some(7.0)));
    assert_eq!(requests(&[]), Ok(None));
    for nonsense in ["NaN", "-1", "+Inf"] {
        assert_eq!(requests(&["3", nonsense]), Err(index::Nonsense));
    }
    let usage = |values: &[&str]| gauge(&page("vllm:kv_cache_usage_perc", values), &share);
    assert_eq!(usage(&["0.2", "0.4", "NaN"]).unwrap().map(|mean| (mean * 1e9).round()), Some(3e8));
    assert_eq!(usage(&["1.0000001"]), Ok(Some(1.0)));
    assert_eq!(usage(&["0"]), Ok(Some(0.0)));
    assert_eq!(usage(&["NaN"]), Ok(None));
    // Percent, where a share belongs.
    assert_eq!(usage(&["40"]), Err(index::Nonsense));
    // A difference of two gauges that were not read at one instant.
    let dynamo = of(6, Signal::Running);
    let page = |active: u32, queued: u32| {
        format!(
            "dynamo_frontend_active_requests {active}\ndynamo_frontend_queued_requests {queued}\n"
        )
    };
    assert_eq!(gauge(&page(5, 2), &dynamo), Ok(Some(3.0)));
    assert_eq!(gauge(&page(1, 2), &dynamo), Ok(Some(0.0)));
    // Engines that do not speculate show zero.
    let length = of(1, Signal::SpeculativeLength);
    assert_eq!(gauge("sglang:spec_accept_length 0.0\n", &length), Ok(None));
    assert_eq!(gauge("sglang:spec_accept_length 2.5\n", &length), Ok(Some(2.5)));
}

fn map(text: &str) -> Result<MetricsMap, String> {
    let map: MetricsMap = toml::from_str(text).map_err(|wrong| wrong.to_string())?;
    map.check().map(|()| map)
}

#[test]
fn maps_are_read_and_checked() {
    let good = map("name = \"mine\"\n[signals]\nrunning = { series = \"my_running\" }\n\
         waiting = { series = [\"a\", \"b\"], labels = { queue = \"gpu\" } }\n\
         ttft = { series = \"first_token_ms\", scale = 0.001 }\n")
    .unwrap();
    assert_eq!(good.signals["running"].series, ["my_running"]);
    assert_eq!(good.signals["running"].scale, 1.0);
    assert_eq!(good.signals["waiting"].series, ["a", "b"]);
    assert_eq!(good.signals["waiting"].labels["queue"], "gpu");
    assert_eq!(good.sources().count(), 3);
    let bad = [
        ("name = \" \"\n[signals]\nrunning = { series = \"a\" }", "`name` is empty"),
        ("name = \"m\"\n[signals]", "`signals` is empty; known are running, waiting"),
        (
            "name = \"m\"\n[signals]\nrunnin = { series = \"a\" }",
            "unknown signal `runnin`; known are",
        ),
        (
            "name = \"m\"\n[signals]\nrunning = { series = [] }",
            "signal `running`: `series` names no",
        ),
        ("name = \"m\"\n[signals]\nrunning = { series = [\"a\", \"a\"] }", "`a` is listed twice"),
        ("name = \"m\"\n[signals]\nrunning = { series = \"a\", scale = 0 }", "`scale` is 0"),
        (
            "name = \"m\"\n[signals]\nttft = { series = \"a_bucket\" }",
            "give `a`, without `_bucket`",
        ),
        ("name = \"m\"\n[signals]\nttft = { series = \"a_sum\" }", "give `a`, without `_sum`"),
        (
            "name = \"m\"\n[signals]\nttft = { series = \"a\", labels = { le = \"1\" } }",
            "label `le`",
        ),
        ("name = \"m\"\n[signals]\nrunning = { series = 7 }", "or a list of names"),
        ("name = \"m\"\n[signals]\nrunning = { serie = \"a\" }", "unknown field"),
        ("[signals]\nrunning = { series = \"a\" }", "missing field"),
    ];
    for (text, message) in bad {
        let wrong = map(text).unwrap_err();
        assert!(wrong.contains(message), "{wrong}");
    }
}

#[test]
fn the_documents_example_works() {
    let page = include_str!("../../../../docs/server-names.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(map(example).unwrap().sources().count(), 7);
    // Every name that is known stands there, without what all names of an engine begin with.
    for dialect in &DIALECTS {
        for part in dialect.places.iter().flat_map(FigureSource::parts) {
            let name =
                part.name.rsplit(':').next().unwrap_or_default().trim_start_matches("trtllm_");
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
    for signal in Signal::ALL {
        assert!(page.contains(&format!("`{}`", signal.name())), "{}", signal.name());
    }
}
