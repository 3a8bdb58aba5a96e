//! What a shadow says in the end, and so far.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use goodput_campaign::compare::{CompareFacts, CompareState};
use goodput_campaign::shadow::ShadowFacts;
use goodput_clock::now;
use goodput_live::Standing;

use super::collect::SoFar;
use super::saved::{Asked, Keeper};
use super::{Ended, Live};
use crate::args::ShadowArgs;
use crate::error::Failed;
use crate::screen::Screen;
use crate::{compare, output, report};

/// What is known beside the pairs.
fn facts(asked: &Asked, live: &Live, state: CompareState) -> (CompareFacts, ShadowFacts) {
    let (tally, seen) = (live.mirror.tally(), live.board.read());
    let dropped = tally.dropped().chain([
        // Sent, and in no pair all the same.
        ("cut", tally.cut()),
        ("unpaired", seen.unpaired),
        ("unjudged", seen.unjudged),
        ("lost", live.lost.load(Ordering::Relaxed)),
    ]);
    let dropped = dropped.filter(|(_, count)| *count > 0);
    let shadow = ShadowFacts {
        share: asked.share,
        passed: live.passed(),
        chosen: tally.chosen(),
        mirrored: tally.sent(),
        pairs: seen.pairs,
        dropped: dropped.map(|(reason, count)| (reason.to_owned(), count)).collect(),
        ended: match tally.standing() {
            Standing::Going => None,
            Standing::SwitchedOff => Some("switched off by SIGUSR1".to_owned()),
            Standing::Paused => Some("too many of the candidate's answers failed".to_owned()),
        },
    };
    let facts = CompareFacts {
        version: asked.version.clone(),
        started: asked.started.clone(),
        state,
        workload: format!("live traffic, {} of it mirrored", percent(asked.share)),
        took_s: (now() - live.began).as_secs(),
        ..CompareFacts::default()
    };
    (facts, shadow)
}

/// Says what the pairs so far mean.
pub(super) fn so_far(live: &Arc<Live>, asked: &Asked, screen: Option<Screen>) -> SoFar {
    let (live, asked) = (Arc::downgrade(live), asked.clone());
    Box::new(move |keeper| {
        let live = Weak::upgrade(&live)?;
        let (facts, shadow) = facts(&asked, &live, CompareState::Unfinished);
        let comparison = keeper.so_far(facts, &shadow);
        if let Some(screen) = &screen {
            screen.compare(&comparison, 0.0);
        }
        Some(comparison)
    })
}

/// Writes and prints the result.
pub(super) fn give(
    args: &ShadowArgs,
    asked: &Asked,
    live: &Live,
    (keeper, ended): (Keeper, Ended),
) -> Result<ExitCode, Failed> {
    let has_end = args.duration.is_some() || args.pairs.is_some();
    let state = match ended {
        // Without an end of its own a signal is how it ends.
        Ended::Stopped if has_end => CompareState::Interrupted,
        Ended::Stopped | Ended::Done => CompareState::Complete,
        Ended::Broken => CompareState::TargetLost,
    };
    let (facts, shadow) = facts(asked, live, state);
    let path = keeper.path().to_owned();
    let comparison = keeper.finish(facts, &shadow);
    if args.shown.json {
        output::data(report::json(&comparison).as_bytes())?;
    } else if !args.shown.quiet {
        output::page(&goodput_report::compare_text(&comparison))?;
    }
    if !args.shown.quiet {
        let path = goodput_report::plain(&path.display().to_string());
        output::note(&format!("\nresult folder: {path}"));
    }
    // Shown first: a file that cannot be written must not swallow the result.
    compare::write_files(&args.verdict.files, &comparison)?;
    Ok(ExitCode::from(compare::code(&comparison)))
}

/// `5 %`
pub(super) fn percent(share: f64) -> String {
    format!("{} %", (share * 1e5).round() / 1e3)
}
