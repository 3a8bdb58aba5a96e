//! A capacity plan, as a document.

mod cells;
mod charts;
#[cfg(test)]
pub(crate) mod tests;

use goodput_campaign::capacity::{
    self, Capacity, Cost, EnergyPlan, FanOut, HourState, PlanNoteKind, TrafficPlan, UnitCost,
};

use cells::{money_text, rate_text};
use goodput_document::number::{amount, cell_number, count, known_or_dash, percent};
use goodput_document::render;
use goodput_document::{
    Answer, Block, Cell, Column, Detail, Document, Fact, Formats, List, Pointer, Section, Standing,
    Table, Tone,
};

/// The page of a capacity plan, for a terminal.
pub fn capacity_text(plan: &Capacity) -> String {
    render::text::render_page(&capacity_document(plan), Detail::Full)
}

/// The page of a capacity plan, for a browser.
pub fn capacity_html(plan: &Capacity) -> String {
    render::html::render_page(&capacity_document(plan))
}

fn capacity_document(plan: &Capacity) -> Document {
    let about = match plan.basis.about.as_str() {
        "" => "a given figure",
        about => about,
    };
    let title = format!("Capacity plan for {} req/s", rate_text(plan.question.target_rps));
    let mut sections = vec![
        Section::new("basis", "What one replica carries")
            .with(Block::facts(cells::basis_facts(plan))),
        fleets_section(plan),
        latency_section(plan),
    ];
    sections.extend(plan.cost.as_ref().map(cost_section));
    sections.extend(plan.energy.as_ref().map(energy_section));
    sections.extend(
        plan.traffic
            .iter()
            .flat_map(|found| [traffic_section(plan, found), risk_section(plan, found)]),
    );
    sections.extend(plan.fan_out.as_ref().map(fan_out_section));
    sections.push(notes_section(plan));
    Document {
        heading: title.clone(),
        title,
        about: about.to_owned(),
        answer: Some(capacity_answer(plan)),
        sections,
        ..Document::default()
    }
}

/// The answer, and whether to believe what it rests on.
fn capacity_answer(plan: &Capacity) -> Answer {
    let doubts = plan.notes.iter().filter(|note| note.kind == PlanNoteKind::Doubt).count();
    let text = if doubts == 1 { "One doubt" } else { "Doubts" };
    let given = Standing::Words("the rate of a replica was given, not measured here");
    Answer {
        sentence: answer_sentence(plan),
        more: Vec::new(),
        standing: plan.basis.verdict.map_or(given, Standing::Verdict),
        doubt: (doubts > 0).then(|| Pointer {
            text: format!("{text} about the measurement: "),
            id: "assumptions",
            name: "what it rests on",
        }),
    }
}

/// `6 replicas (48 GPUs) carry 100 req/s with 20 % headroom: 120.00 per hour, 87,600 per month`
fn answer_sentence(plan: &Capacity) -> String {
    let fleet = &plan.fleets.with_headroom;
    let gpus = fleet.gpus.map_or_else(String::new, |gpus| format!(" ({} GPUs)", count(gpus)));
    let mut parts = Vec::new();
    if let Some(hour) = fleet.cost_per_hour {
        parts.push(format!("{} per hour", money_text(hour)));
    }
    if let Some(month) = fleet.cost_per_month {
        parts.push(format!("{} per month", money_text(month)));
    }
    let energy = plan.energy.and_then(|energy| energy.at_target);
    if let Some(energy) = energy {
        parts.push(format!("{} kWh per day", amount(energy.kwh_per_day)));
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
        rate_text(plan.question.target_rps),
        cells::share_text(plan.question.headroom)
    )
}

/// The name of a row, which a terminal may show indented.
fn indented_cell(name: &str) -> Cell {
    match name.strip_prefix("  ") {
        Some(rest) => Cell::from(rest).short(name),
        None => Cell::from(name),
    }
}

