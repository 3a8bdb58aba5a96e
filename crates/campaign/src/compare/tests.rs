#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod answer;
mod design;
mod rank;
mod summary;

use goodput_model::Verdict;

use super::*;

/// Two sides at one level, one look after this many blocks.
fn design(looks: &[u32]) -> Design {
    Design {
        sides: vec!["a".to_owned(), "b".to_owned()],
        levels: vec![Level::Rate(5.0)],
        looks: looks.to_vec(),
        seed: 7,
        ..Design::default()
    }
}

fn cell(ask: RunAsk, figures: &[(&str, f64)]) -> ComparedRun {
    let figure = |value: f64| Figure { value, low: None, high: None };
    ComparedRun {
        ask,
        verdict: Verdict::Valid,
        doubt: None,
        figures: figures.iter().map(|(name, value)| ((*name).to_owned(), figure(*value))).collect(),
        facts: SideFacts::default(),
    }
}

/// Runs of one figure, block by block, side by side.
fn blocks(metric: &str, values: &[&[f64]]) -> Vec<ComparedRun> {
    let mut done = Vec::new();
    for (block, sides) in (1u32..).zip(values) {
        for (side, value) in (0u32..).zip(*sides) {
            let number = u32::try_from(done.len()).unwrap() + 1;
            let ask = RunAsk { number, block, side, level: 0, seed: 7 + u64::from(block) - 1 };
            done.push(cell(ask, &[(metric, *value)]));
        }
    }
    done
}

/// The reference is 100 in each block; the candidate this much of it, in percent.
fn against_100(metric: &str, percents: &[f64]) -> Vec<ComparedRun> {
    let pairs: Vec<[f64; 2]> = percents.iter().map(|percent| [100.0, *percent]).collect();
    blocks(metric, &pairs.iter().map(<[f64; 2]>::as_slice).collect::<Vec<_>>())
}

/// Adds the figures of other runs to those of the same place.
fn joined(mut done: Vec<ComparedRun>, others: &[ComparedRun]) -> Vec<ComparedRun> {
    for (cell, other) in done.iter_mut().zip(others) {
        cell.figures.extend(other.figures.clone());
    }
    done
}
