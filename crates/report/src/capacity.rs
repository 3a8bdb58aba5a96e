//! A capacity plan, as a document.

mod cells;
mod charts;
#[cfg(test)]
pub(crate) mod tests;

use goodput_campaign::capacity::{
    Capacity, Cost, EnergyPlan, FanOut, HourState, LevelRisk, NoteKind, TrafficPlan,
};

use crate::document::{
    Answer, Block, Cell, Column, Document, Fact, Formats, List, Pointer, Section, Standing, Table,
    Tone,
};
use crate::number::{amount, count, percent};
use crate::render;

/// The page of a capacity plan, for a terminal.
pub fn capacity_text(plan: &Capacity) -> String {
    render::text::page(&document(plan))
}

/// The page of a capacity plan, for a browser.
pub fn capacity_html(plan: &Capacity) -> String {
    render::html::page(&document(plan))
}

fn document(plan: &Capacity) -> Document {
    let about = match plan.basis.about.as_str() {
        "" => "a figure that was typed",
        about => about,
    };
    let title = format!("Capacity plan for {} req/s", cells::rate(plan.question.target_rps));
    let mut sections = vec![
        Section::new("basis", "What one replica carries").with(Block::facts(cells::basis(plan))),
        fleets(plan),
        latency(plan),
    ];
    sections.extend(plan.cost.as_ref().map(cost));
    sections.extend(plan.energy.as_ref().map(energy));
    sections
        .extend(plan.traffic.iter().flat_map(|found| [traffic(plan, found), risk(plan, found)]));
    sections.extend(plan.fan_out.as_ref().map(fan_out));
    sections.push(notes(plan));
    Document {
        heading: title.clone(),
        title,
        about: about.to_owned(),
        answer: Some(answer(plan)),
        sections,
        ..Document::default()
    }
}

/// The answer, and whether to believe what it rests on.
fn answer(plan: &Capacity) -> Answer {
    let doubts = plan.notes.iter().filter(|note| note.kind == NoteKind::Doubt).count();
    let text = if doubts == 1 { "One doubt" } else { "Doubts" };
    let given = Standing::Words("the rate of a replica was given, not measured here");
    Answer {
        sentence: sentence(plan),
        more: Vec::new(),
        standing: plan.basis.verdict.map_or(given, Standing::Verdict),
        doubt: (doubts > 0).then(|| Pointer {
            text: format!("{text} about the measurement: "),
            id: "assumptions",
            name: "what it rests on",
        }),
    }
}

/// `6 replicas (48 GPUs) carry 100 req/s with 20 % headroom: 120.00 an hour, 87,600 a month`
fn sentence(plan: &Capacity) -> String {
    let fleet = &plan.fleets.with_headroom;
    let gpus = fleet.gpus.map_or_else(String::new, |gpus| format!(" ({} GPUs)", count(gpus)));
    let mut parts = Vec::new();
    if let Some(hour) = fleet.cost_per_hour {
        parts.push(format!("{} an hour", cells::money(hour)));
    }
    if let Some(month) = fleet.cost_per_month {
        parts.push(format!("{} a month", cells::money(month)));
    }
    let energy = plan.energy.and_then(|energy| energy.at_target);
    if let Some(energy) = energy {
        parts.push(format!("{} kWh a day", amount(energy.kwh_per_day)));
    }
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let (replicas, carry) = match fleet.replicas {
        1 => ("replica", "carries"),
        _ => ("replicas", "carry"),
    };
    let hours = plan.traffic.as_ref().map_or_else(String::new, |traffic| {
        let counts = &traffic.counts;
        let are = if counts.at_risk == 1 { "is" } else { "are" };
        let on = count(traffic.replicas);
        format!("; of {} hours {} {are} at risk on {on} replicas", counts.all, counts.at_risk)
    });
    format!(
        "{} {replicas}{gpus} {carry} {} req/s with {} headroom{parts}{hours}",
        count(fleet.replicas),
        cells::rate(plan.question.target_rps),
        cells::share(plan.question.headroom)
    )
}

/// A table whose rows have their names in front, which a terminal may show indented.
fn table<const N: usize, const M: usize>(
    caption: &str,
    columns: [Column; N],
    rows: Vec<[String; M]>,
) -> Table {
    let row = |cells: [String; M]| {
        let mut row = cells.map(Cell::from).to_vec();
        if let Some(name) = row.first_mut().filter(|name| name.text.starts_with(' ')) {
            let shown = std::mem::take(&mut name.text);
            *name = Cell::from(shown.trim()).short(shown);
        }
        row
    };
    let rows = rows.into_iter().map(row).collect();
    Table::new(caption, caption, columns.into()).with_rows(rows)
}

