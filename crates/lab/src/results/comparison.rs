//! What the page of a comparison or a shadow shows in addition to its summary.

use std::path::Path;

use goodput_campaign::compare::{Comparison, Quantity};
use goodput_campaign::saved::{Circumstances, ComparisonDetails};
use goodput_campaign::sweep::Level;
use goodput_files::{MOST_SMALL, read_text_inside};
use goodput_record::{Campaign, CampaignFolder};

use crate::shell::shell_word;

/// The runs that have a page of their own, and what was asked.
pub fn comparison_details(path: &Path, comparison: &Comparison) -> ComparisonDetails {
    let is_shadow = comparison.shadow.is_some();
    let file = if is_shadow { "shadow.toml" } else { "compare.toml" };
    // It holds no secrets: values of headers and queries were left out when it was written.
    let plan = read_text_inside(&path.join(file), MOST_SMALL).unwrap_or_default();
    let is_repeatable = comparison.is_paired && !is_shadow;
    let typed = comparison.comparison.command.clone();
    let command = match typed.is_empty() {
        false => typed,
        true if is_repeatable => compare_command(comparison),
        true => String::new(),
    };
    let circumstances = Circumstances { facts: Vec::new(), plan, command };
    let folders = if is_shadow { Vec::new() } else { run_folders(path) };
    ComparisonDetails { folders, circumstances }
}

fn run_folders(path: &Path) -> Vec<(u32, String)> {
    let folder = CampaignFolder::open(Campaign::Comparison, path);
    let points = folder.as_ref().map(CampaignFolder::list_points).unwrap_or_default();
    points
        .into_iter()
        .filter(|(_, point)| point.join("report.html").is_file())
        .filter_map(|(number, point)| {
            let inside = point.strip_prefix(path).ok()?;
            Some((number, inside.to_str()?.to_owned()))
        })
        .collect()
}

/// The command as far as the design says it; flags of the workload are in the plan.
fn compare_command(comparison: &Comparison) -> String {
    let design = &comparison.design;
    let mut words = vec!["goodput".to_owned(), "compare".to_owned()];
    words.extend(comparison.sides.iter().map(|side| format!("{}={}", side.name, side.target)));
    let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
    let rates: Vec<String> = design.levels.iter().filter_map(|level| rate_text(*level)).collect();
    let users: Vec<String> = design.levels.iter().filter_map(|level| users_text(*level)).collect();
    for (name, levels) in [("--rate", rates), ("--concurrency", users)] {
        if !levels.is_empty() {
            flag(name, levels.join(","));
        }
    }
    if let Some(blocks) = design.looks.last() {
        flag("--blocks", blocks.to_string());
    }
    if design.quantity == Quantity::Runs {
        flag("--duration", format!("{}s", design.run_s));
        flag("--warmup", format!("{}s", design.burn_in_s));
    }
    flag("--settle", format!("{}s", design.settle_s));
    flag("--seed", design.seed.to_string());
    flag("--margin", format!("{}%", (design.margin * 1e5).round() / 1e3));
    for gate in &design.gates {
        flag("--gate", gate.to_string());
    }
    let is_search = design.quantity == Quantity::Goodput;
    for (name, is_set) in
        [("--search", is_search), ("--at-once", design.at_once), ("--aa", design.same_target)]
    {
        if is_set {
            words.push(name.to_owned());
        }
    }
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

fn rate_text(level: Level) -> Option<String> {
    match level {
        Level::Rate(rate) => Some(rate.to_string()),
        Level::Users(_) => None,
    }
}

fn users_text(level: Level) -> Option<String> {
    match level {
        Level::Users(users) => Some(users.to_string()),
        Level::Rate(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use goodput_campaign::compare::{ComparedRun, Design, Gate, Limit, RunAsk, Side, SideFacts};
    use goodput_model::Verdict;

    use super::*;

    fn comparison() -> Comparison {
        let side = |name: &str, port: u32| Side {
            name: name.to_owned(),
            target: format!("http://10.0.0.7:{port}"),
            ..Side::default()
        };
        let gate = Gate { metric: "ttft_p99".to_owned(), limit: Limit::Below, change: 0.05 };
        let run = |number| ComparedRun {
            ask: RunAsk { number, block: 1, side: 0, level: 0, seed: 1 },
            verdict: Verdict::Valid,
            doubt: None,
            figures: std::collections::BTreeMap::new(),
            facts: SideFacts::default(),
        };
        Comparison {
            sides: vec![side("A", 8000), side("it's", 8001)],
            design: Design {
                levels: vec![Level::Rate(8.0), Level::Rate(12.5)],
                gates: vec![gate],
                seed: 7,
                ..Design::default()
            },
            runs: vec![run(1), run(2)],
            ..Comparison::default()
        }
    }

    #[test]
    fn the_command_says_the_design() {
        let expected = "goodput compare A=http://10.0.0.7:8000 'it'\\''s=http://10.0.0.7:8001' \
                        --rate 8,12.5 --blocks 16 --duration 30s --warmup 5s --settle 1s --seed 7 \
                        --margin 3% --gate 'p99 ttft < +5%'";
        assert_eq!(compare_command(&comparison()), expected);
    }

    #[test]
    fn runs_with_a_page_are_led_to() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("compare.toml"), "asked = \"<here>\"\n").unwrap();
        for (name, has_page) in [("001-b01-A-8", true), ("002-b01-B-8", false)] {
            let point = folder.path().join("points").join(name);
            std::fs::create_dir_all(&point).unwrap();
            if has_page {
                std::fs::write(point.join("report.html"), "").unwrap();
            }
        }
        let details = comparison_details(folder.path(), &comparison());
        assert_eq!(details.folders, [(1, "points/001-b01-A-8".to_owned())]);
        assert_eq!(details.circumstances.plan, "asked = \"<here>\"\n");
    }
}
