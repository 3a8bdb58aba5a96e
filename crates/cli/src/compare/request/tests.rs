use clap::Parser;
use goodput_campaign::sweep::Effort;
use goodput_model::REDACTED;

use super::*;
use crate::args::{Arguments, Verb};

fn args(line: &str) -> CompareArgs {
    let words = ["goodput", "compare"].into_iter().chain(line.split_whitespace());
    match Arguments::try_parse_from(words).unwrap().verb {
        Verb::Compare(args) => *args,
        _ => panic!("another verb"),
    }
}

fn asked(line: &str) -> Result<CompareRequest, Failed> {
    from_flags(&args(line))
}

fn refused(line: &str) -> String {
    asked(line).unwrap_err().to_string()
}

#[test]
fn targets_and_their_names() {
    let named = |line: &str| -> Vec<(String, String)> {
        let targets = asked(line).unwrap().targets.into_iter();
        targets.map(|one| (one.name, one.url)).collect()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(named("mock mock:ttft=1ms"), [pair("A", "mock"), pair("B", "mock:ttft=1ms")]);
    assert_eq!(
        named("old=http://a/?x=1 http://b/?x=1"),
        [pair("old", "http://a/?x=1"), pair("B", "http://b/?x=1")]
    );
    assert_eq!(named("mock --aa"), [pair("A", "mock"), pair("A'", "mock")]);
    let three = named("http://a http://b c=http://c --reference c");
    assert_eq!(three.iter().map(|one| one.0.as_str()).collect::<Vec<_>>(), ["c", "A", "B"]);
    for (line, says) in [
        ("", "no targets to compare"),
        ("http://a", "needs two targets"),
        ("http://a http://b --aa", "one target, not 2"),
        ("A=http://a A=http://b", "two targets are named `A`"),
        ("http://a http://b --reference C", "no target is named `C`"),
        ("http://a http://b --gpus 1,2,3", "--gpus has 3 numbers for 2 targets"),
        ("http://a http://b --price-per-gpu-hour 1,2,3", "has 3 numbers"),
        ("http://a http://b --rate inf", "cannot use --rate inf"),
        ("http://a http://b --at-once --profile", "--profile cannot be combined with --at-once"),
        ("http://a http://b --rate 0", "rate"),
    ] {
        let why = match Arguments::try_parse_from(
            ["goodput", "compare"].into_iter().chain(line.split_whitespace()),
        ) {
            Ok(_) => refused(line),
            Err(error) => error.to_string(),
        };
        assert!(why.contains(says), "{line}: {why}");
    }
}

#[test]
fn what_stands_behind_them() {
    let targets = asked("http://a http://b --gpus 8 --price-per-gpu-hour 2,3.5").unwrap().targets;
    let behind: Vec<_> = targets.iter().map(|one| (one.gpus, one.price_per_gpu_hour)).collect();
    assert_eq!(behind, [(Some(8), Some(2.0)), (Some(8), Some(3.5))]);
}

#[test]
fn blocks_and_levels() {
    let looks = |line: &str| asked(&format!("http://a http://b {line}")).unwrap().design.looks;
    assert_eq!(looks(""), [6, 8, 12, 16]);
    assert_eq!(looks("--blocks 12"), [6, 8, 12]);
    assert_eq!(looks("--blocks 20"), [6, 8, 12, 20]);
    assert_eq!(looks("--blocks 4"), [4]);
    assert_eq!(looks("--no-early-end"), [16]);
    let levels = |line: &str| asked(&format!("http://a http://b {line}")).unwrap().design.levels;
    assert_eq!(levels("--rate 8,2,8"), [Level::Rate(2.0), Level::Rate(8.0)]);
    assert_eq!(levels("--concurrency 4,1"), [Level::Users(1), Level::Users(4)]);
    assert_eq!(levels(""), []);
    let design = asked("http://a http://b --duration 90s --warmup 7s").unwrap().design;
    assert_eq!((design.run_s, design.burn_in_s, design.settle_s), (90.0, 7.0, 1.0));
    assert_eq!(asked("http://a http://b").unwrap().design.run_s, 30.0);
}

#[test]
fn a_search_needs_a_promise_and_a_gate_on_goodput_too() {
    let search = asked("http://a http://b --search").unwrap();
    assert_eq!(search.design.quantity, Quantity::Goodput);
    let plan = search.search_plan(7);
    assert_eq!((plan.effort, plan.seed, plan.point_s), (Effort::Quick, 7, None));
    assert_eq!((plan.sustained_s, plan.attainment), (Some(0.0), Some(0.99)));
    assert_eq!(plan.slo, Some("interactive".parse().unwrap()));
}

#[test]
fn gates_that_can_never_be_judged_are_refused() {
    let gated = |line: &str, gate: &str| {
        let mut args = args(&format!("http://a http://b {line}"));
        args.gate.gate = vec![gate.to_owned()];
        from_flags(&args)
    };
    for (line, gate, says) in [
        ("", "goodput > -3%", "needs an SLO"),
        ("", "goodput_tokens_per_s > -3%", "needs an SLO"),
        ("", "attainment > -1%", "needs an SLO"),
        ("", "recounted_tokens_per_s > -3%", "token counts from one tokenizer"),
        ("", "characters_per_s > -3%", "token counts from one tokenizer"),
        ("--search", "p99 ttft < +5%", "a search has none"),
        ("--search", "goodput > -3%, attainment > -1%", "a search has none"),
    ] {
        let why = gated(line, gate).unwrap_err().to_string();
        assert!(why.contains(says), "{line} {gate}: {why}");
    }
    for (line, gate) in [
        ("--slo interactive", "goodput_tokens_per_s > -3%"),
        ("--count-with approximate", "characters_per_s > -3%"),
        ("--search", "goodput > -3%"),
    ] {
        gated(line, gate).unwrap();
    }
    let percentiles = |line| gated(line, "p98 ttft < +5%").unwrap().plan.measure.percentiles;
    assert_eq!(percentiles("--percentiles 75"), [50.0, 75.0, 90.0, 98.0, 99.0]);
}

#[test]
fn margins_of_single_figures_are_kept() {
    let mut asked = asked("http://a http://b --rate 1").unwrap();
    asked.design.margins.insert("ttft_p99".to_owned(), 0.222);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let folder =
        CampaignFolder::create(Campaign::Comparison, &path, &asked.without_secrets()).unwrap();
    assert_eq!(folder.read_asked::<CompareRequest>().unwrap().design, asked.design);
}

#[test]
fn secrets_of_a_command_are_not_kept() {
    let mut args = args("http://a http://b --rate 1");
    args.design.switch_cmd = Some("start {side} --api-key hunter22".to_owned());
    let asked = from_flags(&args).unwrap();
    let written = asked.without_secrets();
    let kept = written.switch_cmd.clone().unwrap();
    assert!(!kept.contains("hunter22") && kept.contains("{side}"), "{kept}");
    let refused = written.check().unwrap_err().to_string();
    assert!(refused.contains("contains a secret"), "{refused}");
}

#[test]
fn targets_given_again_are_told_by_name_and_stay_what_they_were() {
    // As they are kept: the reference first, without secrets.
    let kept = || {
        let mut asked =
            asked("one=http://a?k=x two=http://b?k=x --reference two --rate 1").unwrap();
        for one in &mut asked.targets {
            one.url = one.url.replace("k=x", &format!("k={REDACTED}"));
        }
        asked
    };
    let complete = |mut asked: CompareRequest, line: &str| {
        restore_secrets(&mut asked, &named_targets(&args(line)))
            .map_err(|failed| failed.to_string())?;
        Ok::<_, String>(asked.targets.into_iter().map(|one| one.url).collect::<Vec<_>>())
    };
    let both = "--resume out one=http://a?k=y two=http://b?k=y";
    assert_eq!(complete(kept(), both).unwrap(), ["http://b?k=y", "http://a?k=y"]);
    for (line, says) in [
        ("--resume out", "the URL of `two` contains a secret"),
        ("--resume out two=http://b?k=y", "the URL of `one` contains a secret"),
        ("--resume out http://a?k=y", "this comparison has no target `A`"),
        ("--resume out one=http://b?k=y two=http://a?k=y", "`two` was http://b?k="),
    ] {
        let why = complete(kept(), line).unwrap_err();
        assert!(why.contains(says) && !why.contains("k=y"), "{line}: {why}");
    }
    let mut itself = asked("http://a?k=x --aa --rate 1").unwrap();
    itself.targets.iter_mut().for_each(|one| one.url = format!("http://a?k={REDACTED}"));
    assert_eq!(complete(itself, "--resume out http://a?k=y").unwrap(), ["http://a?k=y"; 2]);
    // Letters in the order typed, whichever side is the reference.
    let letters = asked("http://a http://b --reference B --rate 1").unwrap();
    let again = complete(letters, "--resume out http://a http://b");
    assert_eq!(again.unwrap(), ["http://b", "http://a"]);
}

#[test]
fn names_and_flags_that_are_refused() {
    let longest = "a".repeat(24);
    assert_eq!(asked(&format!("{longest}=mock --aa")).unwrap().targets.len(), 2);
    assert!(refused(&format!("a{longest}=mock mock")).contains("longer than 24"));
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.toml");
    let text = "[[target]]\nname = \"a\\u001b[2J\"\nurl = \"mock\"\n[[target]]\nurl = \"mock\"\n";
    std::fs::write(&list, text).unwrap();
    assert!(refused(&format!("--targets {}", list.display())).contains("control character"));
}

#[test]
fn every_vary_adds_sides() {
    let sides = |line: &str| -> Vec<[String; 3]> {
        let request = asked(line).unwrap();
        let varied: Vec<String> = request.targets.iter().map(|one| one.varied.clone()).collect();
        assert_eq!(request.design.varied, varied);
        request.targets.into_iter().map(|one| [one.name, one.url, one.varied]).collect()
    };
    let row = |texts: [&str; 3]| texts.map(str::to_owned);
    assert_eq!(
        sides("mock:demo --vary precision=fp8 --vary tp=2,4 --vary kv_blocks=9000,tp=2 --rate 5"),
        [
            row(["baseline", "mock:demo", ""]),
            row(["precision=fp8", "mock:demo,precision=fp8", "precision=fp8"]),
            row(["tp=2", "mock:demo,tp=2", "tp=2"]),
            row(["tp=4", "mock:demo,tp=4", "tp=4"]),
            row(["kv_blocks=9000,tp=2", "mock:demo,kv_blocks=9000,tp=2", "kv_blocks=9000,tp=2"]),
        ]
    );
    // A name has room for so much; the setting is whole.
    let long = "max_num_batched_tokens=2048";
    assert_eq!(
        sides(&format!("old=mock --vary {long} --rate 5")),
        [row(["old", "mock", ""]), row(["B", "mock:max_num_batched_tokens=2048", long]),]
    );
    // A server that a command starts stays where it is.
    assert_eq!(
        sides("http://h:1 --vary tp=2 --rate 5 --switch-cmd ./start-{vary}"),
        [row(["baseline", "http://h:1", ""]), row(["tp=2", "http://h:1", "tp=2"])]
    );
    assert_eq!(asked("mock mock:ttft=1ms --rate 5").unwrap().design.varied, Vec::<String>::new());
    for (line, says) in [
        ("mock mock --vary ttft=1ms --rate 5", "--vary takes one target, not 2"),
        ("http://h:1 --vary tp=2 --rate 5", "--vary cannot set `tp=2` on http://h:1"),
        ("mock --vary ttft --rate 5", "does not set anything"),
        ("mock --vary ttft= --rate 5", "has an empty value"),
        ("mock --vary tp=2,,4 --rate 5", "has an empty value"),
        ("mock --vary tp=2,4,itl=1ms --rate 5", "mixes several values"),
        ("mock --vary itl=1ms --vary itl=1ms --rate 5", "two targets are named `itl=1ms`"),
    ] {
        let said = refused(line);
        assert!(said.contains(says), "{line}: {said}");
    }
}
