//! Result files of other tools side by side. Each is one run, so nothing tells a difference between
//! servers from one between two runs of the same server: there are differences here, and no verdict.

use goodput_model::{Reported, ReportedMode, SourceTool, Verdict};
use serde::{Deserialize, Serialize};

/// Lengths that differ by more make other requests of them.
const SAME_LENGTH: f64 = 0.05;

/// Loads that differ by more are other loads.
const SAME_LOAD: f64 = 0.02;

/// One file of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportedSide {
    /// Its name in tables.
    pub name: String,
    /// The file, or the folder of a run of ours.
    pub path: String,
    /// Whether it is a run of ours, converted to the definitions of the other tool.
    pub is_converted: bool,
    /// How far to believe a run of ours; none of a file, which does not say.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// What to know about a run of ours.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What it states, without single requests.
    pub reported: Reported,
}

/// Result files side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileComparison {
    /// `goodput.files/1`
    pub schema: String,
    /// Those compared; the first is the reference.
    pub sides: Vec<ReportedSide>,
    /// What all of them state.
    pub figures: Vec<FileFigure>,
    /// Why figures that both state must not be compared, and what to know about the others.
    pub notes: Vec<String>,
}

/// One figure of all sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileFigure {
    /// `ttft p99`
    pub name: String,
    /// Of its values.
    pub unit: String,
    /// Of each side; none if it does not state it.
    pub values: Vec<Option<f64>>,
    /// Of each side against the first, in percent; none if either is missing, or it means nothing.
    pub change_percent: Vec<Option<f64>>,
    /// Why the sides cannot be compared by it; empty if they can.
    pub because: String,
}

impl FileComparison {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.files/1";

    /// Puts files side by side. Nothing is said about fewer than two.
    pub fn new(mut sides: Vec<ReportedSide>) -> Self {
        // Lists of requests may be long, and are not compared.
        for side in &mut sides {
            side.reported.details = None;
        }
        let notes = comparison_notes(&sides);
        let because = incomparable_reasons(&sides);
        let figures = shared_figures(&sides)
            .into_iter()
            .map(|(name, unit, values)| {
                let family = name.split(' ').next().unwrap_or_default().to_owned();
                let because = because(&family);
                let first = values.first().copied().flatten().filter(|first| *first != 0.0);
                let change = |value: &Option<f64>| {
                    let percent = ((*value)? / first? - 1.0) * 100.0;
                    Some(percent).filter(|percent| percent.is_finite() && because.is_empty())
                };
                let change_percent = values.iter().map(change).collect();
                FileFigure { name, unit: unit.to_owned(), values, change_percent, because }
            })
            .collect();
        Self { schema: Self::SCHEMA.to_owned(), sides, figures, notes }
    }
}

/// Name, unit, and the value of each side; figures that fewer than two state are left out.
fn shared_figures(sides: &[ReportedSide]) -> Vec<(String, &'static str, Vec<Option<f64>>)> {
    type Get = fn(&Reported) -> Option<f64>;
    let rates: [(&str, &'static str, Get); 6] = [
        ("requests", "req/s", |run| run.requests_per_s),
        ("output tokens", "tok/s", |run| run.output_tokens_per_s),
        ("all tokens", "tok/s", |run| run.total_tokens_per_s),
        ("goodput", "req/s", |run| run.goodput.as_ref()?.requests_per_s),
        ("failed", "requests", |run| run.failed.map(|failed| failed as f64)),
        ("duration", "s", |run| run.duration_s),
    ];
    let of = |get: &dyn Fn(&Reported) -> Option<f64>| -> Vec<Option<f64>> {
        sides.iter().map(|side| get(&side.reported)).collect()
    };
    let mut all = Vec::new();
    for (name, unit, get) in rates {
        all.push((name.to_owned(), unit, of(&get)));
    }
    for metric in ["ttft", "tpot", "itl", "e2e"] {
        all.push((format!("{metric} mean"), "ms", of(&|run| run.metrics.get(metric)?.mean)));
        for percent in [50.0, 90.0, 95.0, 99.0] {
            let get = move |run: &Reported| run.metrics.get(metric)?.percentile(percent);
            all.push((format!("{metric} p{percent}"), "ms", of(&get)));
        }
    }
    all.retain(|(_, _, values)| values.iter().flatten().count() > 1);
    all
}

/// Why figures of a family cannot be compared; empty if they can.
fn incomparable_reasons(sides: &[ReportedSide]) -> impl Fn(&str) -> String + use<> {
    let runs: Vec<&Reported> = sides.iter().map(|side| &side.reported).collect();
    let lengths =
        is_far_apart(&runs, |run| tokens_per_request(run.output_tokens, run), SAME_LENGTH)
            || is_far_apart(&runs, |run| tokens_per_request(run.input_tokens, run), SAME_LENGTH);
    let load = !is_same_load(&runs);
    let kinds: Vec<ToolFamily> = runs.iter().map(|run| ToolFamily::from_tool(run.tool)).collect();
    let is_one_tool = kinds.windows(2).all(|pair| pair.first() == pair.last());
    let has_guidellm = kinds.contains(&ToolFamily::Guidellm);
    let has_vllm = kinds.contains(&ToolFamily::Vllm);
    move |family: &str| {
        let is_latency = matches!(family, "ttft" | "tpot" | "itl" | "e2e");
        let what = match family {
            "failed" | "duration" => "",
            _ if lengths => "request lengths differ",
            _ if is_latency && load => "loads differ",
            "goodput" => "the files do not state the limits",
            "ttft" | "itl" if !is_one_tool && has_vllm => "vLLM counts the role's event as a token",
            "tpot" if !is_one_tool && has_guidellm => "GuideLLM includes TTFT",
            "itl" if !is_one_tool => "one per event, one per token",
            _ => "",
        };
        what.to_owned()
    }
}

/// Tools that define their figures alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolFamily {
    Vllm,
    Sglang,
    Aiperf,
    Guidellm,
    Goodput,
}

