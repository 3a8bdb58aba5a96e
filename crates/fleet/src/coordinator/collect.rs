//! Taking the files of ranks: who offers what, whose turn it is, and what has come of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use goodput_clock::now;
use goodput_model::Nanos;

use super::state::FleetState;
use super::store::StoreItem;
use super::{Coordinator, LOOK_UP, RankPhase};
use crate::message::{ToRank, UPLOADED, WENT_ON, clip_text};

/// Ranks whose files are taken at once; the others wait, so that folders become whole one after
/// another.
const AT_ONCE: usize = 16;
/// Letters of a rank's reason that are kept.
const REASON: usize = 1_000;

/// Names and sizes of files.
pub(super) type Files = Vec<(String, u64)>;

/// How far the files of a rank are.
#[derive(Debug, Default)]
pub(super) enum Upload {
    #[default]
    None,
    /// They wait for their turn.
    Offered(Files),
    /// They are not wanted, for this reason.
    Refused(String),
    /// It was told to send them.
    Granted(Files, PathBuf),
    /// They come.
    Taking,
    /// They arrive after the wait has ended.
    Ignored,
    /// They are where they belong: the rank shares our disk.
    InPlace,
}

impl Upload {
    fn is_under_way(&self) -> bool {
        matches!(self, Self::Granted(..) | Self::Taking)
    }

    /// The transfer in progress is no longer needed.
    pub(super) fn abandon(&mut self) {
        *self = match self {
            Self::Granted(..) | Self::Taking | Self::Ignored => Self::Ignored,
            _ => Self::None,
        };
    }
}

/// A collection.
#[derive(Debug)]
pub(super) struct Collecting {
    into: BTreeMap<u32, PathBuf>,
    results: BTreeMap<u32, Result<PathBuf, String>>,
}

/// What is wrong with an offer.
fn offer_flaw(files: &Files, most: u64) -> Option<String> {
    let mut names = BTreeSet::new();
    for (name, _) in files {
        if !UPLOADED.contains(&name.as_str()) || !names.insert(name) {
            return Some(format!(
                "`{}` is not a file of a run, or was sent twice",
                clip_text(name, 64)
            ));
        }
    }
    let bytes = files.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    (bytes > most).then(|| format!("{bytes} bytes of files exceed the limit of {most}"))
}

impl FleetState {
    /// A rank offers files.
    pub(super) fn note_offer(&mut self, rank: u32, number: u64, files: Files, most: u64) {
        let is_present = self.order_number() == Some(number);
        let Some(peer) = self.peers.get_mut(&rank) else { return };
        let took_part = matches!(peer.phase, RankPhase::Running | RankPhase::Done);
        let flaw = match offer_flaw(&files, most) {
            _ if !is_present => Some(WENT_ON.to_owned()),
            _ if !took_part => Some("it does not take part in this order".to_owned()),
            // Those that were ignored came before the offer; nothing more of them follows.
            _ if !matches!(peer.upload, Upload::None | Upload::Ignored) => {
                Some("the files were offered before".to_owned())
            }
            flaw => flaw,
        };
        if let Some(why) = flaw {
            peer.send(&ToRank::Taken { number, refused: Some(why.clone()) });
            if is_present {
                peer.upload.abandon();
                peer.upload = Upload::Refused(why);
            }
        } else {
            peer.upload = Upload::Offered(files);
        }
        self.grant_turns();
    }

    /// A rank has written its files where they belong.
    pub(super) fn note_kept(&mut self, rank: u32) {
        if let Some(peer) = self.peers.get_mut(&rank)
            && matches!(peer.phase, RankPhase::Running | RankPhase::Done)
        {
            peer.upload = Upload::InPlace;
        }
    }

    /// Lets those send whose turn it is.
    fn grant_turns(&mut self) {
        let Some(number) = self.order_number() else { return };
        let Some(collecting) = &self.collecting else { return };
        let under_way = self.peers.values().filter(|peer| peer.upload.is_under_way()).count();
        let offered = self.peers.iter_mut().filter_map(|(rank, peer)| match &mut peer.upload {
            Upload::Offered(files) => {
                let into = collecting.into.get(rank)?.clone();
                Some((std::mem::take(files), into, peer))
            }
            _ => None,
        });
        for (files, into, peer) in offered.take(AT_ONCE.saturating_sub(under_way)) {
            peer.upload = Upload::Granted(files, into);
            peer.send(&ToRank::Take { number });
        }
    }

