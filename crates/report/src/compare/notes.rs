//! What a comparison says next to its tables: who, how, what differs, what was sent, how much is chance.

use goodput_campaign::compare::{
    BlockOrder, CompareState, Comparison, Design, Difference, Floor, Matter, Quantity, Side,
    Stopped,
};

use goodput_model::{Caveat, CaveatCode, Severity};

use super::words::{FigureWords, count_text, level_text, side_label};
use super::{servers, shadow};
use goodput_document::SeverityMark;
use goodput_document::number::duration;
use goodput_document::number::{count, trimmed_text};
use goodput_model::escape_control;

/// A label and what stands next to it.
pub(crate) type LabeledText = (&'static str, String);

/// Who was compared, and how.
pub(crate) fn setup_notes(comparison: &Comparison) -> Vec<LabeledText> {
    let mut notes = Vec::new();
    for (place, side) in comparison.sides.iter().enumerate() {
        let first = if place == 0 { "Sides" } else { "" };
        notes.push((first, side_text(side, &side_label(comparison, place as u32), place)));
    }
    notes.extend(servers::system_notes(comparison));
    let facts = &comparison.comparison;
    if !facts.workload.is_empty() {
        notes.push(("Workload", escape_control(&facts.workload)));
    }
    let levels: Vec<String> = (0..comparison.design.levels.len())
        .map(|place| level_text(comparison, place as u32))
        .collect();
    let load = match comparison.design.quantity {
        Quantity::Goodput => "the highest load that keeps the SLO, searched for again in each run",
        Quantity::Runs => &levels.join(", "),
    };
    if !load.is_empty() {
        notes.push(("Load", load.to_owned()));
    }
    if !facts.slo.is_empty() {
        notes.push(("SLO", escape_control(&facts.slo)));
    }
    if let Some(found) = &comparison.shadow {
        notes.push(("Blocks", shadow::blocks_text(comparison, found)));
        notes.push(("Test", verdict_rule_text(comparison)));
    } else if comparison.is_paired {
        notes.push(("Blocks", blocks_text(comparison)));
        notes.push(("Test", verdict_rule_text(comparison)));
    } else {
        let text = if facts.from_baseline {
            "those of the first side are saved, and its plans were measured again on the others: \
             the figures also include whatever else changed in between"
        } else {
            "saved runs, not interleaved: the figures also include whatever else changed between \
             them"
        };
        notes.push(("Runs", text.to_owned()));
    }
    notes.extend(state_note(comparison));
    if !facts.command.is_empty() {
        notes.push(("Command", escape_control(&facts.command)));
    }
    notes
}

fn side_text(side: &Side, label: &str, place: usize) -> String {
    let name = escape_control(&side.name);
    let mut parts = Vec::new();
    if name != label && name != escape_control(&side.target) && !name.trim().is_empty() {
        parts.push(name);
    }
    parts.push(escape_control(&side.target));
    if !side.model.is_empty() {
        parts.push(format!("model {}", escape_control(&side.model)));
    }
    if let Some(gpus) = side.gpus {
        let price = side
            .price_per_gpu_hour
            .map_or(String::new(), |price| format!(" at {} per hour each", trimmed_text(price)));
        parts.push(format!("{}{price}", count_text(gpus, "GPU")));
    }
    let reference = if place == 0 { " · the reference" } else { "" };
    format!("{label}: {}{reference}", parts.join(" · "))
}

/// In which order the sides of a block are measured.
pub(crate) fn order_text(design: &Design) -> &'static str {
    match design.order {
        _ if design.at_once => "all sides at once",
        BlockOrder::Abba => "every second block in reverse order",
        BlockOrder::Random => "order drawn for each block",
    }
}

fn blocks_text(comparison: &Comparison) -> String {
    let (facts, design) = (&comparison.comparison, &comparison.design);
    let order = order_text(design);
    let run = match design.quantity {
        Quantity::Goodput => String::new(),
        Quantity::Runs => format!(
            ", each run {} s after {} s of load",
            trimmed_text(design.run_s),
            trimmed_text(design.burn_in_s)
        ),
    };
    let ended = match facts.stopped {
        Some(Stopped::Known) => "; ended early: every tested figure is decided",
        Some(Stopped::LastLook) => "; ended after the last test",
        Some(Stopped::Void) => "; ended because too many runs were void",
        None => "",
    };
    let most = design.looks.last().map_or(String::new(), |most| format!(" of at most {most}"));
    let took = match facts.took_s {
        s if s > 0.0 => format!(", {} in all", duration(s)),
        _ => String::new(),
    };
    format!("{}{most}{run}, {order}{took}{ended}", facts.blocks)
}