fn fleets_section(plan: &Capacity) -> Section {
    let (fleets, headroom) = (&plan.fleets, cells::share_text(plan.question.headroom));
    let all = [
        ("just enough".to_owned(), Some(&fleets.bare)),
        (format!("with {headroom} headroom"), Some(&fleets.with_headroom)),
        ("any one may fail".to_owned(), Some(&fleets.with_spare)),
        ("as given".to_owned(), fleets.asked.as_ref()),
    ];
    let title = "Replicas by spare capacity";
    let shown = all.into_iter().filter_map(|(name, fleet)| Some((name, fleet?)));
    let spare = Table::from_subjects(title, title, shown)
        .left("", 22, |(name, _)| name.clone())
        .right("replicas", 9, |(_, fleet)| count(fleet.replicas))
        .right("GPUs", 7, |(_, fleet)| known_or_dash(fleet.gpus, count))
        .right("load", 9, |(_, fleet)| cells::load_text(fleet.utilisation))
        .right("one lost", 10, |(_, fleet)| known_or_dash(fleet.one_lost, cells::load_text))
        .right("range", 11, |(_, fleet)| cells::replica_range(fleet))
        .right("cost/hour", 12, |(_, fleet)| known_or_dash(fleet.cost_per_hour, money_text))
        .table;
    let month = fleets.with_headroom.cost_per_month.map(|month| {
        Block::fact("Month", format!("{} for 730 hours with headroom", money_text(month)))
    });
    let about = "load: the target as a share of what the replicas were confirmed to carry; one \
                 lost: the same with one replica down; range: replicas at the ends of the interval \
                 of one replica's limit.";
    Section::new("capacity", "Capacity")
        .with(Block::Table(spare))
        .with_some(Formats::TEXT, month)
        .with_on(Formats::WIDE, Block::reading_note(about))
        .with_on(Formats::TEXT, Block::Gap)
        .with(Block::Table(rates_table(plan)))
}

/// Requests and tokens a second of a GPU, a replica, and all.
fn rates_table(plan: &Capacity) -> Table {
    let throughput = &plan.throughput;
    let [gpu_name, replica] = if plan.basis.is_measured_only {
        ["per GPU, measured", "per replica, measured"]
    } else {
        ["per GPU, confirmed", "per replica, confirmed"]
    };
    let gpu = throughput.gpu.as_ref().map(|gpu| (gpu_name, gpu));
    let others = [(replica, &throughput.replica), ("all, at the target", &throughput.total)];
    Table::from_subjects("Throughput", "Throughput", gpu.into_iter().chain(others))
        .with(Column::left("", 22).short("Throughput"), |(name, _)| *name)
        .right("req/s", 10, |(_, rates)| rate_text(rates.requests_per_s))
        .right("input tok/s", 16, |(_, rates)| known_or_dash(rates.input_tps, amount))
        .right("output tok/s", 16, |(_, rates)| known_or_dash(rates.output_tps, amount))
        .right("total tok/s", 16, |(_, rates)| known_or_dash(rates.total_tps, amount))
        .table
}

fn latency_section(plan: &Capacity) -> Section {
    let table = Table::from_subjects("Milliseconds", "Milliseconds", &plan.expected)
        .with(Column::left("", 17).short("Latency, ms"), |one| match one.about.as_str() {
            "confirmed" if plan.basis.is_measured_only => "measured rate".to_owned(),
            "confirmed" => "confirmed rate".to_owned(),
            "target" => "target, headroom".to_owned(),
            "one lost" => "with one lost".to_owned(),
            other => other.to_owned(),
        })
        .with(Column::right("req/s per replica", 8).short("req/s"), |one| rate_text(one.at_rps))
        .right("TTFT p50", 9, |one| known_or_dash(one.ttft_p50_ms, cell_number))
        .with(Column::right("TTFT p99", 9).short("p99"), |one| {
            known_or_dash(one.ttft_p99_ms, cell_number)
        })
        .right("TPOT p50", 9, |one| known_or_dash(one.tpot_p50_ms, cell_number))
        .with(Column::right("TPOT p99", 9).short("p99"), |one| {
            known_or_dash(one.tpot_p99_ms, cell_number)
        })
        .with(Column::words("rests on", 2).short(""), |one| cells::footing_text(one))
        .table;
    Section::new("latency", "Expected latency")
        .with_some(Formats::ALL, table.into_block())
        .with(Block::Charts(vec![charts::latency_chart(plan)]))
}

/// The price at which a row looks.
type Price = fn(capacity::Price) -> Option<f64>;

