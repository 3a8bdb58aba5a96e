//! An axis: from values to places along it, and its round ticks.

use crate::number::count;

/// With room for this many ticks, few of them take more parts of a decade.
const FINE: usize = 9;

/// An axis from `low` to `high`, which differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// Room for all of these that can be shown; none if none can.
    pub(crate) fn from_values(values: impl Iterator<Item = f64>, is_log: bool) -> Option<Self> {
        let is_shown = |value: &f64| value.is_finite() && (!is_log || *value > 0.0);
        let (low, high) = values
            .filter(is_shown)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            return None;
        }
        let scale = |low: f64, high: f64| Self {
            low: low.clamp(f64::MIN, f64::MAX),
            high: high.clamp(f64::MIN, f64::MAX),
            is_log,
        };
        let is_narrow = high - low <= 1e-9 * low.abs().max(high.abs());
        Some(match is_log {
            // Equal values stand in the middle.
            true if is_narrow => {
                scale((low / 1.5).max(f64::MIN_POSITIVE), high.max(f64::MIN_POSITIVE) * 1.5)
            }
            false if is_narrow => {
                let room = (low.abs() * 0.1).max(0.5);
                scale(low - room, high + room)
            }
            // What begins near zero begins at it.
            false if low > 0.0 && low < high * 0.4 => scale(0.0, high),
            _ => scale(low, high),
        })
    }

    /// No less than half as high again at its end as at its beginning: a difference of nothing must not
    /// fill a chart of heights.
    pub(crate) fn with_room(self) -> Self {
        let lacking = (1.5 * self.low / self.high).sqrt();
        if !self.is_log || lacking <= 1.0 {
            return self;
        }
        Self { low: self.low / lacking, high: (self.high * lacking).min(f64::MAX), ..self }
    }

    /// Where it begins and ends, and whether it is logarithmic.
    pub(crate) fn ends(&self) -> (f64, f64, bool) {
        (self.low, self.high, self.is_log)
    }

    /// From 0 at the low end to 1; none for what lies outside or cannot be shown.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        let share = if self.is_log {
            (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            // Halves: the whole may be beyond the largest number.
            (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
        };
        // The ends may miss by a rounding.
        (-1e-9..=1.0 + 1e-9).contains(&share).then(|| share.clamp(0.0, 1.0))
    }

    /// Round values with their texts, ascending, about this many.
    pub(crate) fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        let about = about.clamp(2, 12);
        let decades = if self.is_log { self.decade_ticks(about) } else { Vec::new() };
        if decades.len() >= 2 { decades } else { self.linear_ticks(about) }
    }

    fn decade_ticks(&self, about: usize) -> Vec<(f64, String)> {
        let (from, to) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let every = (to.saturating_sub(from) as usize).div_ceil(about).max(1);
        let some = |parts: &'static [f64]| -> Vec<(f64, String)> {
            (from..=to)
                .step_by(every)
                .flat_map(|power| parts.iter().map(move |part| part * 10f64.powi(power)))
                .filter(|value| self.position(*value).is_some())
                .map(|value| (value, tick_text(value, value)))
                .collect()
        };
        // Within few decades there is room for their parts.
        let fine = some(&[1.0, 2.0, 5.0]);
        match fine.len() {
            few if few < 4 && about >= FINE => some(&[1.0, 2.0, 3.0, 4.0, 5.0, 7.0]),
            some_more if some_more <= 2 * about => fine,
            _ => some(&[1.0]),
        }
    }

    fn linear_ticks(&self, about: usize) -> Vec<(f64, String)> {
        let rough = (self.high / 2.0 - self.low / 2.0) / about as f64 * 2.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|times| times * power)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        if !step.is_finite() || step <= 0.0 {
            return Vec::new();
        }
        let first = (self.low / step).ceil();
        (0..=2 * about)
            .map(|index| (first + index as f64) * step)
            .take_while(|value| *value <= self.high)
            .filter(|value| self.position(*value).is_some())
            .map(|value| (value, tick_text(value, step)))
            .collect()
    }
}

/// A value with the digits that tell it from its neighbors, a step away.
fn tick_text(value: f64, step: f64) -> String {
    let size = value.abs();
    let digits = (-step.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    let plain = match size {
        0.0 => "0".to_owned(),
        v if !(1e-4..1e7).contains(&v) => format!("{value:.0e}"),
        v if v >= 1000.0 && digits == 0 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", count(v.round() as u64))
        }
        _ => format!("{value:.digits$}"),
    };
    // A zero with a sign is none.
    if plain.trim_start_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { plain }
}