/// What a verdict means.
fn verdict_rule_text(comparison: &Comparison) -> String {
    let design = &comparison.design;
    let tested = comparison.findings.iter().filter(|finding| finding.is_tested).count();
    let together = match tested {
        0 | 1 => String::new(),
        n => format!(" for all {n} tested figures together"),
    };
    let own = |(name, margin): (&String, &f64)| {
        let known = FigureWords::new(name);
        format!("{} {}", known.name_in_sentence(), known.margin_text(*margin))
    };
    let own: Vec<String> = design.margins.iter().map(own).collect();
    let own = if own.is_empty() { String::new() } else { format!(" ({})", own.join(", ")) };
    format!(
        "{} %{together}, {} as the unit; {}; changes below {} % do not matter{own}",
        trimmed_text((1.0 - design.alpha) * 100.0),
        if comparison.shadow.is_some() { "the block" } else { "the run" },
        looks_text(design),
        trimmed_text(design.margin * 100.0)
    )
}

/// `tested after 6, 8, 12 and 16 blocks`
pub(crate) fn looks_text(design: &Design) -> String {
    match design.looks.split_last() {
        None => "no test".to_owned(),
        Some((only, [])) => format!("tested once, after {}", count_text(*only, "block")),
        Some((last, others)) => {
            let others: Vec<String> = others.iter().map(u32::to_string).collect();
            format!("tested after {} and {last} blocks", others.join(", "))
        }
    }
}

fn state_note(comparison: &Comparison) -> Option<LabeledText> {
    if comparison.shadow.is_some() {
        return shadow::state_note(comparison);
    }
    let state = match comparison.comparison.state {
        CompareState::Complete => return None,
        CompareState::Interrupted => "stopped by the user",
        CompareState::TargetLost => {
            "ended because a target became unreachable and did not come back"
        }
        CompareState::TimeUp => "ended because its time was over (--max-time)",
        CompareState::Unfinished => "still running, or killed",
    };
    let text = format!("{state}: this is what was measured so far; --resume continues");
    Some(("State", text))
}

/// What differs that should not, what matters most first: the mark, and the text.
pub(crate) fn difference_marks(comparison: &Comparison) -> Vec<SeverityMark> {
    let mut sorted: Vec<&Difference> = comparison.differences.iter().collect();
    sorted.sort_by(|a, b| b.matter.cmp(&a.matter).then(a.side.cmp(&b.side)));
    let one = |difference: &Difference| {
        let advice = match difference.advice.as_str() {
            "" => String::new(),
            advice => format!("; {}", escape_control(advice)),
        };
        let spoils: Vec<String> =
            difference.spoils.iter().map(|name| spoiled_figure_text(name)).collect();
        let spoils = match difference.matter {
            Matter::Info => String::new(),
            _ if spoils.is_empty() => " [affects every figure]".to_owned(),
            _ => format!(" [affects {}]", spoils.join(", ")),
        };
        let text = format!(
            "{} ({}): {}{spoils}{advice}",
            side_label(comparison, difference.side),
            escape_control(&difference.code),
            escape_control(&difference.message)
        );
        let (word, severity) = matter_mark(difference.matter);
        SeverityMark { word, severity, text }
    };
    sorted.into_iter().map(one).collect()
}

/// A figure, or all percentiles of a time: `e2e`.
fn spoiled_figure_text(name: &str) -> String {
    match name {
        "ttft" | "tpot" | "itl" | "e2e" => name.to_uppercase(),
        name => FigureWords::new(name).name_in_sentence(),
    }
}

/// Caveats that are not about what differs, which is said already.
pub(crate) fn remaining_caveats(comparison: &Comparison) -> Vec<Caveat> {
    let is_said = |caveat: &&Caveat| {
        caveat.code != CaveatCode::NotComparable || comparison.differences.is_empty()
    };
    comparison.caveats.iter().filter(is_said).cloned().collect()
}

fn matter_mark(matter: Matter) -> (&'static str, Severity) {
    match matter {
        Matter::Info => ("  note", Severity::Info),
        Matter::Warn => ("  warning", Severity::Warn),
        Matter::Refuse => ("  refused", Severity::Void),
    }
}

