//! The ranks of a merged run, and what a shard by itself is.

use goodput_model::{Caveat, ShardPart, Verdict};
use goodput_stats::{RunFacts, Summary};

use super::HTML;
use goodput_document::number::count;
use goodput_document::{Block, Column, Fact, Formats, Section, Table};

/// Ranks that a page has room for.
const ROWS: usize = 20;

/// The headings of a table of ranks.
const HEAD: [&str; 7] =
    ["rank", "requests", "late, ms", "± ms", "wall clock, ms", "verdict", "machine, and why"];

/// The ranks as cells, those with problems first, and how many more there are.
struct RankRows {
    rows: Vec<Vec<String>>,
    /// A line about those that are not shown, where there are such.
    more: Option<String>,
}

/// What a page says of the ranks; none of a run of one.
fn rank_rows(summary: &Summary) -> Option<RankRows> {
    let all = &summary.run.shards;
    let mut shown: Vec<&ShardPart> = all.iter().collect();
    shown.sort_by_key(|part| std::cmp::Reverse(trouble_score(part)));
    let hidden = shown.split_off(ROWS.min(shown.len()));
    let rows = shown.into_iter().map(rank_row).collect();
    let well = hidden.iter().filter(|part| trouble_score(part) == 0).count();
    let more = (!hidden.is_empty()).then(|| {
        let hidden = hidden.len();
        match hidden - well {
            0 => format!("{} more ranks are not shown: none had problems", count(hidden as u64)),
            sick => format!(
                "{} more ranks are not shown; {} of them had problems",
                count(hidden as u64),
                count(sick as u64)
            ),
        }
    });
    (!all.is_empty()).then_some(RankRows { rows, more })
}

/// How much there is to say of a rank.
fn trouble_score(part: &ShardPart) -> u8 {
    match part.verdict {
        _ if !part.is_there => 4,
        Verdict::Void => 3,
        _ if part.cut_s.is_some() => 2,
        Verdict::Suspect => 1,
        Verdict::Valid => 0,
    }
}

fn rank_row(part: &ShardPart) -> Vec<String> {
    let ms = |value: Option<f64>, digits: usize| {
        value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
    };
    let clock = part.facts.clock;
    let verdict = if part.is_there { part.verdict.name() } else { "missing" };
    vec![
        part.facts.shard.index().to_string(),
        count(part.requests),
        ms(part.late_ms, 1),
        // Where monotonic clocks begin tells nothing; how well they were compared does.
        ms(clock.map(|clock| clock.error_ns as f64 / 1e6), 3),
        clock.map_or("–".to_owned(), |clock| format!("{:+.1}", clock.wall_ns as f64 / 1e6)),
        verdict.to_owned(),
        rank_reasons(part),
    ]
}

/// The machine, and what there is to say of it.
fn rank_reasons(part: &ShardPart) -> String {
    let mut said = Vec::new();
    if !part.host.is_empty() {
        said.push(part.host.clone());
    }
    if let Some(at) = part.cut_s {
        said.push(format!("its log ends at {at:.1} s"));
    }
    if part.lost_records > 0 {
        said.push(format!("{} records lost", count(part.lost_records)));
    }
    let worst = Caveat::worst(&part.caveats);
    if let Some(worst) = worst.filter(|_| part.verdict > Verdict::Valid) {
        said.push(worst.message.clone());
    }
    if !part.is_there {
        said.push("no log".to_owned());
    }
    said.join("; ")
}

/// The ranks as a table.
pub(super) fn ranks_section(summary: &Summary) -> Section {
    let section = Section::new("ranks", "Ranks");
    let Some(RankRows { rows, more }) = rank_rows(summary) else { return section };
    let caption = "The ranks that sent this load together, those with problems first";
    let last = HEAD.len() - 1;
    let table = Table::from_subjects("Ranks", caption, rows)
        .each(
            HEAD.into_iter().enumerate(),
            |(place, head)| match place {
                0 => Column::left(*head, 0),
                place if *place == last => Column::left(*head, 0),
                _ => Column::right(*head, 0),
            },
            |row, (place, _)| row.get(*place).cloned().unwrap_or_default(),
        )
        .table;
    let text = "Late: how long after the first rank it began, and how far off that may be. Wall \
                clock: compared with that of rank 0; no figure depends on it. Every figure on this \
                page includes all samples of all ranks.";
    section
        .with_on(Formats::WIDE, Block::Table(table))
        .with_on(HTML, Block::remark_note(text))
        .with_some(Formats::WIDE, more.map(Block::remark_note))
}

