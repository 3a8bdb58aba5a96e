//! Traffic over time, in stretches of five minutes.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::Refused;

/// Length of a stretch in seconds.
pub(super) const SLOT_S: f64 = 300.0;
/// A shorter rest at the end says too little to stand alone.
const REST_S: f64 = 60.0;
/// A month, in seconds.
const LONGEST_S: f64 = 31.0 * 86_400.0;

/// A stretch of time and its mean rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrafficSlot {
    /// Seconds since the beginning.
    pub start_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Requests per second.
    pub rps: f64,
}

/// A load that changes over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// In words.
    pub about: String,
    /// In order, without gaps.
    pub slots: Vec<TrafficSlot>,
}

impl Traffic {
    /// A day that rises and falls as a sine, with its peak at an hour from 0 to 24.
    pub fn diurnal(peak: f64, trough: f64, peak_hour: f64) -> Result<Self, Refused> {
        let is_rate = |rate: f64| rate.is_finite() && rate >= 0.0;
        if !(is_rate(peak) && is_rate(trough) && peak > 0.0 && peak >= trough) {
            return Err(Refused::new(
                "the peak of a day must be above zero, and the trough between zero and the peak",
            )
            .hint("write --diurnal PEAK:TROUGH[:HOUR], as in 100:20:14"));
        }
        if !(0.0..=24.0).contains(&peak_hour) {
            return Err(Refused::new("the hour of the peak must be between 0 and 24"));
        }
        let (mean, swing) = (f64::midpoint(peak, trough), (peak - trough) / 2.0);
        let slots = (0..288).map(|number| {
            let start_s = f64::from(number) * SLOT_S;
            let angle = TAU * ((start_s + SLOT_S / 2.0) / 3600.0 - peak_hour) / 24.0;
            let rps = (mean + swing * goodput_model::random::portable_cos(angle)).max(0.0);
            TrafficSlot { start_s, seconds: SLOT_S, rps }
        });
        let about =
            format!("a day from {trough} to {peak} requests/s, with its peak at {peak_hour} h");
        Ok(Self { about, slots: slots.collect() })
    }

    /// Rates from instants on, each until the next; the last one lasts as long as the one before.
    pub fn from_rates(rows: &[(f64, f64)]) -> Result<Self, Refused> {
        let Some(&(first, _)) = rows.first() else {
            return Err(Refused::new("holds no rates"));
        };
        for (number, (at, rps)) in rows.iter().enumerate() {
            let row = number + 1;
            if !(at.is_finite() && rps.is_finite() && *at >= 0.0 && *rps >= 0.0) {
                let what = format!("row {row}: times and rates must be numbers of at least zero");
                return Err(Refused::new(what));
            }
            let before = number.checked_sub(1).and_then(|before| rows.get(before));
            if before.is_some_and(|(before, _)| at <= before) {
                let what =
                    format!("row {row}: its time is not later than that of the previous row");
                return Err(Refused::new(what).hint("sort the rows by time"));
            }
        }
        let last = rows.last().map_or(first, |row| row.0);
        let step = match rows {
            [.., before, last] => last.0 - before.0,
            _ => 3600.0,
        };
        let end = last + step;
        let length = checked_length(end - first)?;
        let ends = rows.iter().skip(1).map(|row| row.0).chain([end]);
        let mut work = StretchWork::new(length);
        for (&(at, rps), to) in rows.iter().zip(ends) {
            work.add_rate(at - first, to - first, rps);
        }
        work.finish(format!("{} rates over {}", rows.len(), duration_text(length)))
    }