fn fleets(plan: &Capacity) -> Section {
    let spare = table(
        "Replicas by how much is to be spare",
        [
            Column::left("", 22),
            Column::right("replicas", 9),
            Column::right("GPUs", 7),
            Column::right("load", 9),
            Column::right("one lost", 10),
            Column::right("range", 11),
            Column::right("cost/hour", 12),
        ],
        cells::fleets(plan),
    );
    let rates = table(
        "Throughput",
        [
            Column::left("", 22).short("Throughput"),
            Column::right("req/s", 10),
            Column::right("input tok/s", 16),
            Column::right("output tok/s", 16),
            Column::right("total tok/s", 16),
        ],
        cells::rates(plan),
    );
    let month = plan.fleets.with_headroom.cost_per_month.map(|month| {
        Block::facts(vec![(
            "Month",
            format!("{} for 730 hours with headroom", cells::money(month)),
        )])
    });
    Section::new("capacity", "Capacity")
        .with(Block::Table(spare))
        .with_some(Formats::TEXT, month)
        .with_on(
            Formats::WIDE,
            Block::about(
                "load: the target as a share of what the replicas were confirmed to carry; one lost: the \
                 same with one replica down; range: replicas by the ends of the interval in which the \
                 limit of one lies.",
            ),
        )
        .with_on(Formats::TEXT, Block::Gap)
        .with(Block::Table(rates))
}

fn latency(plan: &Capacity) -> Section {
    let columns = [
        Column::left("", 17).short("Latency, ms"),
        Column::right("req/s a replica", 8).short("req/s"),
        Column::right("TTFT p50", 9),
        Column::right("TTFT p99", 9).short("p99"),
        Column::right("TPOT p50", 9),
        Column::right("TPOT p99", 9).short("p99"),
        Column::words("rests on", 2).short(""),
    ];
    let rows = plan.expected.iter().map(cells::latency).collect();
    Section::new("latency", "Latency to expect")
        .with_some(Formats::ALL, table("Milliseconds", columns, rows).filled())
        .with(Block::Charts(vec![charts::latency(plan)]))
}

fn cost(cost: &Cost) -> Section {
    let each = |name: &str, hour: f64, month: f64| {
        [name.to_owned(), cells::money(hour), cells::money(month)]
    };
    let hours = table(
        &format!("At {} for a GPU and hour", cells::rate(cost.price_per_gpu_hour)),
        ["", "an hour", "a month (730 hours)"].map(|head| Column::right(head, 12)),
        vec![
            each("one replica", cost.full_use.per_hour, cost.full_use.per_month),
            each("target, headroom", cost.at_target.per_hour, cost.at_target.per_month),
        ],
    );
    let units = table(
        "What a unit costs",
        [
            Column::left("", 20).short("Cost"),
            Column::right("1M input", 12),
            Column::right("1M output", 12),
            Column::right("1M total", 12),
            Column::right("1M good output", 12).short("1M good out"),
            Column::right("1000 requests", 12).short("1000 req"),
        ],
        cells::costs(cost),
    );
    Section::new("cost", "Cost")
        .with_on(Formats::WIDE, Block::Table(hours))
        .with(Block::Table(units))
        .with_on(Formats::WIDE, Block::about(cells::WHOLE))
        .with_on(Formats::TEXT, Block::facts(vec![("", cells::WHOLE.to_owned())]))
}

fn energy(energy: &EnergyPlan) -> Section {
    let columns = [
        Column::left("", 20).short("Energy of GPUs"),
        Column::right("J an output token", 12).short("J/output tok"),
        Column::right("kWh 1M output", 16).short("kWh/1M output"),
        Column::right("kWh a day", 12).short("kWh/day"),
        Column::right("W", 12),
    ];
    let table = table("Energy of the GPUs", columns, cells::energies(energy));
    Section::new("energy", "Energy").with(Block::Table(table))
}

fn traffic(plan: &Capacity, traffic: &TrafficPlan) -> Section {
    let fares = || Block::facts(cells::fares(traffic));
    let shown = cells::shown_hours(traffic).len();
    let left_out = Some(traffic.hours.len().saturating_sub(shown)).filter(|left| *left > 0);
    let left_out =
        left_out.map(|n| format!("{} hours with less load are left out here", count(n as u64)));
    let below = left_out.clone().map(|text| Block::facts(vec![("", text)]));
    Section::new("traffic", "Traffic hour by hour")
        .with_on(Formats::TEXT, Block::facts(vec![("Traffic", traffic.about.clone())]))
        .with_on(Formats::WIDE, Block::note(traffic.about.as_str()))
        .with_on(Formats::WIDE, fares())
        .with(Block::Charts(vec![charts::hours(plan, traffic)]))
        .with(Block::Table(hours(traffic)))
        .with_some(Formats::WIDE, left_out.map(|text| Block::about(&text)))
        .with_some(Formats::TEXT, below)
        .with_on(Formats::TEXT, fares())
        // On a terminal it goes on; elsewhere it is a section.
        .with_on(Formats::TEXT, Block::facts(cells::simulated(traffic)))
}