/// Whether anything differs, in a few words.
pub(crate) fn differences_text(comparison: &Comparison) -> String {
    let of = |matter| comparison.differences.iter().filter(|one| one.matter == matter).count();
    match [of(Matter::Refuse), of(Matter::Warn), of(Matter::Info)] {
        [0, 0, 0] => "no differences found in what should be the same".to_owned(),
        [refused, warned, noted] => {
            let parts = [
                (refused, "makes figures incomparable", "make figures incomparable"),
                (warned, "may distort them", "may distort them"),
                (noted, "is worth knowing", "are worth knowing"),
            ];
            let words = |(n, one, many): &(usize, &str, &str)| {
                (*n > 0).then(|| format!("{n} {}", if *n == 1 { one } else { many }))
            };
            parts.iter().filter_map(words).collect::<Vec<_>>().join(", ")
        }
    }
}

/// What was sent, and how much is chance; each pair of live traffic is one request, and no rig has a
/// floor for it.
pub(crate) fn sent_notes(comparison: &Comparison) -> Vec<LabeledText> {
    if comparison.shadow.is_some() {
        return Vec::new();
    }
    vec![("Requests", proof_text(comparison)), ("Noise", noise_floor_note(comparison))]
}

/// Whether all sides were sent the same requests.
pub(crate) fn proof_text(comparison: &Comparison) -> String {
    let Some(proof) = &comparison.proof else {
        return "not verified to be the same: hashes of what was sent are missing".to_owned();
    };
    if proof.compared == 0 {
        return "not verified to be the same: no request was sent to every side".to_owned();
    }
    let model = if proof.without_model { " except for the model's name" } else { "" };
    let differ = proof.compared.saturating_sub(proof.identical);
    if differ > 0 {
        return format!(
            "NOT THE SAME: {} of {} requests differ between the sides{model}",
            count(differ),
            count(proof.compared)
        );
    }
    let instants = match proof.same_instant {
        None => ", each sent after the answer to the previous one".to_owned(),
        Some(all) if all >= proof.identical => ", scheduled at the same instants".to_owned(),
        Some(some) => format!(", only {} of them scheduled at the same instants", count(some)),
    };
    format!(
        "{} sent to every side, byte-identical{model}{instants}; SHA-256 {}",
        count(proof.compared),
        escape_control(&proof.sha256)
    )
}

/// How far two measurements of one server lie apart.
pub(crate) fn noise_floor_note(comparison: &Comparison) -> String {
    let Some(floor) = &comparison.floor else {
        return "unknown: measure it once per rig with `goodput compare TARGET --aa`".to_owned();
    };
    let is_tested = |name: &&String| {
        comparison.findings.iter().any(|one| one.is_tested && one.metric == **name)
    };
    let any_tested = floor.sd.keys().any(|name| is_tested(&name));
    floor_text(floor, |name| !any_tested || is_tested(&name))
}

/// By the figures that are wanted.
pub(crate) fn floor_text(floor: &Floor, is_wanted: impl Fn(&String) -> bool) -> String {
    let shown: Vec<String> = floor
        .sd
        .iter()
        .filter(|(name, _)| is_wanted(name))
        .map(|(name, sd)| {
            let known = FigureWords::new(name);
            format!("{} {}", known.name_in_sentence(), known.spread_text(*sd))
        })
        .collect();
    let figures = if shown.is_empty() { "no figure".to_owned() } else { shown.join(", ") };
    format!(
        "two runs of one server differ by chance with an SD of {figures} ({})",
        floor_basis_text(floor)
    )
}

/// A standard deviation of fewer blocks may be off by half.
const FEW: u32 = 6;

fn floor_basis_text(floor: &Floor) -> String {
    let load = match floor.load.as_str() {
        "" => String::new(),
        load => format!(", {}", escape_control(load)),
    };
    let few = if floor.blocks < FEW { " (few)" } else { "" };
    let suspect = match floor.suspect_runs {
        0 => String::new(),
        n => format!("; {n} of its runs are suspect, so it may be too large"),
    };
    format!(
        "{} of {} s{few} on {}{load}, {}{suspect}",
        count_text(floor.blocks, "block"),
        trimmed_text(floor.run_s),
        escape_control(&floor.target),
        escape_control(&floor.date)
    )
}
