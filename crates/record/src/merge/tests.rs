use std::fs;
use std::path::Path;

use goodput_model::{AnswerJudgement, LoopLag, RequestRecord, Scrape};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::frame::tests::record;
use crate::{LogWriter, RunFolder};

/// A folder with these records, which end a microsecond after their numbers.
fn folder(
    root: &Path,
    name: &str,
    records: &[RequestRecord],
    samples: &[HealthSample],
) -> RunFolder {
    let path = root.join(name);
    fs::create_dir(&path).unwrap();
    fs::write(path.join("plan.toml"), "").unwrap();
    fs::write(path.join("manifest.json"), "").unwrap();
    let mut log = LogWriter::create(&path.join(LOG)).unwrap();
    for record in records {
        log.append(record);
    }
    log.finish();
    let mut log = LogWriter::create(&path.join(SAMPLES)).unwrap();
    for sample in samples {
        log.append(sample);
    }
    log.finish();
    RunFolder::open(&path).unwrap()
}

fn numbered(index: u64) -> RequestRecord {
    record(index, Nanos::from_micros(index), &[1, 2])
}

/// Merges these, and opens what came of it.
fn merged(root: &Path, folders: &[RunFolder]) -> Result<(RunFolder, Vec<Merged>), MergeError> {
    let out = root.join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("plan.toml"), "").unwrap();
    fs::write(out.join("manifest.json"), "").unwrap();
    let create = |name| LogWriter::create(&out.join(name)).unwrap();
    let logs = Logs { requests: create(LOG), samples: create(SAMPLES) };
    let part = |(place, folder)| MergePart {
        folder,
        first_worker: 10 * place as u32,
        sees_server: place == 1,
    };
    let parts: Vec<_> = folders.iter().enumerate().map(part).collect();
    let found = merge_logs(&parts, logs, &out)?;
    Ok((RunFolder::open(&out).unwrap(), found))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_record_is_lost_or_changed(to in prop::collection::vec(0usize..4, 0..60)) {
        let root = TempDir::new().unwrap();
        let all: Vec<RequestRecord> = (0..to.len() as u64).map(numbered).collect();
        let of = |shard: usize| -> Vec<RequestRecord> {
            let own = all.iter().zip(&to).filter(|(_, to)| **to == shard);
            own.map(|(record, _)| record.clone()).collect()
        };
        let folders: Vec<_> =
            (0..4).map(|shard| folder(root.path(), &shard.to_string(), &of(shard), &[])).collect();
        let (out, found) = merged(root.path(), &folders).unwrap();
        let expected: Vec<_> = all.iter().zip(&to).map(|(record, to)| {
            let mut record = record.clone();
            record.worker += 10 * *to as u32;
            record
        }).collect();
        prop_assert_eq!(out.read_records().unwrap().collect::<Vec<_>>(), expected);
        for (shard, found) in found.iter().enumerate() {
            prop_assert_eq!(found.records, of(shard).len() as u64);
            let last = of(shard).last().map_or(Nanos::ZERO, |record| record.exchange.stamps.ended);
            prop_assert_eq!(found.last_end, last);
            prop_assert!(!found.is_damaged);
        }
    }
}

#[test]
fn samples_keep_beats_and_one_view_of_the_server() {
    let root = TempDir::new().unwrap();
    let sample = |at, lag| HealthSample {
        at: Nanos(at),
        host: HostSample { cpus: 4, ..HostSample::default() },
        beats: vec![LoopLag { worker: 1, due: Nanos(at), lag: Nanos(lag) }],
        scrapes: vec![Scrape {
            at: Nanos(at),
            took: Nanos(1),
            endpoint: 0,
            outcome: Err(String::new()),
        }],
        ..HealthSample::default()
    };
    // The last look of the first says nothing but of the server, which the second speaks for.
    let last = HealthSample { beats: Vec::new(), ..sample(9, 0) };
    let folders = [
        folder(root.path(), "a", &[], &[sample(1, 5), sample(4, 6), last]),
        folder(root.path(), "b", &[], &[sample(2, 7), sample(3, 8)]),
    ];
    let (out, _) = merged(root.path(), &folders).unwrap();
    let seen: Vec<_> = out
        .read_samples()
        .map(|s| (s.at.0, s.beats[0].worker, s.beats[0].lag.0, s.scrapes.len(), s.host.cpus))
        .collect();
    assert_eq!(seen, [(1, 1, 5, 0, 0), (2, 11, 7, 1, 0), (3, 11, 8, 1, 0), (4, 1, 6, 0, 0)]);
}

#[test]
fn a_damaged_log_gives_what_is_whole() {
    let root = TempDir::new().unwrap();
    let folders = [
        folder(root.path(), "a", &[numbered(0), numbered(2), numbered(4)], &[]),
        folder(root.path(), "b", &[numbered(1), numbered(3)], &[]),
    ];
    let path = root.path().join("a").join(LOG);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let (out, found) = merged(root.path(), &folders).unwrap();
    let kept: Vec<u64> = out.read_records().unwrap().map(|record| record.index).collect();
    assert_eq!(kept, [0, 1, 2, 3]);
    assert_eq!(
        found.iter().map(|f| (f.records, f.is_damaged)).collect::<Vec<_>>(),
        [(2, true), (2, false)]
    );
}

#[test]
fn a_request_on_record_twice_is_named_with_both_folders() {
    let root = TempDir::new().unwrap();
    let folders = [
        folder(root.path(), "a", &[numbered(7), numbered(8)], &[]),
        folder(root.path(), "b", &[numbered(8)], &[]),
    ];
    let error = merged(root.path(), &folders).unwrap_err().to_string();
    assert!(
        error.contains("request 8 ") && error.contains("/a`") && error.contains("/b`"),
        "{error}"
    );
}

#[test]
fn judgements_and_texts_follow_each_other() {
    let root = TempDir::new().unwrap();
    let folders = ["a", "b", "c"].map(|name| folder(root.path(), name, &[], &[]));
    for (index, folder) in folders.iter().enumerate().take(2) {
        let mut log = JudgementLog::create(folder.path()).unwrap();
        log.append(&AnswerJudgement {
            index: index as u64,
            characters: 3,
            ..AnswerJudgement::default()
        });
        log.finish();
    }
    fs::write(folders[0].path().join(TEXT), "{\"index\":0}\n{\"in").unwrap();
    fs::write(folders[2].path().join(TEXT), "{\"index\":1}\n").unwrap();
    let (out, _) = merged(root.path(), &folders).unwrap();
    assert_eq!(out.read_judgements().map(|judgement| judgement.index).collect::<Vec<_>>(), [0, 1]);
    let texts = fs::read_to_string(out.path().join(TEXT)).unwrap();
    assert_eq!(texts, "{\"index\":0}\n{\"in\n{\"index\":1}\n");
}