impl ToolFamily {
    fn from_tool(tool: SourceTool) -> Self {
        match tool {
            SourceTool::VllmPython | SourceTool::VllmRust => Self::Vllm,
            SourceTool::Sglang => Self::Sglang,
            SourceTool::Aiperf | SourceTool::GenaiPerf => Self::Aiperf,
            SourceTool::Guidellm => Self::Guidellm,
            SourceTool::Goodput => Self::Goodput,
        }
    }
}

fn tokens_per_request(tokens: Option<u64>, run: &Reported) -> Option<f64> {
    let ok = run.ok.filter(|ok| *ok > 0)?;
    Some(tokens? as f64 / ok as f64)
}

/// Whether a figure of any differs from that of the first by more than this share.
fn is_far_apart(runs: &[&Reported], get: impl Fn(&Reported) -> Option<f64>, share: f64) -> bool {
    let known: Vec<f64> = runs.iter().filter_map(|run| get(run)).collect();
    let first = known.first().copied().unwrap_or_default();
    known.iter().any(|value| (value - first).abs() > share * first.abs())
}

fn is_same_load(runs: &[&Reported]) -> bool {
    let mode = |run: &&Reported| run.load.mode;
    let same_mode = runs.windows(2).all(|pair| pair.first().map(mode) == pair.last().map(mode));
    let is_known = runs.iter().all(|run| run.load.mode != ReportedMode::Unknown);
    same_mode
        && is_known
        && !is_far_apart(runs, |run| run.load.rate_rps, SAME_LOAD)
        && !is_far_apart(runs, |run| run.load.concurrency.map(|n| n as f64), SAME_LOAD)
}

/// What to know about the whole.
fn comparison_notes(sides: &[ReportedSide]) -> Vec<String> {
    let runs: Vec<&Reported> = sides.iter().map(|side| &side.reported).collect();
    let mut notes = vec![
        "each file is one run: a difference between servers cannot be distinguished from a \
         difference between two runs of the same server. `goodput compare URL URL` measures in \
         blocks and gives intervals"
            .to_owned(),
    ];
    let mut stated = |what: &str, get: &dyn Fn(&Reported) -> Option<String>| {
        let known: Vec<Option<String>> = runs.iter().map(|run| get(run)).collect();
        if known.windows(2).any(|pair| pair.first() != pair.last()) {
            let word = |known: &Option<String>| known.clone().unwrap_or("not stated".to_owned());
            let all: Vec<String> = known.iter().map(word).collect();
            notes.push(format!("{what}: {}", all.join(" / ")));
        }
    };
    stated("tool", &|run| Some(run.tool.name().to_owned()));
    stated("model", &|run| run.model.clone());
    stated("load", &|run| Some(load_text(run)));
    stated("requests", &|run| run.asked.or(run.ok).map(|n| n.to_string()));
    let each = |tokens: Option<f64>| tokens.map(|n| format!("{n:.0}"));
    stated("prompt tokens per request", &|run| each(tokens_per_request(run.input_tokens, run)));
    stated("output tokens per request", &|run| each(tokens_per_request(run.output_tokens, run)));
    stated("output tokens counted by", &|run| run.token_source.clone());
    stated("accelerator", &|run| run.setup.hardware.clone());
    for side in sides.iter().filter(|side| side.is_converted) {
        notes.push(format!(
            "{} is a run of goodput, converted to the definitions of {} (docs/exports.md)",
            side.name,
            side.reported.tool.name()
        ));
        if side.verdict == Some(Verdict::Suspect) {
            notes.push(format!("{}: the run is suspect", side.name));
        }
        notes.extend(side.notes.iter().map(|note| format!("{}: {note}", side.name)));
    }
    notes
}