fn cost_section(cost: &Cost) -> Section {
    let uses = [("at full use", &cost.full_use), ("target, headroom", &cost.at_target)];
    let title = format!("At {} per GPU-hour", rate_text(cost.price_per_gpu_hour));
    let each = [("one replica", &cost.full_use), ("target, headroom", &cost.at_target)];
    let hours = Table::from_subjects(title.clone(), title, each)
        .right("", 12, |(name, _)| *name)
        .right("per hour", 12, |(_, cost)| money_text(cost.per_hour))
        .right("per month (730 hours)", 12, |(_, cost)| money_text(cost.per_month))
        .table;
    // Each use, and where that is known, at best.
    let rows = uses.into_iter().flat_map(|(name, units)| {
        let best = units.per_1000_requests.best_case.is_some();
        let best = best.then_some(("  at best", units, (|price| price.best_case) as Price));
        [(name, units, (|price| Some(price.value)) as Price)].into_iter().chain(best)
    });
    let price = |of: fn(&UnitCost) -> Option<capacity::Price>| {
        move |(_, units, price): &(&str, &UnitCost, Price)| {
            known_or_dash(of(units).and_then(price), cells::unit_price_text)
        }
    };
    let units = Table::from_subjects("Cost per unit", "Cost per unit", rows)
        .with(Column::left("", 20).short("Cost"), |(name, ..)| indented_cell(name))
        .with(Column::right("1M input", 12), price(|units| units.per_million_input))
        .with(Column::right("1M output", 12), price(|units| units.per_million_output))
        .with(Column::right("1M total", 12), price(|units| units.per_million_total))
        .with(
            Column::right("1M good output", 12).short("1M good out"),
            price(|units| units.per_million_good_output),
        )
        .with(
            Column::right("1000 requests", 12).short("1000 req"),
            price(|units| Some(units.per_1000_requests)),
        )
        .table;
    Section::new("cost", "Cost")
        .with_on(Formats::WIDE, Block::Table(hours))
        .with(Block::Table(units))
        .with_on(Formats::WIDE, Block::reading_note(cells::WHOLE))
        .with_on(Formats::TEXT, Block::fact("", cells::WHOLE))
}

fn energy_section(energy: &EnergyPlan) -> Section {
    let target = energy.at_target.as_ref().map(|used| ("target, headroom", used));
    let rows = [("at full use", &energy.full_use)].into_iter().chain(target);
    let table = Table::from_subjects("Energy of the GPUs", "Energy of the GPUs", rows)
        .with(Column::left("", 20).short("Energy of GPUs"), |(name, _)| *name)
        .with(Column::right("J per output token", 12).short("J/output tok"), |(_, used)| {
            known_or_dash(used.joules_per_output_token, cells::unit_price_text)
        })
        .with(Column::right("kWh per 1M output", 16).short("kWh/1M output"), |(_, used)| {
            known_or_dash(used.kwh_per_million_output, cells::unit_price_text)
        })
        .with(Column::right("kWh per day", 12).short("kWh/day"), |(_, used)| {
            amount(used.kwh_per_day)
        })
        .right("W", 12, |(_, used)| amount(used.gpu_power_w))
        .table;
    Section::new("energy", "Energy").with(Block::Table(table))
}

fn traffic_section(plan: &Capacity, traffic: &TrafficPlan) -> Section {
    let fares = || Block::facts(cells::traffic_facts(traffic));
    let shown = cells::shown_hours(traffic).len();
    let left_out = Some(traffic.hours.len().saturating_sub(shown)).filter(|left| *left > 0);
    let left_out =
        left_out.map(|n| format!("{} hours with less load are not shown", count(n as u64)));
    let below = left_out.clone().map(|text| Block::fact("", text));
    Section::new("traffic", "Traffic hour by hour")
        .with_on(Formats::TEXT, Block::fact("Traffic", traffic.about.clone()))
        .with_on(Formats::WIDE, Block::note(traffic.about.as_str()))
        .with_on(Formats::WIDE, fares())
        .with(Block::Charts(vec![charts::hours_chart(plan, traffic)]))
        .with(Block::Table(hours_table(traffic)))
        .with_some(Formats::WIDE, left_out.map(|text| Block::reading_note(&text)))
        .with_some(Formats::TEXT, below)
        .with_on(Formats::TEXT, fares())
        // On a terminal it goes on; elsewhere it is a section.
        .with_on(Formats::TEXT, Block::facts(cells::simulation_facts(traffic)))
}

