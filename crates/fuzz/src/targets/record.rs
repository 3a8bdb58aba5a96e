//! What lies in a folder of ours: frames, logs, manifests, summaries, plans.

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use goodput_model::{
    AnswerJudgement, HealthSample, Likeness, Nanos, PairNote, Plan, RequestRecord,
};
use goodput_record::{Framed, LogReader, LogTail, Manifest, parse_plan, plan_text};
use goodput_stats::{RunFacts, Summary};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{FuzzTarget, InputLimits, ParserInput, SHORT, USUAL, check_same, text_seeds};

/// First bytes of every log.
const MARK: &[u8; 8] = b"goodput\x01";

/// A plan of every kind of table.
pub(super) const PLAN: &str = include_str!("../../corpus/plan.toml");
const PLANS: [&str; 3] = [
    PLAN,
    include_str!("../../corpus/plan-closed.toml"),
    include_str!("../../corpus/plan-schedule.toml"),
];
const MANIFEST: &str = include_str!("../../corpus/manifest.json");
const SUMMARY: &str = include_str!("../../corpus/summary.json");

/// Completed requests, failed requests, and observations made during them.
const LOGS: [&[u8]; 3] = [
    include_bytes!("../../corpus/requests.log"),
    include_bytes!("../../corpus/requests-faults.log"),
    include_bytes!("../../corpus/server.log"),
];

#[expect(clippy::too_many_lines, reason = "a list")]
pub(super) fn targets() -> Vec<FuzzTarget> {
    vec![
        FuzzTarget {
            name: "frame-request",
            seeds: message_seeds,
            words: &["length", "http_500", "usage"],
            check: fuzz_frame::<RequestRecord>,
            limits: InputLimits { per_byte: 256, ..USUAL },
            short: SHORT,
        },
        FuzzTarget {
            name: "frame-sample",
            seeds: message_seeds,
            words: &[],
            check: fuzz_frame::<HealthSample>,
            limits: InputLimits { per_byte: 256, ..USUAL },
            short: SHORT,
        },
        FuzzTarget {
            name: "frame-judgement",
            seeds: message_seeds,
            words: &[],
            check: fuzz_frame::<AnswerJudgement>,
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "frame-pair",
            seeds: message_seeds,
            words: &[],
            check: fuzz_frame::<PairNote>,
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "log",
            seeds: log_seeds,
            words: &["goodput\u{1}"],
            check: fuzz_log,
            limits: InputLimits { per_byte: 256, ..USUAL },
            short: SHORT,
        },
        FuzzTarget {
            name: "analyse",
            seeds: log_seeds,
            words: &["goodput\u{1}"],
            check: |case| fuzz_analysis(case, case.input, LOGS[2]),
            limits: InputLimits { bytes: 16 << 20, per_byte: 4096, time: Duration::from_secs(4) },
            short: SHORT / 20,
        },
        FuzzTarget {
            name: "analyse-samples",
            seeds: log_seeds,
            words: &["goodput\u{1}"],
            check: |case| fuzz_analysis(case, LOGS[1], case.input),
            limits: InputLimits { bytes: 16 << 20, per_byte: 4096, time: Duration::from_secs(4) },
            short: SHORT / 20,
        },
        FuzzTarget {
            name: "manifest",
            seeds: || text_seeds(&[MANIFEST]),
            words: &["\"state\":\"running\"", "\"shards\":[]", "\"clocks\":", "\"unix_ns\":"],
            check: |case| {
                let Some(manifest) = check_json::<Manifest>(case)? else { return Ok(()) };
                let _ = (manifest.unix_ns(Nanos(1)), manifest.unix_ns(Nanos(u64::MAX)));
                let _ = manifest.clock_step_ms();
                Ok(())
            },
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "summary",
            seeds: || text_seeds(&[SUMMARY]),
            words: &["null", "\"percentiles\":", "\"caveats\":[]"],
            check: |case| {
                let Some(summary) = check_json::<Summary>(case)? else { return Ok(()) };
                drop(goodput_report::run_text(&summary, goodput_report::Detail::Full));
                Ok(())
            },
            limits: InputLimits { per_byte: 512, ..USUAL },
            short: SHORT / 4,
        },
        FuzzTarget {
            name: "plan",
            seeds: || text_seeds(&PLANS),
            words: super::text::TOML,
            check: fuzz_plan,
            limits: InputLimits { per_byte: 512, ..USUAL },
            short: SHORT / 2,
        },
    ]
}

/// What a message says, written and read again. Unknown fields are skipped, so the first reading may
/// lose something; the second must not.
fn fuzz_frame<T: Framed>(case: &ParserInput<'_>) -> Result<(), String> {
    let Ok(record) = T::decode(case.input) else { return Ok(()) };
    let written = record.encode();
    let again = T::decode(&written).map_err(|error| format!("what was written: {error}"))?;
    check_same("written and read again", &again.encode(), &written)
}

/// Values that JSON can hold, read, written and read again; none if it is another thing.
fn check_json<T: DeserializeOwned + Serialize>(
    case: &ParserInput<'_>,
) -> Result<Option<T>, String> {
    let Ok(value) = serde_json::from_slice::<T>(case.input) else { return Ok(None) };
    let written = serde_json::to_string(&value).map_err(|error| format!("not written: {error}"))?;
    let again: T =
        serde_json::from_str(&written).map_err(|error| format!("what was written: {error}"))?;
    let twice = serde_json::to_string(&again).map_err(|error| format!("not written: {error}"))?;
    check_same("written and read again", &twice, &written)?;
    Ok(Some(value))
}

