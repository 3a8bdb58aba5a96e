use goodput_model::Clip;

use super::*;

fn batching() -> Profile {
    Profile::builtin("llama-70b-8xh100").unwrap()
}

#[test]
fn every_built_in_profile_reads_and_reads_back() {
    for name in Profile::NAMES {
        let text = Profile::builtin_text(name).unwrap();
        let profile = Profile::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(Profile::parse(&profile.to_toml().unwrap()), Ok(profile), "{name}");
    }
    assert_eq!(Profile::builtin("nope"), None);
}

#[test]
fn the_simple_profiles_are_what_they_were() {
    let fixed = |ms| Delay::Fixed(Duration::from_millis(ms));
    for (name, ttft, itl, slots) in [("default", 50, 10, 128), ("fast", 0, 0, 100_000)] {
        let profile = Profile::builtin(name).unwrap();
        let delays = Delays { ttft: fixed(ttft), itl: fixed(itl), slots, max_queue: None };
        assert_eq!(profile.engine, EngineProfile::Delays(delays));
        assert_eq!((profile.model.as_str(), profile.default_tokens), ("mock", 128));
        assert_eq!(profile.answer, None);
    }
}

#[test]
fn settings_change_what_they_name() {
    let mut profile = batching();
    for (key, value) in [
        ("max_num_seqs", "64"),
        ("max_num_batched_tokens", "2048"),
        ("kv_blocks", "1000"),
        ("prefix_caching", "off"),
        ("chunked_prefill", "off"),
        ("precision", "fp8"),
        ("tp", "4:0.9"),
        ("max_queue", "10"),
        ("answer", "lognormal:200:0.8"),
        ("model", "other"),
        ("max_model_len", "4096"),
        ("default_tokens", "7"),
        ("speculative", "4:0.7"),
        ("disaggregated", "2"),
        ("cold_start", "30s"),
        ("idle_timeout", "5m"),
        ("first_use", "200ms"),
        ("frontend", "3ms"),
    ] {
        profile.set(key, value).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
    let time = |ms| Time(Duration::from_millis(ms));
    assert_eq!((profile.model.as_str(), profile.max_model_len), ("other", 4096));
    assert_eq!(
        (profile.default_tokens, profile.answer),
        (7, Some(LengthDistribution::LogNormal(200.0, 0.8, Clip::NONE)))
    );
    let EngineProfile::Batching(engine) = &profile.engine else { panic!("the model changed") };
    let scheduler = Scheduler {
        max_num_seqs: 64,
        max_num_batched_tokens: 2048,
        chunked_prefill: false,
        max_queue: Some(10),
        frontend: time(3),
    };
    assert_eq!(engine.scheduler, scheduler);
    assert_eq!(engine.kv, Kv { blocks: 1000, block_tokens: 16, prefix_caching: false });
    let speculative = Speculative { tokens: 4, acceptance: 0.7, draft: time(0) };
    assert_eq!(engine.speculative, Some(speculative));
    assert_eq!(engine.disaggregated.map(|split| split.prefill_workers), Some(2));
    let start = StartupCost {
        cold_start: time(30_000),
        idle_timeout: Some(time(300_000)),
        first_use: time(200),
    };
    assert_eq!(engine.start, start);
    let hardware = Hardware { precision: Precision::Fp8, tensor_parallel: 4, efficiency: 0.9 };
    assert_eq!(engine.hardware, hardware);
    // Twice as much for half the bytes, four times as much for the GPUs.
    assert_eq!(engine.kv_blocks(), 8 * 1000);
    assert_eq!(Profile::parse(&profile.to_toml().unwrap()).as_ref(), Ok(&profile));
    for (key, value) in [("speculative", "none"), ("disaggregated", "0"), ("max_queue", "none")] {
        profile.set(key, value).unwrap();
    }
    let EngineProfile::Batching(engine) = &profile.engine else { panic!("the model changed") };
    assert_eq!((engine.speculative, engine.disaggregated), (None, None));
}

#[test]
fn a_setting_of_the_other_model_says_so() {
    let mut profile = batching();
    for key in ["ttft", "itl", "slots"] {
        let error = profile.set(key, "5").unwrap_err();
        assert!(error.contains("fixed delays") && error.contains("max_num_seqs"), "{error}");
    }
    let mut profile = Profile::builtin("default").unwrap();
    let error = profile.set("kv_blocks", "5").unwrap_err();
    assert!(error.contains("continuous batching") && error.contains("ttft"), "{error}");
    let error = profile.set("tttf", "5ms").unwrap_err();
    assert!(error.contains("no setting `tttf`") && error.contains("slots"), "{error}");
    profile.set("slots", "3").unwrap();
    profile.set("max_queue", "0").unwrap();
    profile.set("ttft", "uniform:1ms:2ms").unwrap();
    let EngineProfile::Delays(delays) = &profile.engine else { panic!("the model changed") };
    assert_eq!((delays.slots, delays.max_queue), (3, Some(0)));
    assert_eq!(delays.ttft.to_string(), "uniform:1ms:2ms");
}

#[test]
fn a_factor_is_on_every_time() {
    let mut profile = Profile::builtin("default").unwrap();
    for (ttft, slower) in [
        ("50ms", "52ms 500us"),
        ("uniform:40ms:60ms", "uniform:42ms:63ms"),
        ("exp:20ms", "exp:21ms"),
        ("lognormal:80ms:0.5", "lognormal:84ms:0.5"),
    ] {
        profile.set("itl", "10ms").unwrap();
        profile.set("ttft", ttft).unwrap();
        profile.set("time_factor", "1.05").unwrap();
        let EngineProfile::Delays(delays) = &profile.engine else { panic!("the model changed") };
        assert_eq!((delays.ttft.to_string().as_str(), delays.slots), (slower, 128));
        assert_eq!(delays.itl.to_string(), "10ms 500us");
    }
    let mut profile = batching();
    for (key, value) in [
        ("frontend", "3ms"),
        ("cold_start", "30s"),
        ("first_use", "200ms"),
        ("idle_timeout", "5m"),
        ("speculative", "4:0.7"),
        ("disaggregated", "2"),
    ] {
        profile.set(key, value).unwrap();
    }
    let EngineProfile::Batching(engine) = &mut profile.engine else { panic!("the model changed") };
    engine.speculative.as_mut().unwrap().draft = Time(Duration::from_millis(7));
    let split = engine.disaggregated.as_mut().unwrap();
    (split.latency, split.ns_per_token) = (Time(Duration::from_millis(9)), 11.0);
    // Every part of a step counts.
    let step = &mut engine.step;
    (step.overlap, step.kv_ns, step.attention_ns) = (0.5, 5000.0, 40.0);
    let before = engine.clone();
    profile.set("time_factor", "2").unwrap();
    let EngineProfile::Batching(engine) = &profile.engine else { panic!("the model changed") };
    let time = |ms| Time(Duration::from_millis(ms));
    let start = StartupCost {
        cold_start: time(60_000),
        idle_timeout: Some(time(300_000)),
        first_use: time(400),
    };
    assert_eq!((engine.scheduler.frontend, engine.start), (time(6), start));
    assert_eq!(engine.speculative.unwrap().draft, time(14));
    let split = engine.disaggregated.unwrap();
    assert_eq!((split.latency, split.ns_per_token), (time(18), 22.0));
    // Twice is exact in binary, so every step takes just twice as long.
    let mut mixed = crate::StepShape::default();
    mixed.add_decode(1, 3000);
    mixed.add_decode(1, 70);
    mixed.add_prefill(500, 1000);
    assert_eq!(engine.step.step_ms(&mixed), 2.0 * before.step.step_ms(&mixed));
    assert_eq!((&engine.kv, engine.step.overlap), (&before.kv, before.step.overlap));
    assert_eq!(Profile::parse(&profile.to_toml().unwrap()).as_ref(), Ok(&profile));
}

#[test]
fn what_is_out_of_range_changes_nothing() {
    for (key, value) in [
        ("max_num_seqs", "0"),
        ("max_num_seqs", "9000"),
        ("max_num_batched_tokens", "0"),
        ("kv_blocks", "0"),
        ("kv_blocks", "10000001"),
        ("kv_blocks", "many"),
        ("prefix_caching", "perhaps"),
        ("max_queue", "0"),
        ("answer", "0"),
        ("model", ""),
        ("max_model_len", "0"),
        ("default_tokens", "0"),
        ("speculative", "4"),
        ("speculative", "0:0.5"),
        ("speculative", "4:1.5"),
        ("speculative", "4:nan"),
        ("disaggregated", "100000"),
        ("cold_start", "2 days"),
        ("first_use", "5"),
        ("time_factor", "0"),
        ("time_factor", "nan"),
        ("time_factor", "5%"),
    ] {
        let mut profile = batching();
        assert!(profile.set(key, value).is_err(), "{key}={value}");
        assert_eq!(profile, batching(), "{key}={value}");
    }
}

#[test]
fn files_that_make_no_sense_say_why() {
    let good = Profile::builtin_text("llama-70b-8xh100").unwrap();
    for (from, to, says) in [
        ("overlap = 1.0", "overlap = 1.5", "overlap (1.5)"),
        ("overlap = 1.0", "overlap = nan", "overlap (NaN)"),
        ("base_ms = 42.0", "base_ms = -1.0", "base_ms"),
        ("[32, 43.0]", "[16, 43.0]", "in rising order"),
        ("[32, 43.0]", "[32, 41.0]", "less time"),
        ("[16, 42.0]", "[16, 41.0]", "nor less than base_ms"),
        ("[[8192, 205.84]]", "[]", "prefill_ms needs"),
        ("block_tokens = 16", "block_tokens = 0", "block_tokens (0)"),
        ("[kv]", "[cache]", "unknown field `cache`"),
        ("overlap = 1.0", "overlap = 1.0\nspeed = 3", "unknown field `speed`"),
        ("frontend = \"6ms\"", "frontend = \"9\"", "is not a time"),
        ("[16, 42.0]", "[16, 42.0, 7]", "a point is"),
        ("[16, 42.0]", "[16]", "a point is"),
        ("[16, 42.0]", "[1.5, 42.0]", "a point is"),
        ("[scheduler]", "[start]\nfirst_us = \"1s\"\n[scheduler]", "unknown field `first_us`"),
        ("model = \"llama-70b\"", "", "missing field `model`"),
    ] {
        assert!(good.contains(from), "{from}");
        let error = Profile::parse(&good.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(says), "{to}: {error}");
    }
    let both = format!("{good}\n[delays]\nttft = \"1ms\"\nitl = \"1ms\"\nslots = 1\n");
    assert!(Profile::parse(&both).unwrap_err().contains("either [delays]"));
    assert!(Profile::parse("not toml").is_err());
}

#[test]
fn hardware_scales_steps_and_the_cache() {
    let scaled = |settings: &[(&str, &str)]| {
        let mut profile = Profile::builtin("llama-8b-1xh200").unwrap();
        for (key, value) in settings {
            profile.set(key, value).unwrap();
        }
        let EngineProfile::Batching(engine) = profile.engine else { panic!("it has steps") };
        engine.on_hardware()
    };
    let native = scaled(&[]);
    let is = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
    let check = |settings: &[(&str, &str)], step: f64, kv: f64, blocks: u32| {
        let made = scaled(settings);
        assert!(is(made.step.base_ms, native.step.base_ms * step), "{settings:?}");
        assert!(is(made.step.prefill_ms[3].1, native.step.prefill_ms[3].1 * step), "{settings:?}");
        assert!(is(made.step.attention_ns, native.step.attention_ns * step), "{settings:?}");
        assert!(is(made.step.kv_ns, native.step.kv_ns * kv), "{settings:?}");
        assert_eq!(made.kv.blocks, native.kv.blocks * blocks, "{settings:?}");
    };
    check(&[("precision", "native"), ("tp", "1")], 1.0, 1.0, 1);
    check(&[("precision", "fp8")], 0.6, 0.5, 2);
    check(&[("tp", "2")], 1.0 / 1.7, 1.0 / 1.7, 2);
    check(&[("tp", "4")], 1.0 / (1.7 * 1.7), 1.0 / (1.7 * 1.7), 4);
    check(&[("tp", "2:1"), ("precision", "fp8")], 0.3, 0.25, 4);
    // Set twice is set once: each says what the engine runs on, not how much faster it gets.
    check(&[("precision", "fp8"), ("precision", "fp8"), ("tp", "8"), ("tp", "1")], 0.6, 0.5, 2);
}

#[test]
fn wrong_hardware_is_refused() {
    let mut profile = batching();
    for (key, value, said) in [
        ("tp", "two", "tp is GPUS or GPUS:EFFICIENCY"),
        ("tp", "2:much", "tp is GPUS or GPUS:EFFICIENCY"),
        ("tp", "0", "tp (0) must be from 1 to 1024"),
        ("tp", "2:0.5", "must be more than 0.5"),
        ("tp", "2:NaN", "must be more than 0.5"),
        ("precision", "int4", "precision is native or fp8, not `int4`"),
        ("chunked_prefill", "maybe", "chunked_prefill is on or off, not `maybe`"),
    ] {
        let error = profile.set(key, value).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(profile, batching());
}

#[test]
fn the_docs_have_every_setting_as_the_table_says() {
    let docs = include_str!("../../../../docs/profiles.md");
    for ProfileSetting { key, value, about, .. } in SETTINGS {
        let row = format!("| `{key}` | `{}` | {about} |", value.replace('|', "\\|"));
        assert!(docs.contains(&row), "docs/profiles.md lacks\n{row}");
    }
    // Each is one that a profile takes, and each that a profile takes is there.
    let (mut delays, mut batching) = (Profile::default(), batching());
    for ProfileSetting { key, scope, .. } in SETTINGS {
        let unknown = |profile: &mut Profile| {
            profile.set(key, "?").is_err_and(|error| error.starts_with("no setting"))
        };
        let unknown = [unknown(&mut delays), unknown(&mut batching)];
        assert_eq!(unknown, [false; 2], "{key} {scope:?}");
    }
}
