//! Which of several configurations is best, and how sure that is.

use goodput_model::Verdict;

use crate::sweep::{Axis, Configuration, Goodput, GoodputState};

/// A configuration with an answer, in requests per second.
struct RankedConfiguration {
    place: usize,
    name: String,
    confirmed: f64,
    /// The interval of the limit: that of the fit, else from what was confirmed to what was rejected.
    low: f64,
    /// Infinite where nothing bounds it.
    high: f64,
}

/// The place of the configuration with the highest confirmed load, where one has an answer, and how
/// sure that is, in words.
pub fn best_configuration(configurations: &[Configuration]) -> (Option<usize>, String) {
    let entries: Vec<RankedConfiguration> = configurations
        .iter()
        .enumerate()
        .filter_map(|(place, one)| rank_entry(place, one))
        .collect();
    let is_searched =
        |one: &Configuration| one.sweep.as_ref().is_some_and(|sweep| sweep.goodput.is_some());
    // The first of equals, so that the order of the list decides and not that of the search.
    let Some(first) = entries.iter().rev().max_by(|a, b| a.confirmed.total_cmp(&b.confirmed))
    else {
        let why = if configurations.iter().any(is_searched) {
            "no configuration has a goodput"
        } else {
            "the sweep did not search for a goodput"
        };
        return (None, why.to_owned());
    };
    let mut others: Vec<&RankedConfiguration> =
        entries.iter().filter(|entry| entry.place != first.place).collect();
    others.sort_by(|a, b| b.confirmed.total_cmp(&a.confirmed));
    let ties: Vec<&str> = others
        .iter()
        .filter(|other| other.high > first.low)
        .map(|other| other.name.as_str())
        .collect();
    let unknown: Vec<String> = configurations
        .iter()
        .enumerate()
        .filter(|(place, one)| is_searched(one) && entries.iter().all(|e| e.place != *place))
        .map(|(_, one)| values_text(one))
        .collect();
    let because = match (others.first(), ties.is_empty()) {
        (None, _) => "the only one with a goodput".to_owned(),
        (_, false) => format!("tied within the intervals with {}", ties.join(", ")),
        (Some(second), true) => compare_best_two(first, second),
    };
    let unknown = if unknown.is_empty() {
        String::new()
    } else {
        format!("; not compared, because they have no goodput: {}", unknown.join(", "))
    };
    (Some(first.place), format!("{because}{unknown}"))
}

fn compare_best_two(first: &RankedConfiguration, second: &RankedConfiguration) -> String {
    let ends = |entry: &RankedConfiguration| {
        let high =
            if entry.high.is_finite() { format!("{:.1}]", entry.high) } else { "…)".to_owned() };
        format!("[{:.1}, {high}", entry.low)
    };
    format!(
        "beats {} by {:.0} %: their intervals {} and {} req/s do not overlap",
        second.name,
        (first.confirmed / second.confirmed - 1.0) * 100.0,
        ends(first),
        ends(second)
    )
}

/// Its varied values as one writes them: `x=2048 y=8`.
pub(crate) fn values_text(configuration: &Configuration) -> String {
    let values: Vec<String> =
        configuration.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if values.is_empty() { configuration.folder.clone() } else { values.join(" ") }
}

fn rank_entry(place: usize, configuration: &Configuration) -> Option<RankedConfiguration> {
    let sweep = configuration.sweep.as_ref().filter(|sweep| sweep.verdict != Verdict::Void)?;
    let goodput = sweep.goodput.as_ref().filter(|goodput| has_answer(goodput))?;
    // Users of different configurations are not worth the same; requests are.
    let of = |rps: Option<f64>, level: Option<f64>| {
        rps.or(level.filter(|_| goodput.axis == Axis::Rate)).filter(|v| v.is_finite() && *v > 0.0)
    };
    let confirmed = of(goodput.confirmed_rps, goodput.confirmed)?;
    let rejected = of(goodput.rejected_rps, goodput.rejected);
    // Throughput may fall beyond the limit of a closed loop: the interval then has no width.
    let rejected = rejected.map_or(f64::INFINITY, |rejected| rejected.max(confirmed));
    let each = confirmed / goodput.confirmed.filter(|level| *level > 0.0)?;
    let (low, high) = goodput.crossing.map_or((confirmed, rejected), |at| {
        (at.low.unwrap_or(0.0) * each, at.high.map_or(f64::INFINITY, |high| high * each))
    });
    Some(RankedConfiguration { place, name: values_text(configuration), confirmed, low, high })
}

fn has_answer(goodput: &Goodput) -> bool {
    matches!(goodput.state, GoodputState::Found | GoodputState::AtLeast)
}