/// The log as it is, and with checksums that are right, so that what is in its frames is looked at.
fn fuzz_log(case: &ParserInput<'_>) -> Result<(), String> {
    for bytes in [case.input.to_vec(), with_repaired_checksums(case.input)] {
        let path = case.scratch.write_file("requests.log", &bytes)?;
        let Ok(reader) = LogReader::<RequestRecord>::open(&path, Vec::new()) else { continue };
        let read: Vec<_> = reader.map(|record| record.encode()).collect();
        let tail = File::open(&path).map_err(|error| error.to_string())?;
        let mut tail = LogTail::<RequestRecord>::new(tail);
        let followed = tail.read(usize::MAX, u64::MAX).unwrap_or_default();
        let followed: Vec<_> = followed.iter().map(Framed::encode).collect();
        check_same("followed and read at once", &followed, &read)?;
        for kind in
            [read_to_end::<HealthSample>, read_to_end::<AnswerJudgement>, read_to_end::<PairNote>]
        {
            kind(&path);
        }
    }
    Ok(())
}

fn read_to_end<T: Framed>(path: &Path) {
    if let Ok(reader) = LogReader::<T>::open(path, Vec::new()) {
        reader.for_each(drop);
    }
}

/// The figures of a run with arbitrary records and observations.
fn fuzz_analysis(case: &ParserInput<'_>, records: &[u8], samples: &[u8]) -> Result<(), String> {
    static READ: OnceLock<Option<Plan>> = OnceLock::new();
    let Some(plan) = READ.get_or_init(|| parse_plan(PLAN).ok()) else {
        return Err("the plan in the corpus is not valid".to_owned());
    };
    let judgements: Vec<AnswerJudgement> =
        read_frames(&case.scratch.write_file("judgements.log", &with_repaired_checksums(samples))?);
    let samples: Vec<HealthSample> =
        read_frames(&case.scratch.write_file("server.log", &with_repaired_checksums(samples))?);
    let records: Vec<RequestRecord> =
        read_frames(&case.scratch.write_file("requests.log", &with_repaired_checksums(records))?);
    let facts = RunFacts { api: "chat".to_owned(), stream: true, ..RunFacts::default() };
    let each = || records.iter().cloned();
    let summary = goodput_stats::analyze_run(plan, facts, each, &samples, judgements);
    drop(goodput_stats::chart_details(plan, &summary, each(), &samples));
    drop(goodput_report::run_text(&summary, goodput_report::Detail::Full));
    serde_json::to_string(&summary).map(drop).map_err(|error| format!("no summary: {error}"))
}

/// The first records of a log: numbers, not amounts, are the matter here.
fn read_frames<T: Framed>(path: &Path) -> Vec<T> {
    LogReader::open(path, Vec::new()).into_iter().flatten().take(128).collect()
}

fn fuzz_plan(case: &ParserInput<'_>) -> Result<(), String> {
    let Some(text) = case.text() else { return Ok(()) };
    let Ok(plan) = parse_plan(text) else { return Ok(()) };
    let written = plan_text(&plan).map_err(|error| format!("not written: {error}"))?;
    let again = parse_plan(&written).map_err(|error| format!("what was written: {error}"))?;
    let twice = plan_text(&again).map_err(|error| format!("not written: {error}"))?;
    check_same("written and read again", &twice, &written)
}

/// A log with a right mark and right checksums around the same messages.
fn with_repaired_checksums(bytes: &[u8]) -> Vec<u8> {
    let frames = split_frames(bytes).into_iter().flat_map(frame_message);
    MARK.iter().copied().chain(frames).collect()
}

/// The messages of a log, by the lengths that it states; the last one as far as it goes.
fn split_frames(log: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = log.get(MARK.len()..).unwrap_or_default();
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let [a, b, c, d, ..] = *head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let (message, after) = after.split_at(length.min(after.len()));
        parts.push(message);
        rest = after;
    }
    parts
}

fn frame_message(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(0).to_le_bytes();
    [&length[..], &crc32fast::hash(message).to_le_bytes(), message].concat()
}

/// Messages of every kind: one kind's are another's nonsense, which is welcome too.
fn message_seeds() -> Vec<Vec<u8>> {
    let mut all: Vec<_> =
        LOGS.iter().flat_map(|log| split_frames(log)).map(<[u8]>::to_vec).collect();
    let (output_tokens, characters, valid) = (Some(7), 30, Some(true));
    all.push(AnswerJudgement { index: 3, output_tokens, characters, valid }.encode());
    let likeness = Some(Likeness { exact: false, prefix: 4, lengths: [5, 6] });
    all.push(PairNote { number: 3, at: Nanos(5_000), likeness }.encode());
    all
}

fn log_seeds() -> Vec<Vec<u8>> {
    let [one, other, _] =
        LOGS.map(|log| split_frames(log).into_iter().flat_map(frame_message).collect::<Vec<_>>());
    let mut all = LOGS.map(<[u8]>::to_vec).to_vec();
    all.push([&MARK[..], &one, &other, &one].concat());
    all
}
