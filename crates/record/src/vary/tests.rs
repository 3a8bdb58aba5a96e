use goodput_model::Http;
use proptest::prelude::*;

use super::*;

const PLAN: &str = r#"
schema = "goodput.plan/1"
[target]
url = "http://h:8000"
api = "chat"
stream = true
usage = true
http = "http1"
connections = "reuse"
timeout = "10s"
probe = true
wait_ready = "0s"
api_key_env = "KEY"
insecure = false
[[target.headers]]
name = "x-team"
value = "blue"
[load]
seed = 7
duration = "1m"
warmup = "10s"
cooldown = "0s"
drain = "30s"
workers = 2
[load.mode]
kind = "open"
rate = "20/s"
arrivals = "gamma:1.5"
max_concurrency = 9
[workload]
name = "mix"
[[workload.class]]
name = "chat"
share = 0.5
[workload.class.source]
kind = "synthetic"
input = "lognormal:500:0.8:50:4000"
output = "100"
[[workload.class]]
name = "files"
[workload.class.source]
kind = "dataset"
file = "s.json"
[[workload.class]]
name = "rag"
[workload.class.source]
kind = "synthetic"
input = "3000"
output = "9"
[measure]
percentiles = [50.0, 99.0]
slo = "ttft < 500ms"
"#;

fn plan() -> Plan {
    toml::from_str(PLAN).unwrap()
}

