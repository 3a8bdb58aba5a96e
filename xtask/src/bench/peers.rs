//! Other tools under the same load, where they are installed: on the path, or in the folder that
//! `GOODPUT_PEERS` names. Two of them want a tokenizer, though nothing here depends on it:
//! `GOODPUT_VLLM_TOKENIZER` (a folder with `tokenizer.json`) and `GOODPUT_AIPERF_TOKENIZER` (a name).

use std::fs;
use std::path::{Path, PathBuf};

use super::clients::{BenchClient, BenchLoad, Run};
use super::process::{Bench, TruthProcess, at};
use super::table::{Budgets, ReportTable, number};

/// A tool, and how it runs a number of requests on a number of streams.
type Peer = (&'static str, fn(&Job<'_>) -> String);

/// What a peer has to do.
struct Job<'a> {
    url: String,
    streams: u32,
    requests: u32,
    /// A dataset with a short prompt for each request, one JSON object per line.
    prompts: &'a Path,
    /// Where it may write.
    out: PathBuf,
}

const PEERS: [Peer; 4] =
    [("vllm-bench", vllm_bench), ("oha", oha), ("aiperf", aiperf), ("guidellm", guidellm)];

/// CPU per event next to goodput's. A second, shorter run takes the start of a peer out of its
/// number; goodput's own start stays in.
pub(super) fn peers(bench: &Bench) -> Result<ReportTable, String> {
    let mut table = ReportTable::new(
        "Peers",
        "closed loop, 100 tokens per answer, TTFT 50 ms, ITL 20 ms; CPU per token, a peer's start \
         subtracted by means of a shorter run",
        &["streams", "client", "events", "CPU µs/event", "× goodput"],
    );
    for streams in [256, 1_024] {
        let run = Run { load: BenchLoad::Closed(streams), ttft_ms: 50, itl_ms: 20, tokens: 100 };
        let ours = BenchClient::Goodput.measure(bench, run)?;
        let mut rows = Vec::new();
        for peer in PEERS {
            match measure(bench, peer, streams) {
                Ok((events, cpu_us)) => rows.push((peer.0, events, cpu_us)),
                Err(reason) => {
                    table.say(format!("{} at {streams} streams: {}", peer.0, gist(&reason)));
                }
            }
        }
        let best = rows.iter().map(|(_, _, cpu_us)| *cpu_us).fold(f64::NAN, f64::min);
        let budgets = if best.is_nan() {
            Budgets::none()
        } else {
            Budgets::none().at_most("CPU", ours.cpu_us() / best, 0.6, "× best peer")
        };
        let none = Budgets::none();
        rows.insert(0, ("goodput", ours.truth("/events"), ours.cpu_us()));
        for (name, events, cpu_us) in rows {
            let cells = vec![
                streams.to_string(),
                name.to_owned(),
                number(events, 0),
                number(cpu_us, 1),
                number(cpu_us / ours.cpu_us(), 1),
            ];
            table.push(cells, if name == "goodput" { &budgets } else { &none });
        }
    }
    Ok(table)
}

/// Events and CPU per event of a peer, or why there are none.
fn measure(bench: &Bench, (name, flags): Peer, streams: u32) -> Result<(f64, f64), String> {
    let program = find(name).ok_or_else(|| format!("skipped: {name} is not installed"))?;
    // An answer takes two seconds; each stream gets as many as fit, and at least two.
    let rounds = (bench.seconds / 2).max(2);
    let prompts = bench.fresh_path().with_extension("jsonl");
    let line = "{\"prompt\":\"x\",\"output_tokens_count\":100}\n";
    let lines = line.repeat((streams * rounds) as usize);
    fs::write(&prompts, lines).map_err(|error| error.to_string())?;
    let run = |requests: u32| {
        let server = TruthProcess::start(bench, 50, 20)?;
        let job = Job {
            url: format!("http://{}", server.address()),
            streams,
            requests,
            prompts: &prompts,
            out: bench.fresh_path(),
        };
        let mut command = vec![program.display().to_string()];
        command.extend(flags(&job).split_whitespace().map(str::to_owned));
        let ran = bench.run(&command)?;
        Ok::<_, String>((at(&server.stop()?, "/events"), ran.cpu_s))
    };
    let (few_events, few_cpu) = run(streams)?;
    let (events, cpu) = run(streams * rounds)?;
    if events > few_events {
        Ok((events, (cpu - few_cpu) * 1e6 / (events - few_events)))
    } else {
        Err(format!("sent nothing: {events} events"))
    }
}

/// The program in the folder that `GOODPUT_PEERS` names, or on the path.
fn find(name: &str) -> Option<PathBuf> {
    let folders = ["GOODPUT_PEERS", "PATH"].into_iter().filter_map(std::env::var_os);
    let candidates =
        folders.flat_map(|folders| std::env::split_paths(&folders).collect::<Vec<_>>());
    candidates.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The last thing that was said: tools end their complaints with the reason.
fn gist(reason: &str) -> String {
    let last = reason.lines().map(str::trim).rfind(|line| line.len() > 3);
    last.unwrap_or_default().chars().take(200).collect()
}

fn tokenizer(variable: &str, default: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| default.to_owned())
}

fn vllm_bench(job: &Job<'_>) -> String {
    let Job { url, streams, requests, prompts, .. } = job;
    let data = format!("--dataset-name custom --dataset-path {}", prompts.display());
    format!(
        "--backend openai-chat --base-url {url} --endpoint /v1/chat/completions --model truth \
         --tokenizer {} {data} --custom-output-len 100 --num-prompts {requests} \
         --max-concurrency {streams} --ignore-eos --extra-body {{\"max_tokens\":100}} \
         --disable-tqdm --no-steady-state",
        tokenizer("GOODPUT_VLLM_TOKENIZER", "gpt2")
    )
}

fn oha(job: &Job<'_>) -> String {
    let Job { url, streams, requests, .. } = job;
    format!(
        "--no-tui -c {streams} -n {requests} -m POST -T application/json \
         -d {{\"max_tokens\":100,\"stream\":true}} {url}/v1/chat/completions"
    )
}

fn aiperf(job: &Job<'_>) -> String {
    let Job { url, streams, requests, out, .. } = job;
    format!(
        "profile --model truth --url {url} --endpoint-type chat --streaming --tokenizer {} \
         --concurrency {streams} --request-count {requests} --isl 10 --osl 100 \
         --extra-inputs max_tokens:100 --ui none --artifact-dir {}",
        tokenizer("GOODPUT_AIPERF_TOKENIZER", "builtin"),
        out.display()
    )
}

fn guidellm(job: &Job<'_>) -> String {
    let Job { url, streams, requests, prompts, out } = job;
    format!(
        "run --backend kind=openai_http,target={url},model=truth --profile kind=concurrent,streams={streams} \
         --constraint kind=max_requests,count={requests} --data kind=json_file,path={} \
         --output kind=json,path={}.json --disable-progress",
        prompts.display(),
        out.display()
    )
}