fn hours_table(traffic: &TrafficPlan) -> Table {
    let replicas = count(traffic.replicas);
    let title = format!("On {replicas} replicas");
    Table::from_subjects(title.clone(), title, cells::shown_hours(traffic))
        .right("hour", 4, |hour| hour.hour.to_string())
        .right("mean req/s", 12, |hour| rate_text(hour.mean_rps))
        .right("peak 5 min", 12, |hour| rate_text(hour.peak_rps))
        .right("load", 9, |hour| cells::load_text(hour.load))
        .right("P(miss)", 10, |hour| known_or_dash(hour.p_miss, percent))
        .right("good", 9, |hour| known_or_dash(hour.good_share, percent))
        .with(Column::right("replicas needed", 8).short("needs"), |hour| {
            count(hour.replicas_needed)
        })
        .with(Column::words("state", 3).short(format!("on {replicas} replicas")), |hour| {
            match hour.state {
                // Only the others stand out among many lines.
                HourState::Fine => Cell::from("fine").short("").tone(Tone::Good),
                HourState::AtRisk => Cell::from("at risk").tone(Tone::Doubt),
                HourState::Misses => Cell::from("WILL MISS").tone(Tone::Bad),
            }
        })
        .table
}

fn risk_section(plan: &Capacity, traffic: &TrafficPlan) -> Section {
    let section = Section::new("risk", "Probability of missing the SLO")
        .with_on(Formats::WIDE, Block::facts(cells::simulation_facts(traffic)));
    let levels = &traffic.simulation.levels;
    if levels.is_empty() {
        return section;
    }
    let title = "Simulated rates of a replica";
    let table = Table::from_subjects(title, title, levels)
        .right("req/s per replica", 12, |level| rate_text(level.rps))
        .right("stretches", 12, |level| count(level.stretches))
        .right("of seconds", 12, |level| rate_text(level.stretch_s))
        .right("missed", 12, |level| count(level.missed))
        .right("P(miss)", 12, |level| percent(charts::miss_chance(level)))
        .right("good", 12, |level| percent(level.good_share))
        .table;
    section
        .with(Block::Charts(vec![charts::miss_chance_chart(plan, traffic)]))
        .with_on(Formats::WIDE, Block::Table(table))
}

fn fan_out_section(fan_out: &FanOut) -> Section {
    let title = cells::step_title(fan_out);
    let table = Table::from_subjects(title.clone(), title.clone(), &fan_out.metrics)
        .right("", 0, |figure| figure.metric.to_uppercase())
        .right("one call p50", 0, |figure| known_or_dash(figure.single_p50_ms, cell_number))
        .right("one call p99", 0, |figure| known_or_dash(figure.single_p99_ms, cell_number))
        .right("the step p50", 0, |figure| cells::step_latency_text(&figure.p50))
        .right("the step p99", 0, |figure| cells::step_latency_text(&figure.p99))
        .table;
    // A terminal has no room for the table.
    let fact = |row: &Vec<Cell>| {
        let [metric, p50, p99, step_p50, step_p99] = row.as_slice() else { return None };
        let one_call = format!("one call p50 {}, p99 {}", p50.text, p99.text);
        let step = format!("the step p50 {}, p99 {}", step_p50.text, step_p99.text);
        Some(Fact::new(metric.text.clone(), format!("{one_call}; {step}")))
    };
    Section::new("fan-out", "Steps of several calls")
        .with_on(Formats::TEXT, Block::Heading(title))
        .with_on(Formats::TEXT, Block::Facts(table.rows.iter().filter_map(fact).collect()))
        .with_on(Formats::WIDE, Block::Table(table))
}

/// What it rests on; where there is room by kind, what is doubtful first.
fn notes_section(plan: &Capacity) -> Section {
    let kinds = [
        (PlanNoteKind::Doubt, "Doubtful", "Doubtful: the measurement itself"),
        (PlanNoteKind::Extrapolated, "Beyond", "Beyond what was measured"),
        (PlanNoteKind::Assumed, "Assumed", "Assumed: the plan holds only if this does"),
        (PlanNoteKind::Missing, "Unknown", "Unknown"),
    ];
    let label = |kind: PlanNoteKind| {
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
