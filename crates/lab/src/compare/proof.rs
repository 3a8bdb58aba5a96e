//! Whether all sides were sent the same, from their logs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use goodput_campaign::compare::Proof;
use goodput_model::{Mode, Nanos, RequestRecord};
use goodput_record::RunFolder;
use sha2::{Digest, Sha256};

/// Compares what was sent: for each group of runs that should have been sent the same, the folders
/// of its sides. None if a log holds no hashes or cannot be read, or nothing was sent to all.
///
/// A request that one side lacks is not compared: a closed loop asks a slower server less. Nor is
/// one that quotes a server's answer. Of those that are, only the first of a session is due at an
/// instant of the plan; what follows an answer is due when the server lets it.
pub fn prove_same_requests(groups: &[Vec<PathBuf>]) -> Option<Proof> {
    let mut proof = Proof::default();
    let mut all = Sha256::new();
    for group in groups.iter().filter(|group| group.len() > 1) {
        let Group { requests, is_timed, without_model } = read_group(group)?;
        proof.without_model |= without_model;
        if is_timed {
            proof.same_instant.get_or_insert(0);
        }
        for (index, request) in requests {
            proof.compared += 1;
            if !request.is_identical {
                continue;
            }
            proof.identical += 1;
            if is_timed && request.is_at_once {
                proof.same_instant = proof.same_instant.map(|count| count + 1);
            }
            all.update(index.to_be_bytes());
            all.update(request.hash.to_be_bytes());
        }
    }
    let digest = all.finalize();
    proof.sha256 = digest.iter().fold(String::new(), |mut text, byte| {
        // Writing into memory does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    (proof.compared > 0).then_some(proof)
}

/// Runs that should have been sent the same.
struct Group {
    /// What all of them were sent, by its number in the plan.
    requests: BTreeMap<u64, ProvenRequest>,
    /// Whether the plan, and not the server, says when requests are due.
    is_timed: bool,
    /// Whether the names of their models differ.
    without_model: bool,
}

/// One request over the sides that have been read.
struct ProvenRequest {
    hash: u64,
    due: Nanos,
    /// Sides that were sent it.
    sides: usize,
    is_identical: bool,
    is_at_once: bool,
}

fn read_group(group: &[PathBuf]) -> Option<Group> {
    let mut requests = BTreeMap::new();
    let mut is_timed = true;
    let mut models = Vec::new();
    for (side, path) in group.iter().enumerate() {
        let folder = RunFolder::open(path).ok()?;
        let plan = folder.read_plan().ok()?;
        is_timed &= !matches!(plan.load.mode, Mode::Closed { .. });
        models.push(folder.read_manifest().ok()?.target.model);
        add_side(side, folder.read_records().ok()?, &mut requests)?;
        // Metrics that this side lacks are not compared.
        requests.retain(|_, request| request.sides > side);
    }
    let without_model = models.iter().zip(models.iter().skip(1)).any(|(one, next)| one != next);
    Some(Group { requests, is_timed, without_model })
}

/// Enters what one side was sent. None if it was sent something and nothing was hashed.
fn add_side(
    side: usize,
    records: impl Iterator<Item = RequestRecord>,
    requests: &mut BTreeMap<u64, ProvenRequest>,
) -> Option<()> {
    let (mut is_hashed, mut is_empty) = (false, true);
    for record in records.filter(|record| record.exchange.stamps.sent_last.is_some()) {
        is_empty = false;
        let Some(hash) = record.exchange.body_hash else { continue };
        is_hashed = true;
        let due = record.scheduled;
        if side == 0 {
            let sent = ProvenRequest { hash, due, sides: 1, is_identical: true, is_at_once: true };
            requests.entry(record.index).or_insert(sent);
        } else if let Some(sent) = requests.get_mut(&record.index).filter(|sent| sent.sides == side)
        {
            sent.sides += 1;
            sent.is_identical &= sent.hash == hash;
            sent.is_at_once &= sent.due == due;
        }
    }
    (is_hashed || is_empty).then_some(())
}

#[cfg(test)]
mod tests;
