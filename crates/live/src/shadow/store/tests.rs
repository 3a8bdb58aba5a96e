//! What is written is read again, whatever happened in between.

use goodput_campaign::compare::Comparison;
use goodput_model::{
    Chunk, Exchange, Likeness, Nanos, Phase, Planned, RequestRecord, Stamps, TokenCount,
    TokenSource,
};
use goodput_report::{Detail, compare_text};

use super::*;
use crate::observer::SilentObserver;

fn whole_page(found: &Comparison) -> String {
    compare_text(found, Detail::Full)
}

fn record(at: Nanos, ttft_us: u64) -> RequestRecord {
    let chunk = |k: u64| Chunk {
        // Not on whole microseconds, and so near that rounding shows: the log rounds.
        at: at + Nanos(ttft_us * 1_000 + k * 100_333),
        tokens: None,
        bytes: 3,
        choice: 0,
        coalesced: false,
        lag_us: None,
    };
    let chunks: Vec<Chunk> = (0..8).map(chunk).collect();
    let (first, last) = (chunks.first().map(|c| c.at), chunks.last().map(|c| c.at));
    RequestRecord {
        index: 77,
        phase: Phase::Measured,
        worker: 0,
        scheduled: at,
        pacer_lag: None,
        cap_wait: Nanos::ZERO,
        planned: Planned::new("live", 0, None),
        exchange: Exchange {
            stamps: Stamps { first_token: first, last_token: last, ..Stamps::default() },
            chunks,
            status: Some(200),
            finish: Some("stop".to_owned()),
            output_tokens: Some(TokenCount { n: 8, source: TokenSource::Usage }),
            ..Exchange::default()
        },
        prompt: None,
    }
}

/// A request a second; the candidate takes a tenth longer to its first token.
fn pair(second: u64) -> Pair {
    let at = Nanos(second * 1_000_000_000);
    let ttft_us = 100_000 + second % 60 * 500 + second / 60 * 137;
    Pair {
        at,
        primary: record(at, ttft_us),
        candidate: record(at, ttft_us * 11 / 10),
        likeness: Some(Likeness { exact: second.is_multiple_of(4), prefix: 9, lengths: [20, 18] }),
    }
}

fn plan() -> ShadowPlan {
    let side = |name: &str, port: u16| Side {
        name: name.to_owned(),
        target: format!("http://127.0.0.1:{port}"),
        ..Side::default()
    };
    ShadowPlan {
        schema: ShadowPlan::SCHEMA.to_owned(),
        version: "0.10.0".to_owned(),
        started: "2026-11-16T09:00:00Z".to_owned(),
        share: 0.05,
        flags: BTreeMap::from([("max-concurrency".to_owned(), "8".to_owned())]),
        pairs: PairSettings::default(),
        sides: [side("primary", 8000), side("candidate", 8001)],
    }
}

fn shadow(pairs: u64) -> ShadowFacts {
    ShadowFacts {
        share: 0.05,
        passed: 20 * pairs,
        chosen: pairs,
        mirrored: pairs,
        ..Default::default()
    }
}

fn facts(state: CompareState) -> CompareFacts {
    CompareFacts {
        state,
        started: "2026-11-16T09:00:00Z".to_owned(),
        took_s: 480.0,
        ..Default::default()
    }
}

fn create(path: &Path) -> Result<PairStore, FolderError> {
    PairStore::create(path, plan(), whole_page, Arc::new(SilentObserver))
}

#[test]
fn a_report_is_the_page_that_was_printed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let mut keeper = create(&path).unwrap();
    (0..480).for_each(|second| keeper.append(pair(second)));
    assert_eq!(keeper.last_error(), None);
    // Of memory, and then of the logs.
    let printed = keeper.finish(facts(CompareState::Interrupted), &shadow(480));
    let page = whole_page(&printed);
    assert!(page.contains("candidate is slower: ") && page.contains(" +10.0 % ("), "{page}");
    let read = read_shadow(&path).unwrap().unwrap();
    assert!(read.findings == printed.findings && read.runs == printed.runs);
    assert!(read.findings.iter().any(|finding| finding.metric == "itl_p50"));
    assert_eq!(whole_page(&read), page);
    assert_eq!(std::fs::read_to_string(path.join("report.txt")).unwrap(), page);
    assert!(read_shadow(place.path()).is_none());
}

#[test]
fn a_shadow_that_was_killed_reports_what_is_there() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let mut keeper = create(&path).unwrap();
    (0..300).for_each(|second| keeper.append(pair(second)));
    keeper.flush();
    // Before anything was summed up.
    let early = read_shadow(&path).unwrap().unwrap();
    assert_eq!(early.comparison.state, CompareState::Unfinished);
    assert_eq!((early.comparison.blocks, early.shadow.as_ref().unwrap().pairs), (5, 300));
    assert_eq!(early.shadow.unwrap().facts.share, 0.05);
    // With figures of an earlier moment next to the logs.
    let mut ledger = Ledger::new(plan().pairs);
    (0..120).for_each(|second| ledger.add(&pair(second)));
    let so_far = ledger.compare(facts(CompareState::Unfinished), &shadow(120), plan().sides);
    keeper.write_so_far(&so_far);
    (300..420).for_each(|second| keeper.append(pair(second)));
    keeper.flush();
    drop(keeper);
    let bytes = std::fs::read(path.join("candidate.log")).unwrap();
    std::fs::write(path.join("candidate.log"), &bytes[..bytes.len() - 5]).unwrap();
    let late = read_shadow(&path).unwrap().unwrap();
    let found = late.shadow.as_ref().unwrap();
    assert_eq!((found.pairs, found.facts.passed), (419, 2_400));
    let page = whole_page(&late);
    assert!(page.contains("so far") && page.contains("a log in this folder is cut"), "{page}");
    assert!(!whole_page(&so_far).contains("is cut"));
    assert_eq!(late.verdict, Verdict::Suspect);
}

#[test]
fn a_disk_that_is_full_is_said_once() {
    let place = tempfile::tempdir().unwrap();
    let keeper = create(&place.path().join("out")).unwrap();
    let full = || {
        let (action, path) = ("write", place.path().to_owned());
        Err(FolderError::Io { action, path, error: std::io::ErrorKind::StorageFull.into() })
    };
    let news = [Ok(()), full(), full(), Ok(()), Ok(()), full()]
        .map(|written| keeper.write_warning(written));
    let is_said = news.each_ref().map(Option::is_some);
    assert_eq!(is_said, [false, true, false, true, false, true], "{news:?}");
    assert!(news[1].as_ref().unwrap().starts_with("warning: "));
}

#[test]
fn sides_name_the_models_that_were_asked_for() {
    let named = |names: &[&str], own: &str| {
        let mut sides = plan().sides;
        sides[1].model = own.to_owned();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        with_models(sides, &names).map(|side| side.model)
    };
    assert_eq!(named(&["", "b", "a"], ""), ["a, b", "a, b"]);
    assert_eq!(named(&["a", "b", "c", "d", "e"], "own"), ["a, b, c and 2 more", "own"]);
    assert_eq!(named(&[], ""), ["", ""]);
}

#[test]
fn an_empty_folder_says_that_nothing_was_compared() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let keeper = create(&path).unwrap();
    let found = keeper.finish(facts(CompareState::Complete), &shadow(0));
    assert_eq!(found.verdict, Verdict::Void);
    assert!(whole_page(&found).contains("no request was answered by both servers"));
}
