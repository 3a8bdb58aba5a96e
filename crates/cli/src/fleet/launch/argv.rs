//! The command line of every rank: checked here, before anything is started anywhere.

use std::time::Duration;

use clap::Parser;
use goodput_fleet::RankCommand;
use goodput_lab::fleet::JobText;
use goodput_model::GpuPlan;
use goodput_record::read_plan;

use crate::args::{Arguments, EndpointArgs, LaunchArgs, OutputArgs, RunArgs, Verb};
use crate::error::Failed;
use crate::plan;

/// Flags that the launcher adds.
const OURS: [&str; 2] = ["--shard", "--rendezvous"];

/// Checks what was typed.
pub(super) fn check_command(launch: &LaunchArgs) -> Result<RankCommand, Failed> {
    let mut words = launch.words.clone();
    if words.is_empty() {
        words.push("run".to_owned());
    }
    if let Some(twice) = words.iter().find_map(|word| launcher_flag(word)) {
        return Err(Failed::usage(format!("the launcher sets {twice} for each rank"))
            .hint(format!("remove {twice} from the arguments after `--`")));
    }
    if let Some(file) = &launch.plan {
        let file = file.to_str().ok_or_else(|| {
            Failed::usage("the name of the plan file is not valid UTF-8").hint("rename it")
        })?;
        words.extend(["--plan".to_owned(), file.to_owned()]);
    }
    let asked = match parse_command(&words)? {
        Verb::Run(args) => run_command(&args)?,
        Verb::Sweep(args) => {
            if args.serve.serve.is_some() {
                return Err(Failed::usage("with --serve, every rank would start a server")
                    .hint("start it once, and give its URL"));
            }
            check_target(args.target.as_deref())?;
            endpoint_command(args.target.as_deref(), &args.endpoint, &args.output)?
        }
        _ => return Err(wrong_verb_error()),
    };
    Ok(RankCommand { words: remove_plan_flag(words), ..asked })
}

/// The longest time that the run can take once it has started, if known.
pub(super) fn longest_duration(command: &RankCommand) -> Result<Option<Duration>, Failed> {
    let Verb::Run(args) = parse_command(&command.local_words())? else { return Ok(None) };
    let once = plan::resolve_plan(&args)?.longest_duration();
    Ok(once.map(|once| once * args.repeat.unwrap_or(1)))
}

/// Parses the words as a rank will, with a shard among them.
fn parse_command(words: &[String]) -> Result<Verb, Failed> {
    let has_shard = words.iter().any(|word| word == "--shard");
    let is_ours = matches!(words.first().map(String::as_str), Some("run" | "sweep"));
    let shard = ["--shard", "auto"].into_iter().filter(|_| is_ours && !has_shard);
    let line = std::iter::once("goodput").chain(words.iter().map(String::as_str)).chain(shard);
    Arguments::try_parse_from(line).map(|arguments| arguments.verb).map_err(|error| {
        let said = error.to_string();
        let said = said.trim_start_matches("error: ").trim_end().to_owned();
        Failed::usage(format!("the arguments after `--`: {said}"))
    })
}

/// The flag of the launcher that this word repeats, if any.
fn launcher_flag(word: &str) -> Option<&'static str> {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    OURS.into_iter().find(|flag| *flag == name)
}

fn wrong_verb_error() -> Failed {
    Failed::usage("only `run` and `sweep` can use a fleet")
        .hint("write `-- run URL …` or `-- sweep URL …`")
}

fn run_command(args: &RunArgs) -> Result<RankCommand, Failed> {
    let plan = args.plan.as_deref().map(read_plan).transpose().map_err(|error| {
        Failed::usage(error.to_string()).hint("the plan.toml of a run folder is one")
    })?;
    let planned = plan.as_ref().map(|plan| plan.target.url.as_str());
    check_target(args.target.as_deref().or(planned))?;
    let mut asked = endpoint_command(args.target.as_deref(), &args.endpoint, &args.output)?;
    asked.plan.clone_from(&args.plan);
    if let (None, Some(plan)) = (&args.endpoint.api_key_env, plan) {
        asked.key_env = plan.target.api_key_env;
    }
    Ok(asked)
}

fn endpoint_command(
    target: Option<&str>,
    args: &EndpointArgs,
    output: &OutputArgs,
) -> Result<RankCommand, Failed> {
    job_text(target, args).check()?;
    let key_env = args.api_key_env.as_deref().unwrap_or(plan::DEFAULT_KEY_ENV);
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if key_env.is_empty() || !key_env.bytes().all(is_fit) {
        return Err(Failed::usage(format!("`{key_env}` is not a valid variable name")));
    }
    let (words, out) = (Vec::new(), output.out.clone());
    Ok(RankCommand { words, plan: None, out, key_env: key_env.to_owned() })
}

/// The parts of the command that are written into the job.
fn job_text<'a>(target: Option<&'a str>, args: &'a EndpointArgs) -> JobText<'a> {
    let hooks = &args.hooks;
    let traces = hooks.traces.as_deref().filter(|traces| traces.contains("://"));
    let gpu = args.observe.gpu.iter().flat_map(GpuPlan::exporters).map(String::as_str);
    let pages = args.observe.metrics_urls.iter().map(String::as_str);
    JobText {
        urls: target.into_iter().chain(traces).chain(pages).chain(gpu).collect(),
        headers: &args.headers,
        extra_body: args.extra_body.as_deref(),
        meta: &args.observe.meta,
        commands: [
            ("--before-cmd", hooks.before_cmd.as_deref()),
            ("--after-cmd", hooks.after_cmd.as_deref()),
        ],
    }
}