/// The same as prose, for the page of a terminal.
pub(super) fn rank_facts(summary: &Summary) -> Vec<Fact> {
    let Some(RankRows { rows, more }) = rank_rows(summary) else { return Vec::new() };
    let prose = rows.iter().filter_map(|row| {
        let [rank, requests, late, error, wall, verdict, why] = row.as_slice() else { return None };
        let known = |what: &str, text: String| if what == "–" { String::new() } else { text };
        let error = known(error, format!(" ± {error}"));
        let late = known(late, format!(", {late}{error} ms late"));
        let wall = known(wall, format!(", wall clock {wall} ms"));
        Some(format!("rank {rank}: {verdict}, {requests} requests{late}{wall}; {why}"))
    });
    Fact::several("Ranks", prose.chain(more))
}

/// What a reader of a shard must know first; none of a whole run.
pub(super) fn shard_fact(run: &RunFacts) -> Option<Fact> {
    let shard = run.shard.as_ref().map(|facts| facts.shard).filter(|shard| shard.is_part())?;
    let (index, count) = (shard.index(), shard.count());
    // Short enough for the short page.
    let text =
        format!("{index} of {count} (from 0): part of the load; `goodput merge` combines shards");
    Some(Fact::new("Shard", text))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::old;

    fn one(rank: u32, of: u32) -> Value {
        json!({"shard": format!("{rank}/{of}"), "fleet": "f", "host": format!("node-{rank}, 8 × CPU"),
            "clock": {"offset_ns": 1_250_000, "error_ns": 40_000, "wall_ns": -1_500_000}, "is_there": true,
            "is_whole": true, "late_ms": 0.25, "requests": 12_500, "lost_records": 0,
            "verdict": "valid", "caveats": []})
    }

    /// One is well, one was cut, one is sick, one is missing.
    pub(crate) fn four() -> Value {
        let mut all: Vec<Value> = (0..4).map(|rank| one(rank, 4)).collect();
        all[1]["cut_s"] = json!(12.34);
        all[1]["is_whole"] = json!(false);
        all[2]["verdict"] = json!("void");
        all[2]["host"] = json!("Verdict     VALID\u{1b}[32m");
        all[2]["caveats"] = json!([{"code": "client_stalled", "severity": "void",
            "message": "the client stood still"}]);
        all[3] = json!({"shard": "3/4", "host": "", "is_there": false, "is_whole": false,
            "late_ms": null, "requests": 0, "lost_records": 0, "verdict": "valid", "caveats": []});
        json!(all)
    }

    fn found(shards: Value) -> Option<RankRows> {
        let mut value = old();
        value["run"]["shards"] = shards;
        rank_rows(&serde_json::from_value::<Summary>(value).unwrap())
    }

    #[test]
    fn those_in_trouble_come_first_and_the_rest_is_counted() {
        let ranks = |cells: &RankRows| -> Vec<String> {
            cells.rows.iter().map(|row| row[0].clone()).collect()
        };
        let four = found(four()).unwrap();
        assert_eq!(
            (ranks(&four), four.more),
            (["3", "2", "1", "0"].map(str::to_owned).to_vec(), None)
        );
        let mut many: Vec<Value> = (0..1_300).map(|rank| one(rank, 1_300)).collect();
        many[1_299]["verdict"] = json!("suspect");
        let many = found(json!(many)).unwrap();
        assert_eq!(
            (many.rows.len(), ranks(&many)[0].as_str(), ranks(&many)[1].as_str()),
            (20, "1299", "0")
        );
        assert_eq!(many.more.as_deref(), Some("1,280 more ranks are not shown: none had problems"));
        assert!(found(json!([])).is_none(), "a run of one rank has no such section");
    }

    #[test]
    fn only_a_shard_is_called_one() {
        let mut run = RunFacts::default();
        assert_eq!(shard_fact(&run), None);
        run.shard = serde_json::from_value(json!({"shard": "0/1"})).unwrap();
        assert_eq!(shard_fact(&run), None);
        run.shard = serde_json::from_value(json!({"shard": "1/3"})).unwrap();
        assert!(shard_fact(&run).unwrap().text.starts_with("1 of 3 "));
    }
}