fn with(path: &str, value: &str) -> Plan {
    set_value(&plan(), path, value).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(path: &str, value: &str) -> String {
    set_value(&plan(), path, value).unwrap_err().to_string()
}

#[test]
fn values_of_every_kind_are_set() {
    assert_eq!(with("load.seed", "12").load.seed, 12);
    assert_eq!(with("target.http", "http2").target.http, Http::Http2);
    assert_eq!(with("target.timeout", "3s").target.timeout, Duration::from_secs(3));
    assert!(!with("target.stream", "false").target.stream);
    assert_eq!(with("workload.class.0.share", "2").workload.classes[0].share, 2.0);
    assert_eq!(with("measure.percentiles", "[90]").measure.percentiles, [90.0]);
    assert_eq!(with("measure.percentiles.1", "95").measure.percentiles, [50.0, 95.0]);
    let rate = with("load.mode.rate", "22.4").load.mode;
    assert!(matches!(rate, Mode::Open { rate: Rate::PerSecond(22.4), .. }));
    let classes = with("workload.classes.2.source.input", "uniform:5:9").workload.classes;
    let SourcePlan::Synthetic { input, .. } = classes[2].source else { panic!() };
    assert_eq!(input, LengthDistribution::Uniform(5, 9));
}

#[test]
fn values_that_are_left_out_can_be_set() {
    assert_eq!(with("load.num_requests", "300").load.num_requests, Some(300));
    assert_eq!(with("target.model", "70b").target.model.unwrap(), "70b");
    // A text that reads as a number is a text where one is wanted.
    assert_eq!(with("model", "7").target.model.unwrap(), "7");
    assert_eq!(with("measure.attainment", "0.99").measure.attainment, Some(0.99));
    let body = r#"{"top_k": 1}"#;
    assert_eq!(with("target.extra_body", body).target.extra_body.unwrap(), body);
    assert!(with("load.pin", "true").load.pin);
}

#[test]
fn nothing_else_changes() {
    let mut expected = plan();
    expected.load.workers = 5;
    assert_eq!(with("load.workers", "5"), expected);
}

#[test]
fn lengths_are_those_of_every_synthetic_class() {
    for name in ["isl", "workload.isl"] {
        let mut expected = plan();
        for index in [0, 2] {
            let SourcePlan::Synthetic { input, .. } = &mut expected.workload.classes[index].source
            else {
                panic!()
            };
            *input = LengthDistribution::Fixed(2048);
        }
        assert_eq!(with(name, "2048"), expected);
    }
    let classes = with("osl", "exp:50").workload.classes;
    let SourcePlan::Synthetic { output, .. } = classes[0].source else { panic!() };
    assert_eq!(output, LengthDistribution::Exponential(50));
    let classes = with("max_tokens", "64").workload.classes;
    let SourcePlan::Dataset(data) = &classes[1].source else { panic!() };
    assert_eq!(data.output, Some(LengthDistribution::Fixed(64)));
    assert!(refused("max_tokens", "exp:50").contains("not a number of tokens"));
    assert!(refused("isl", "long").contains("`long` is not a length"));
    let mut files = plan();
    files.workload.classes.retain(|class| class.name == "files");
    let error = set_value(&files, "isl", "512").unwrap_err().to_string();
    assert!(error.contains("no class of the workload has lengths"), "{error}");
}

#[test]
fn a_rate_and_a_number_of_users_turn_the_mode() {
    let closed = with("concurrency", "16");
    let expected = Mode::Closed { concurrency: 16, think_time: Duration::ZERO, pause_first: false };
    assert_eq!(closed.load.mode, expected);
    let open = set_value(&closed, "rate", "90/m").unwrap().load.mode;
    let (rate, arrivals) = (Rate::PerSecond(1.5), ArrivalProcess::Poisson);
    assert_eq!(open, Mode::Open { rate, arrivals, max_concurrency: None });
    // An open loop stays what it is but for its rate.
    let (rate, arrivals) = (Rate::PerSecond(5.0), ArrivalProcess::Gamma(1.5));
    assert_eq!(
        with("rate", "5").load.mode,
        Mode::Open { rate, arrivals, max_concurrency: Some(9) }
    );
    assert!(refused("concurrency", "0").contains("not a number of users"));
    assert!(refused("rate", "-1").contains("a positive number"));
}

#[test]
fn a_wrong_path_says_what_is_there() {
    let error = refused("load.mode.burst", "5");
    let there = "`load.mode` holds arrivals, kind, max_concurrency, rate";
    assert!(error.contains("no `load.mode.burst`") && error.contains(there), "{error}");
    assert!(refused("load.sed", "5").contains("did you mean `load.seed`?"));
    // Also what is left out now.
    assert!(refused("load.num_request", "5").contains("did you mean `load.num_requests`?"));
    assert!(refused("timeout", "5s").contains("did you mean `target.timeout`?"));
    assert!(refused("loud.seed", "5").contains("did you mean `load.seed`?"));
    assert!(refused("islx", "5").contains("did you mean `isl`?"));
    let error = refused("nothing.of.that.kind", "5");
    assert!(!error.contains("meant") && error.contains("it holds load, measure"), "{error}");
    let error = refused("workload.class.3.name", "5");
    assert!(error.contains("`workload.class` holds 0, 1, 2"), "{error}");
    let error = refused("load.seed.x", "5");
    assert!(error.contains("`load.seed` is a value and does not contain others"), "{error}");
    for path in ["", ".", "load.", "load..seed", "workload.class.", "workload.class.-1"] {
        assert!(
            matches!(set_value(&plan(), path, "5"), Err(VaryError::NoSuchValue { .. })),
            "{path}"
        );
    }
}

#[test]
fn a_wrong_value_says_what_it_is_now() {
    for (path, value, because, now) in [
        ("load.seed", "x", "it is not a whole number", "it is currently 7"),
        ("load.seed", "-1", "invalid value", "it is currently 7"),
        ("workload.class.0.share", "half", "it is not a number", "it is currently 0.5"),
        ("target.stream", "yes", "neither true nor false", "it is currently true"),
        ("target.http", "http9", "unknown variant `http9`", "it is currently \"http1\""),
        ("load.mode.rate", "fast", "a rate", "it is currently \"20/s\""),
        ("measure.percentiles", "99", "invalid type", "it is currently a list of 2"),
        ("load.mode", "closed", "name one of its values", "it is currently a table of"),
        ("load.mode.kind", "closed", "", "it is currently \"open\""),
    ] {
        let error = refused(path, value);
        let head = format!("`{path}` cannot be `{value}`: ");
        let parts = [head.as_str(), because, now];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    assert!(refused("load.num_requests", "many").contains("cannot be `many`"));
}

/// Every path of the plan with its value as text.
fn leaves_of(plan: &Plan) -> Vec<(String, String)> {
    let whole = Value::try_from(plan).unwrap();
    let mut paths = Vec::new();
    collect_paths(&whole, "", &mut paths);
    let text = |path: &String| match find_value(&whole, path).unwrap().unwrap() {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    paths.iter().map(|path| (path.clone(), text(path))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever a plan holds, set to what it is: nothing changes.
    #[test]
    fn a_plan_set_to_its_own_values_is_the_same(
        seed in 0..u64::MAX / 2,
        share in 0.001f64..1e6,
        rate in 0.001f64..1e6,
        users in prop::option::of(1u32..),
        model in "\\PC*",
        percent in 0.1f64..99.9,
    ) {
        let mut plan = plan();
        plan.load.seed = seed;
        plan.workload.classes[0].share = share;
        plan.target.model = Some(model);
        plan.measure.percentiles = vec![percent];
        plan.load.mode = users.map_or(mode_at_rate(&plan.load.mode, Rate::PerSecond(rate)), |users| mode_with_users(&plan.load.mode, users));
        let leaves = leaves_of(&plan);
        prop_assert!(leaves.len() > 30);
        for (path, value) in leaves {
            let same = set_value(&plan, &path, &value);
            prop_assert!(same.as_ref() == Ok(&plan), "{} {:?} {:?}", path, value, same);
        }
    }
}

proptest! {
    /// No text makes it panic, and what it reads it writes.
    #[test]
    fn any_text_is_read_or_refused(text in "[a-c.=, \"'\\\\0-9é]{0,40}", path in "[a-z.0-9]{0,20}") {
        if let Ok(vary) = text.parse::<Vary>() {
            prop_assert_eq!(vary.to_string().parse::<Vary>(), Ok(vary));
        }
        let _ = set_value(&plan(), &path, &text);
    }

    #[test]
    fn any_values_survive_their_text(values in prop::collection::btree_set("\\PC{0,9}", 1..9)) {
        let vary = Vary { path: "x".to_owned(), values: values.into_iter().collect() };
        prop_assert_eq!(vary.to_string().parse::<Vary>(), Ok(vary));
    }
}

fn vary(text: &str) -> Vary {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn values_are_parted_by_commas() {
    let found = vary("workload.isl=512, 2048 ,8192");
    assert_eq!((found.path.as_str(), found.values.len()), ("workload.isl", 3));
    assert_eq!(found.values, ["512", "2048", "8192"]);
    assert_eq!(
        vary(r#"x=a\,b,"c, d" ,'e"f',"","#.trim_end_matches(',')).values,
        ["a,b", "c, d", "e\"f", ""]
    );
    assert_eq!(vary("x=a=b").values, ["a=b"]);
    for (bad, why) in [
        ("x", "write path=value"),
        ("=1", "write path=value"),
        ("x=", "a value is empty"),
        ("x=1,,2", "a value is empty"),
        ("x=1,2,1", "`1` appears twice"),
        ("x=\"1", "a quote is not closed"),
        ("a b=1", "write path=value"),
    ] {
        let error = bad.parse::<Vary>().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let many = |n: u32| (0..n).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(vary(&format!("x={}", many(64))).values.len(), 64);
    let error = format!("x={}", many(65)).parse::<Vary>().unwrap_err().to_string();
    assert!(error.contains("`x` has 65 values; at most 64"), "{error}");
}

#[test]
fn configurations_are_all_pairs() {
    let pair =
        |a: &str, b: &str| vec![("x".to_owned(), a.to_owned()), ("y".to_owned(), b.to_owned())];
    let found = all_configurations(&[vary("x=1,2"), vary("y=a,b")]).unwrap();
    assert_eq!(found, [pair("1", "a"), pair("1", "b"), pair("2", "a"), pair("2", "b")]);
    assert_eq!(all_configurations(&[]).unwrap(), [vec![]]);
    let nine = "1,2,3,4,5,6,7,8,9";
    let too_many = [vary(&format!("x={nine}")), vary(&format!("y={nine}"))];
    let error = all_configurations(&too_many).unwrap_err().to_string();
    assert!(error.contains("81 configurations; at most 64"), "{error}");
    let three = [vary("x=1"), vary("y=1"), vary("z=1")];
    assert!(all_configurations(&three).unwrap_err().to_string().contains("at most 2"));
    assert!(all_configurations(&[vary("x=1"), vary("x=2")]).is_err());
}