/// A target that every machine can reach.
fn check_target(target: Option<&str>) -> Result<(), Failed> {
    let Some(url) = target else { return Ok(()) };
    let lower = url.to_ascii_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        return Ok(());
    }
    Err(Failed::usage(format!("the ranks of a fleet cannot share the target `{url}`"))
        .hint("give an http:// or https:// URL; `goodput mock --listen …` serves one"))
}

/// The words without `--plan FILE`.
fn remove_plan_flag(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--plan" {
            words.next();
        } else if !word.starts_with("--plan=") {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &str) -> Result<RankCommand, String> {
        let line = format!("goodput fleet slurm --ranks 2 -- {words}");
        let Verb::Fleet(args) = Arguments::try_parse_from(line.split_whitespace()).unwrap().verb
        else {
            panic!("{line}")
        };
        let crate::args::FleetVerb::Slurm(args) = args.engine else { panic!("{line}") };
        check_command(&args.launch).map_err(|failed| failed.to_string())
    }

    #[test]
    fn ranks_may_wait_longer_for_each_other() {
        let asked = asked("run http://h --rate 1 --duration 9s --join-within 15m").unwrap();
        let words = asked.local_words().join(" ");
        assert_eq!(words, "run http://h --rate 1 --duration 9s --join-within 15m --shard auto");
        assert!(longest_duration(&asked).unwrap().is_some());
    }

    #[test]
    fn a_job_takes_only_what_ranks_can_share() {
        let table = [
            ("report runs/x", "only `run` and `sweep`"),
            ("run mock --rate 1", "cannot share the target"),
            ("run mock", "cannot share the target"),
            ("run http://h --rate 1 --shard 0/2", "the launcher sets --shard"),
            ("run http://h --rate 1 --shard=0/2", "the launcher sets --shard"),
            ("run http://h --rate 1 --rendezvous h:1", "the launcher sets --rendezvous"),
            ("run http://h --no-such-flag", "unexpected argument '--no-such-flag'"),
            ("run http://me:pw@h/v1 --rate 1", "the user in a URL would be written"),
            ("run http://h --rate 1 -H Authorization:x", "header `Authorization` would be"),
            ("run http://h --rate 1 --header X-Auth:x", "header `X-Auth` would be"),
            ("sweep http://h --header cookie:x", "header `cookie` would be"),
            ("run http://h --rate 1 --header x", "--header without a colon"),
            ("run http://h?api_key=x --rate 1", "`?api_key` in a URL would be"),
            ("run http://h --rate 1 --metrics-url http://h/m?t=x", "`?t` in a URL would be"),
            ("run http://h --rate 1 --gpu http://me:pw@h/m", "the user in a URL would be"),
            ("run http://h --rate 1 --traces http://h?t=x", "`?t` in a URL would be"),
            (
                "run http://h --rate 1 --extra-body {\"api_key\":\"x\"}",
                "`api_key` of the extra body",
            ),
            ("run http://h --rate 1 --meta hf-token=x", "`hf-token` would be"),
            ("run http://h --rate 1 --after-cmd a;TOKEN=x", "a secret in --after-cmd would be"),
            ("run http://h --api-key-env A-B --rate 1", "not a valid variable name"),
            ("sweep http://h --serve x", "every rank would start a server"),
            ("run --plan /no/such/plan.toml", "plan.toml"),
        ];
        for (words, expected) in table {
            let said = asked(words).unwrap_err();
            assert!(said.contains(expected), "{words}: {said}");
        }
    }

    #[test]
    fn every_rank_gets_the_same_words_and_finds_its_shard() {
        let asked = asked("run http://h --rate 5 --api-key-env KEY --header user-agent:b").unwrap();
        let line = "run http://h --rate 5 --api-key-env KEY --header user-agent:b --shard auto";
        assert_eq!(asked.local_words().join(" "), line);
        assert_eq!(asked.key_env, "KEY");
        let line = line.replace("--shard", "--plan /p --shard");
        assert_eq!(asked.command_words(Some("/p")).join(" "), line);
    }

    #[test]
    fn a_plan_is_named_once_however_it_was_typed() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in ["run --plan a --json", "run --plan=a --json", "run --json --plan a"] {
            assert_eq!(remove_plan_flag(words(line)), ["run", "--json"]);
        }
    }

    #[test]
    fn the_length_of_what_is_bounded_by_time_is_known() {
        let seconds = |words: &str| {
            longest_duration(&asked(words).unwrap()).unwrap().map(|length| length.as_secs())
        };
        let line = "run http://h --rate 5 --duration 100s --warmup 7s --cooldown 3s --drain 20s";
        assert_eq!(seconds(line), Some(130));
        assert_eq!(seconds(&format!("{line} --repeat 3")), Some(390));
        assert_eq!(seconds("run http://h --schedule 60s@5,30s@10 --drain 0s"), Some(90));
        assert_eq!(seconds("run http://h --rate 5 --num-requests 9"), None);
        assert_eq!(seconds("sweep http://h"), None);
    }
}