    /// The rates of requests at these instants, in seconds and in order.
    pub fn from_arrivals(instants: &[f64]) -> Result<Self, Refused> {
        let (Some(first), Some(last)) = (instants.first(), instants.last()) else {
            return Err(Refused::new("holds no requests"));
        };
        if !instants.is_sorted() || !first.is_finite() || !last.is_finite() {
            return Err(Refused::new("its timestamps are not in order"));
        }
        let length = checked_length(last - first)?;
        if length < REST_S {
            let what = format!("lasts {length:.1} s: too short to describe an hour");
            return Err(Refused::new(what).hint("use a trace of a minute or more"));
        }
        let mut work = StretchWork::new(length);
        for instant in instants {
            work.count_arrival(instant - first);
        }
        work.finish(format!("{} requests over {}", instants.len(), duration_text(length)))
    }

    /// The highest rate over five minutes.
    pub fn peak_rps(&self) -> f64 {
        self.slots.iter().map(|slot| slot.rps).fold(0.0, f64::max)
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.slots.iter().map(|slot| slot.seconds).sum()
    }

    /// The mean rate.
    pub fn mean_rps(&self) -> f64 {
        let requests: f64 = self.slots.iter().map(|slot| slot.rps * slot.seconds).sum();
        let seconds = self.seconds();
        if seconds > 0.0 { requests / seconds } else { 0.0 }
    }

    /// The stretches of each hour.
    pub(super) fn hours(&self) -> Vec<(u32, Vec<TrafficSlot>)> {
        let mut hours: Vec<(u32, Vec<TrafficSlot>)> = Vec::new();
        for slot in &self.slots {
            let hour = (slot.start_s / 3600.0).floor() as u32;
            match hours.last_mut() {
                Some((at, slots)) if *at == hour => slots.push(*slot),
                _ => hours.push((hour, vec![*slot])),
            }
        }
        hours
    }
}

fn checked_length(length: f64) -> Result<f64, Refused> {
    if length > LONGEST_S {
        let what = format!("lasts {}: the limit is one month", duration_text(length));
        return Err(
            Refused::new(what).hint("times are in seconds, unless the column is named `hour`")
        );
    }
    Ok(length)
}

fn duration_text(seconds: f64) -> String {
    if seconds >= 7200.0 {
        format!("{:.1} h", seconds / 3600.0)
    } else {
        format!("{:.1} min", seconds / 60.0)
    }
}

/// Requests of each stretch, while they are added up.
struct StretchWork {
    length: f64,
    requests: Vec<f64>,
}

impl StretchWork {
    fn new(length: f64) -> Self {
        let slots = (length / SLOT_S - 1e-9).ceil().clamp(1.0, LONGEST_S / SLOT_S + 1.0);
        Self { length, requests: vec![0.0; slots as usize] }
    }

    fn add_rate(&mut self, from: f64, to: f64, rps: f64) {
        let first = (from / SLOT_S).floor().max(0.0) as usize;
        for (number, requests) in self.requests.iter_mut().enumerate().skip(first) {
            let start = number as f64 * SLOT_S;
            if start >= to {
                break;
            }
            *requests += rps * (to.min(start + SLOT_S) - from.max(start)).max(0.0);
        }
    }

    fn count_arrival(&mut self, at: f64) {
        let last = self.requests.len().saturating_sub(1);
        let slot = self.requests.get_mut(((at / SLOT_S) as usize).min(last));
        if let Some(requests) = slot {
            *requests += 1.0;
        }
    }

    fn finish(self, about: String) -> Result<Traffic, Refused> {
        let mut slots: Vec<TrafficSlot> = Vec::new();
        for (number, requests) in self.requests.into_iter().enumerate() {
            let start_s = number as f64 * SLOT_S;
            let seconds = (self.length - start_s).clamp(1e-9, SLOT_S);
            match slots.last_mut() {
                Some(before) if seconds < REST_S => {
                    let all = before.rps * before.seconds + requests;
                    before.seconds += seconds;
                    before.rps = all / before.seconds;
                }
                _ => slots.push(TrafficSlot { start_s, seconds, rps: requests / seconds }),
            }
        }
        if slots.iter().all(|slot| slot.rps <= 0.0) {
            return Err(Refused::new("holds no load: every rate is zero"));
        }
        Ok(Traffic { about, slots })
    }
}
