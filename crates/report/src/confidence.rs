//! Lines about how well a figure is known: before a run, and while it runs.

use goodput_model::{Goal, MetricName, StopFigure};
use goodput_stats::{
    DEFAULT_SIGMA, LiveFigure, Look, flag_time, requests_before, requests_before_mean,
    rough_duration,
};

use goodput_document::number::{amount, count};

use crate::estimate::guessed_duration;

/// Before a run at this rate of requests: what it takes to know what is asked.
pub fn samples_needed_text(goals: &[Goal], rate: f64) -> String {
    let one = |goal: &Goal| {
        let needed = round_to_two_digits(match goal.figure {
            StopFigure::Mean => requests_before_mean(goal.within, DEFAULT_SIGMA),
            StopFigure::Percentile(percent) => requests_before(percent, goal.within, DEFAULT_SIGMA),
        }?);
        Some(format!(
            "{} to ±{} % needs about {} requests: {} at this rate",
            goal.title(),
            goal.percent(),
            count(needed),
            guessed_duration(needed as f64 / rate)
        ))
    };
    let all: Vec<String> = goals.iter().filter_map(one).collect();
    let is_p99 = |goal: &Goal| goal.figure == StopFigure::Percentile(99.0);
    let p99 = if goals.iter().any(is_p99) { "" } else { "; p99 as a plain figure needs 1,000" };
    format!(
        "{} (if latencies spread as usual: log-normal, sigma {DEFAULT_SIGMA}){p99}",
        all.join("; ")
    )
}

/// Two digits: more would promise too much.
fn round_to_two_digits(n: u64) -> u64 {
    let step = 10u64.pow((n.max(1).ilog10()).saturating_sub(1));
    n.div_ceil(step) * step
}

/// What of a load is still to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Sending {
    /// It does not end by the clock.
    #[default]
    Open,
    /// This many seconds of a measured part of this many.
    Timed {
        /// What is left of it.
        left_s: f64,
        /// The whole.
        duration_s: f64,
    },
    /// Nothing: only answers are waited for.
    Over,
}

/// While a run goes on: the figure that is farthest from what is asked, and a growing queue.
pub fn live_confidence_text(look: &Look, sending: Sending) -> String {
    let left = |figure: &LiveFigure| figure.left_s.unwrap_or(f64::INFINITY);
    let farthest = look.figures.iter().max_by(|a, b| left(a).total_cmp(&left(b)));
    let known = farthest.map(|found| live_figure_text(found, sending)).unwrap_or_default();
    let growth = look.backlog_per_s.map(|per_s| format!(" · queue grows by {per_s:.1}/s"));
    known + growth.as_deref().unwrap_or_default()
}