    /// What is to be done first when files come; an error where they were not requested.
    pub(super) fn accept_upload(
        &mut self,
        rank: u32,
        connection: u64,
        is_last: bool,
    ) -> Result<Taking, &'static str> {
        let peer =
            self.peer(rank, connection).ok_or("another connection of this rank replaced it")?;
        match std::mem::take(&mut peer.upload) {
            Upload::Granted(files, into) => {
                peer.upload = Upload::Taking;
                Ok(Taking::First(StoreItem::Begin { connection, rank, into, files }))
            }
            Upload::Taking => {
                peer.upload = Upload::Taking;
                Ok(Taking::More)
            }
            Upload::Ignored => {
                // The next ones may be wanted.
                peer.upload = if is_last { Upload::None } else { Upload::Ignored };
                Ok(Taking::Ignored)
            }
            Upload::Offered(_) if is_last => {
                peer.upload = Upload::Refused("it sent files before its turn".to_owned());
                Ok(Taking::Ignored)
            }
            other if is_last => {
                peer.upload = other;
                Ok(Taking::Ignored)
            }
            _ => Err("it sends files that were not requested"),
        }
    }

    /// The files of a rank are whole, or will never be.
    pub(super) fn note_stored(
        &mut self,
        rank: u32,
        connection: u64,
        result: Result<PathBuf, String>,
    ) {
        let number = self.order_number().unwrap_or_default();
        let Some(peer) = self.peer(rank, connection) else { return };
        if !matches!(peer.upload, Upload::Taking) {
            return;
        }
        // What the disk says is for us; the rank hears that it failed.
        let refused = result.as_ref().err().cloned();
        peer.upload = if refused.is_some() { Upload::Ignored } else { Upload::None };
        peer.send(&ToRank::Taken { number, refused });
        if let Some(collecting) = &mut self.collecting {
            collecting.results.insert(rank, result);
        }
        self.grant_turns();
    }

    /// A rank is gone: what it has not sent will not come.
    pub(super) fn note_lost(&mut self, rank: u32, why: &str) {
        let Some(peer) = self.peers.get_mut(&rank) else { return };
        let was_sending = peer.upload.is_under_way();
        if !matches!(peer.upload, Upload::InPlace) {
            peer.upload = Upload::None;
        }
        if let Some(collecting) = self.collecting.as_mut().filter(|_| was_sending) {
            collecting
                .results
                .insert(rank, Err(format!("the connection was lost during the transfer: {why}")));
        }
        self.grant_turns();
    }

    /// Notes from whom nothing will come; says whether all is said.
    fn settle_uploads(&mut self) -> bool {
        let Some(collecting) = &mut self.collecting else { return true };
        for (rank, into) in &collecting.into {
            if collecting.results.contains_key(rank) {
                continue;
            }
            let why = match self.peers.get(rank) {
                None => "it never joined".to_owned(),
                Some(peer) => match (&peer.phase, &peer.upload) {
                    (_, Upload::InPlace) => {
                        collecting.results.insert(*rank, Ok(into.clone()));
                        continue;
                    }
                    (RankPhase::Refused(why), _) | (_, Upload::Refused(why)) => why.clone(),
                    (RankPhase::Running | RankPhase::Done, _) if peer.is_connected() => continue,
                    _ => peer.lost.as_ref().map_or_else(
                        || "it did not take part".to_owned(),
                        |why| format!("the connection was lost: {why}"),
                    ),
                },
            };
            collecting.results.insert(*rank, Err(why));
        }
        collecting.results.len() == collecting.into.len()
    }

    fn end_collection(&mut self) -> Vec<(u32, Result<PathBuf, String>)> {
        let number = self.order_number().unwrap_or_default();
        let Some(mut collecting) = self.collecting.take() else { return Vec::new() };
        let late = "its files did not arrive in time";
        for (rank, peer) in &mut self.peers {
            if !collecting.results.contains_key(rank) {
                peer.upload.abandon();
                peer.send(&ToRank::Taken { number, refused: Some(late.to_owned()) });
            }
        }
        let ranks = collecting.into.into_keys();
        ranks
            .map(|rank| {
                (rank, collecting.results.remove(&rank).unwrap_or_else(|| Err(late.to_owned())))
            })
            .collect()
    }
}

/// What to do with what comes.
#[derive(Debug)]
pub(super) enum Taking {
    /// It is the first; this goes before it.
    First(StoreItem),
    /// Write it.
    More,
    /// Leave it.
    Ignored,
}

/// Why the rest of a rank's files will not come, as it says.
pub(super) fn failure_reason(text: &str) -> String {
    format!("it gave up: {}", clip_text(text, REASON))
}

impl Coordinator {
    /// Takes the files of all ranks that had a part in this order, each into its folder: those
    /// appear when they are whole, and there must be nothing there before. Waits until all are here,
    /// or nothing more can come, or until this instant; says of every rank what came of it. Meanwhile
    /// `look` is called with how many are settled; `false` gives up.
    pub fn collect(
        &self,
        into: impl Fn(u32) -> PathBuf,
        deadline: Nanos,
        mut look: impl FnMut(usize) -> bool,
    ) -> Vec<(u32, Result<PathBuf, String>)> {
        let into = (1..self.shared.settings.of).map(|rank| (rank, into(rank))).collect();
        {
            let mut state = self.shared.lock();
            state.collecting = Some(Collecting { into, results: BTreeMap::new() });
            state.grant_turns();
        }
        loop {
            let (is_over, settled) = {
                let mut state = self.shared.lock();
                (state.settle_uploads(), state.collecting.as_ref().map_or(0, |it| it.results.len()))
            };
            if is_over || !look(settled) || now() >= deadline {
                return self.shared.lock().end_collection();
            }
            self.shared.pause(deadline.min(now() + LOOK_UP));
        }
    }
}