/// The load in a few words.
fn load_text(run: &Reported) -> String {
    let rate = run.load.rate_rps.map_or("?".to_owned(), |rate| format!("{rate}"));
    let users = run.load.concurrency.map_or("?".to_owned(), |n| n.to_string());
    match run.load.mode {
        ReportedMode::Open => format!("{rate} req/s"),
        ReportedMode::Capped => format!("{rate} req/s, at most {users} at once"),
        ReportedMode::Burst => "everything at once".to_owned(),
        ReportedMode::Closed => format!("{users} at once"),
        ReportedMode::Unknown => "not stated".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::ReportedMetric;

    use super::*;

    fn side(name: &str, tool: SourceTool, ttft: f64) -> ReportedSide {
        let mut reported = Reported::new(tool);
        reported.load.mode = ReportedMode::Open;
        reported.load.rate_rps = Some(10.0);
        (reported.ok, reported.output_tokens) = (Some(100), Some(2_000));
        reported.requests_per_s = Some(9.0);
        let metric = ReportedMetric { mean: Some(ttft), ..ReportedMetric::default() };
        reported.metrics.insert("ttft".to_owned(), metric.clone());
        reported.metrics.insert("e2e".to_owned(), metric);
        ReportedSide {
            name: name.to_owned(),
            path: name.to_owned(),
            is_converted: false,
            verdict: None,
            notes: Vec::new(),
            reported,
        }
    }

    fn figure<'a>(comparison: &'a FileComparison, name: &str) -> &'a FileFigure {
        comparison.figures.iter().find(|figure| figure.name == name).unwrap()
    }

    #[test]
    fn one_tool_and_one_load_can_be_compared() {
        let both =
            vec![side("a", SourceTool::VllmPython, 50.0), side("b", SourceTool::VllmRust, 60.0)];
        let found = FileComparison::new(both);
        let ttft = figure(&found, "ttft mean");
        assert_eq!(
            (ttft.values.clone(), ttft.because.as_str()),
            (vec![Some(50.0), Some(60.0)], "")
        );
        assert!((ttft.change_percent[1].unwrap() - 20.0).abs() < 1e-9);
        assert_eq!(figure(&found, "requests").change_percent[1], Some(0.0));
        // No tool states it.
        assert!(found.figures.iter().all(|figure| figure.name != "tpot p99"));
    }

    #[test]
    fn what_speaks_against_a_run_of_ours_is_said() {
        let mut ours = side("ours", SourceTool::VllmPython, 60.0);
        (ours.is_converted, ours.verdict) = (true, Some(Verdict::Void));
        ours.notes = vec!["the run is void: sent late".to_owned()];
        let found = FileComparison::new(vec![side("a", SourceTool::VllmPython, 50.0), ours]);
        assert_eq!(found.notes.last().unwrap(), "ours: the run is void: sent late");
    }

    #[test]
    fn what_differs_is_not_compared() {
        let differs = |change: fn(&mut Reported)| {
            let mut other = side("b", SourceTool::VllmPython, 60.0);
            change(&mut other.reported);
            FileComparison::new(vec![side("a", SourceTool::VllmPython, 50.0), other])
        };
        let found = differs(|run| run.output_tokens = Some(4_000));
        assert_eq!(figure(&found, "ttft mean").because, "request lengths differ");
        assert_eq!(figure(&found, "ttft mean").change_percent, [None, None]);
        assert!(found.notes.iter().any(|note| note == "output tokens per request: 20 / 40"));
        let found = differs(|run| run.load.rate_rps = Some(20.0));
        assert_eq!(figure(&found, "e2e mean").because, "loads differ");
        assert_eq!(figure(&found, "requests").because, "");
        let other = side("b", SourceTool::Sglang, 60.0);
        let found = FileComparison::new(vec![side("a", SourceTool::VllmPython, 50.0), other]);
        assert_eq!(figure(&found, "ttft mean").because, "vLLM counts the role's event as a token");
        assert_eq!(figure(&found, "e2e mean").because, "");
    }
}