fn live_figure_text(figure: &LiveFigure, sending: Sending) -> String {
    let title = figure.goal.title();
    let Some(value) = figure.value else {
        return if figure.n == 0 { String::new() } else { format!(" · {title} > limit") };
    };
    let value = match figure.goal.metric {
        MetricName::TokensPerS => amount(value),
        _ if value < 10.0 => format!("{value:.1} ms"),
        _ => format!("{value:.0} ms"),
    };
    let needs = || {
        let (fewest, n) = (count(figure.fewest_values()), count(figure.n));
        format!(" · {} needs {fewest} requests ({n} so far)", figure.goal.figure)
    };
    let is_over = match sending {
        Sending::Over => true,
        Sending::Timed { left_s, .. } => left_s <= 0.0,
        Sending::Open => false,
    };
    let Some(within) = figure.within else {
        let is_short = figure.n < figure.fewest_values() && !is_over;
        let needs = if is_short { needs() } else { String::new() };
        return format!(" · {title} ~{value}{needs}");
    };
    let percent = |share: f64| {
        let percent = share * 100.0;
        if percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
    };
    let left = match (figure.left_s, sending) {
        _ if figure.is_queueing => " at best: queueing".to_owned(),
        _ if figure.is_enough() => String::new(),
        _ if is_over => String::new(),
        // It is known as well as asked, and only the number is missing.
        _ if figure.is_narrow() => needs(),
        (Some(left), Sending::Timed { left_s, duration_s }) if left > left_s => format!(
            " · not by the end of this run: --duration {}",
            flag_time(duration_s + left - left_s)
        ),
        (Some(left), _) => format!(" · ±{} % in {}", figure.goal.percent(), rough_duration(left)),
        (None, _) => String::new(),
    };
    format!(" · {title} {value} ±{} %{left}", percent(within))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goals(rule: &str) -> Vec<Goal> {
        rule.parse::<goodput_model::Until>().unwrap().0
    }

    #[test]
    fn before_a_run() {
        assert_eq!(
            samples_needed_text(&goals("p95 ttft ±10%"), 1.0),
            "p95 TTFT to ±10 % needs about 810 requests: 14 min at this rate (if latencies spread as \
             usual: log-normal, sigma 0.5); p99 as a plain figure needs 1,000"
        );
        let two = samples_needed_text(&goals("p99 ttft ±10%, mean e2e ±5%"), 100.0);
        assert!(two.contains("p99 TTFT to ±10 % needs about 2,900 requests: 29 s"), "{two}");
        assert!(two.contains("mean E2E to ±5 % needs about 500 requests: 5 s"), "{two}");
        assert!(!two.contains("plain figure"), "{two}");
    }

    #[test]
    fn while_it_goes_on() {
        let goal = goals("p95 ttft ±10%")[0];
        let known = LiveFigure {
            goal,
            value: Some(212.3),
            within: Some(0.141),
            n: 300,
            n_eff: 200.0,
            is_queueing: false,
            left_s: Some(118.0),
        };
        let look = |figure, backlog_per_s| Look {
            figures: vec![figure],
            backlog_per_s,
            ..Look::default()
        };
        let confidence_live = |look: &Look| live_confidence_text(look, Sending::Open);
        let line = confidence_live(&look(known, None));
        assert_eq!(line, " · p95 TTFT 212 ms ±14 % · ±10 % in about 2 min");
        let line = confidence_live(&look(LiveFigure { within: Some(0.042), ..known }, Some(3.12)));
        assert_eq!(line, " · p95 TTFT 212 ms ±4.2 % · queue grows by 3.1/s");
        let line = confidence_live(&look(LiveFigure { within: None, left_s: None, ..known }, None));
        assert_eq!(line, " · p95 TTFT ~212 ms");
        assert_eq!(confidence_live(&Look::default()), "");
        // Of several the one that takes longest.
        let slow = LiveFigure { goal: goals("mean e2e ±5%")[0], left_s: Some(500.0), ..known };
        let both = Look { figures: vec![known, slow], ..Look::default() };
        assert_eq!(confidence_live(&both), " · mean E2E 212 ms ±14 % · ±5 % in about 8 min");
    }
    #[test]
    fn nothing_is_promised_that_is_known_or_cannot_come() {
        let known = LiveFigure {
            goal: goals("p95 ttft ±10%")[0],
            value: Some(52.0),
            within: Some(0.047),
            n: 151,
            n_eff: 151.0,
            is_queueing: false,
            left_s: Some(6.0),
        };
        let line = |figure: LiveFigure, sending| {
            live_confidence_text(&Look { figures: vec![figure], ..Look::default() }, sending)
        };
        let timed = |left_s| Sending::Timed { left_s, duration_s: 10.0 };
        let narrow = " · p95 TTFT 52 ms ±4.7 % · p95 needs 200 requests (151 so far)";
        assert_eq!(line(known, Sending::Open), narrow);
        assert_eq!(line(known, timed(3.0)), narrow);
        assert_eq!(line(known, Sending::Over), " · p95 TTFT 52 ms ±4.7 %");
        assert_eq!(line(known, timed(0.0)), " · p95 TTFT 52 ms ±4.7 %");
        let wide = LiveFigure { within: Some(0.3), left_s: Some(8.0), ..known };
        assert_eq!(line(wide, timed(9.0)), " · p95 TTFT 52 ms ±30 % · ±10 % in about 8 s");
        // Eight seconds more, and three are left of ten.
        assert_eq!(
            line(wide, timed(3.0)),
            " · p95 TTFT 52 ms ±30 % · not by the end of this run: --duration 15s"
        );
        assert_eq!(line(wide, Sending::Over), " · p95 TTFT 52 ms ±30 %");
        // A handful has no interval yet.
        let few = LiveFigure { within: None, n: 7, left_s: None, ..known };
        assert_eq!(line(few, timed(3.0)), " · p95 TTFT ~52 ms · p95 needs 200 requests (7 so far)");
        assert_eq!(line(few, Sending::Over), " · p95 TTFT ~52 ms");
        let enough = LiveFigure { n: 200, ..known };
        assert_eq!(line(enough, timed(3.0)), " · p95 TTFT 52 ms ±4.7 %");
    }
}