fn hours(traffic: &TrafficPlan) -> Table {
    let on = format!("on {} replicas", count(traffic.replicas));
    let columns = [
        Column::right("hour", 4),
        Column::right("mean req/s", 12),
        Column::right("peak 5 min", 12),
        Column::right("load", 9),
        Column::right("P(miss)", 10),
        Column::right("good", 9),
        Column::right("replicas needed", 8).short("needs"),
        Column::words("state", 3).short(on),
    ];
    let title = format!("On {} replicas", count(traffic.replicas));
    let shown = cells::shown_hours(traffic);
    let mut table = table(&title, columns, shown.iter().map(|hour| cells::hour(hour)).collect());
    for (row, hour) in table.rows.iter_mut().zip(shown) {
        row.push(match hour.state {
            // Only the others stand out among many lines.
            HourState::Fine => Cell::from("fine").short("").tone(Tone::Good),
            HourState::AtRisk => Cell::from("at risk").tone(Tone::Doubt),
            HourState::Misses => Cell::from("WILL MISS").tone(Tone::Bad),
        });
    }
    table
}

fn risk(plan: &Capacity, traffic: &TrafficPlan) -> Section {
    let section = Section::new("risk", "Chance of missing the SLO")
        .with_on(Formats::WIDE, Block::facts(cells::simulated(traffic)));
    let levels = &traffic.simulation.levels;
    if levels.is_empty() {
        return section;
    }
    let heads = ["req/s a replica", "stretches", "of seconds", "missed", "P(miss)", "good"];
    let row = |level: &LevelRisk| {
        let chance = level.missed as f64 / level.stretches.max(1) as f64;
        [
            cells::rate(level.rps),
            count(level.stretches),
            cells::rate(level.stretch_s),
            count(level.missed),
            percent(chance),
            percent(level.good_share),
        ]
    };
    let rows = levels.iter().map(row).collect();
    let columns = heads.map(|head| Column::right(head, 12));
    let table = table("Rates of a replica that were simulated", columns, rows);
    section
        .with(Block::Charts(vec![charts::chances(plan, traffic)]))
        .with_on(Formats::WIDE, Block::Table(table))
}

fn fan_out(fan_out: &FanOut) -> Section {
    let title = cells::step_title(fan_out);
    let rows: Vec<[String; 5]> = fan_out.metrics.iter().map(cells::step_row).collect();
    // A terminal has no room for the table.
    let fact = |[metric, p50, p99, step_p50, step_p99]: &[String; 5]| {
        let text =
            format!("one call p50 {p50}, p99 {p99}; the step p50 {step_p50}, p99 {step_p99}");
        Fact::new(metric, text)
    };
    let all = rows.iter().map(fact).collect();
    let heads = ["", "a call p50", "a call p99", "the step p50", "the step p99"];
    let table = table(&title, heads.map(|head| Column::right(head, 0)), rows);
    Section::new("fan-out", "Steps of several calls")
        .with_on(Formats::TEXT, Block::Heading(title))
        .with_on(Formats::TEXT, Block::Facts(all))
        .with_on(Formats::WIDE, Block::Table(table))
}

/// What it rests on; where there is room by kind, what is doubtful first.
fn notes(plan: &Capacity) -> Section {
    let kinds = [
        (NoteKind::Doubt, "Doubtful", "Doubtful: the measurement itself"),
        (NoteKind::Extrapolated, "Beyond", "Beyond what was measured"),
        (NoteKind::Assumed, "Assumed", "Assumed: it holds only if this does"),
        (NoteKind::Missing, "Unknown", "Not known"),
    ];
    let label = |kind: NoteKind| {
        kinds.iter().find(|(own, _, _)| *own == kind).map_or("", |(_, label, _)| label)
    };
    let all = plan.notes.iter().map(|note| Fact::new(label(note.kind), note.text.clone()));
    let mut section = Section::new("assumptions", "What it rests on")
        .with_on(Formats::TEXT, Block::Facts(all.collect()));
    for (kind, _, title) in kinds {
        let own = plan.notes.iter().filter(|note| note.kind == kind);
        let items: Vec<String> = own.map(|note| note.text.clone()).collect();
        let list =
            (!items.is_empty()).then(|| Block::List(List { title: title.to_owned(), items }));
        section = section.with_some(Formats::WIDE, list);
    }
    section
}
