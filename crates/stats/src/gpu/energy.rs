//! Energy over the window.

use goodput_model::{GpuFacts, GpuSample, Nanos};

use super::WindowTokens;
use super::looks::GpuLooks;
use crate::summary::{Energy, PerToken};
use crate::window::Window;

/// No GPU draws this much: a counter that says so started again, and did not start at zero.
const MOST_W: f64 = 10_000.0;

/// Instant in seconds, and joules or watts then.
type Points = Vec<(f64, f64)>;

/// A part of the run, in seconds.
#[derive(Debug, Clone, Copy)]
struct EnergySpan {
    start: f64,
    end: f64,
}

impl EnergySpan {
    fn from_points(points: &Points) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        Some(Self { start: first.0, end: last.0 })
    }

    fn intersection(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    fn seconds(self) -> f64 {
        self.end - self.start
    }
}

/// How the energy of one GPU is known.
enum EnergyCourse {
    /// Joules since the first look.
    Counter(Points),
    /// Watts, and the longest time between two looks over which they say something.
    Power(Points, f64),
}

/// Two samples may lie this many usual intervals apart; a longer pause counts as unobserved.
const MOST_GAPS: f64 = 5.0;

impl EnergyCourse {
    /// By its counter, else by its power; none if neither is known for half of the window.
    fn from_looks(looks: &GpuLooks<'_>, window: EnergySpan) -> Option<Self> {
        let counter = Self::Counter(counter_points(looks));
        if counter.covers(window) {
            return Some(counter);
        }
        let power = looks.0.iter().filter_map(|look| Some((look.at.as_secs(), power_of(look)?)));
        let power: Points = power.collect();
        let mut gaps: Vec<f64> = power.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        gaps.sort_by(f64::total_cmp);
        let usual = gaps.get(gaps.len() / 2)?;
        Some(Self::Power(power, MOST_GAPS * usual)).filter(|power| power.covers(window))
    }

    fn points(&self) -> &Points {
        match self {
            Self::Counter(points) | Self::Power(points, _) => points,
        }
    }

    fn covers(&self, window: EnergySpan) -> bool {
        let Known { seconds, .. } = self.known_part(window);
        seconds > 0.0 && 2.0 * seconds >= window.seconds()
    }

    /// What is known of a span.
    fn known_part(&self, span: EnergySpan) -> Known {
        let mut known = Known::default();
        match self {
            Self::Counter(points) => {
                let part = EnergySpan::from_points(points).map(|all| all.intersection(span));
                if let Some(part) = part.filter(|part| part.seconds() > 0.0) {
                    known.joules = value_at(points, part.end) - value_at(points, part.start);
                    known.seconds = part.seconds();
                }
            }
            Self::Power(points, longest) => {
                for pair in points.windows(2).filter(|pair| pair[1].0 - pair[0].0 <= *longest) {
                    let part = EnergySpan { start: pair[0].0, end: pair[1].0 }.intersection(span);
                    if part.seconds() > 0.0 {
                        let mean = f64::midpoint(
                            interpolate(pair, part.start),
                            interpolate(pair, part.end),
                        );
                        known.joules += mean * part.seconds();
                        known.seconds += part.seconds();
                    }
                }
            }
        }
        known
    }
}

/// Energy, and the time over which it is known.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    joules: f64,
    seconds: f64,
}

fn power_of(look: &GpuSample) -> Option<f64> {
    look.power_w.filter(|watts| watts.is_finite() && *watts >= 0.0)
}

/// The counter from its first look on. A look at which it had not moved says nothing: pages of
/// exporters are made again only every this many seconds.
fn counter_points(looks: &GpuLooks<'_>) -> Points {
    let told = looks.0.iter().filter(|look| look.energy_j.is_some_and(f64::is_finite));
    let mut points = Points::new();
    let mut before: Option<&GpuSample> = None;
    let mut stood_still = false;
    for look in told {
        let at = look.at.as_secs();
        let step = before.map_or(0.0, |before| joules_between(before, look));
        if before.is_some() && step <= 0.0 {
            stood_still = true;
            continue;
        }
        points.push((at, points.last().map_or(0.0, |last| last.1) + step));
        before = Some(look);
    }
    // Of a counter that moves now and then, the age of its first value is unknown.
    if stood_still && !points.is_empty() {
        points.remove(0);
    }
    points
}

/// Joules between two looks at a counter. One that went down started again: what it had counted by
/// then is not known, so the power says it where it can.
fn joules_between(before: &GpuSample, look: &GpuSample) -> f64 {
    let (earlier, now) = (before.energy_j.unwrap_or(0.0), look.energy_j.unwrap_or(0.0));
    if now >= earlier {
        return now - earlier;
    }
    let seconds = (look.at - before.at).as_secs();
    match power_of(before).zip(power_of(look)) {
        Some((first, last)) => f64::midpoint(first, last) * seconds,
        None if now <= MOST_W * seconds => now,
        None => 0.0,
    }
}

/// The value at an instant between the first point and the last.
fn value_at(points: &Points, instant: f64) -> f64 {
    let pair = points.windows(2).find(|pair| instant <= pair[1].0);
    pair.map_or_else(|| points.last().map_or(0.0, |last| last.1), |pair| interpolate(pair, instant))
}

/// The value at an instant on the straight line through two points.
fn interpolate(pair: &[(f64, f64)], instant: f64) -> f64 {
    let ((t0, v0), (t1, v1)) = (pair[0], pair[1]);
    v0 + (v1 - v0) * (instant - t0) / (t1 - t0)
}

/// What is known of all GPUs.
pub(super) struct KnownEnergy {
    /// Joules of each, over its own part of the window.
    pub(super) each: Vec<Option<f64>>,
    /// Of all together; none if one of them tells nothing.
    pub(super) all: Option<All>,
}

/// The energy of all GPUs over the part of the window that is known of every one.
pub(super) struct All {
    joules: f64,
    seconds: f64,
    by_counter: bool,
}

/// Energy over the window; `facts` are in the order of the GPUs.
pub(super) fn energy_over(
    gpus: &[GpuLooks<'_>],
    facts: &[GpuFacts],
    window: Window,
) -> KnownEnergy {
    let seconds = |at: Nanos| at.as_secs();
    let window = EnergySpan { start: seconds(window.start), end: seconds(window.end) };
    let courses: Vec<Option<EnergyCourse>> =
        gpus.iter().map(|gpu| EnergyCourse::from_looks(gpu, window)).collect();
    let each =
        courses.iter().map(|course| Some(course.as_ref()?.known_part(window).joules)).collect();
    let places = (0..gpus.len()).filter(|place| !is_metered_elsewhere(*place, gpus, facts));
    let known: Option<Vec<&EnergyCourse>> =
        places.map(|place| courses.get(place).and_then(Option::as_ref)).collect();
    KnownEnergy { each, all: known.and_then(|known| All::from_courses(&known, window)) }
}

/// Whether another part of its board has the meter, and this one never told anything: exporters
/// repeat the board's figures for each part, and they are kept for one.
fn is_metered_elsewhere(place: usize, gpus: &[GpuLooks<'_>], facts: &[GpuFacts]) -> bool {
    let board = |place: usize| facts.get(place).map_or("", |facts| facts.board.as_str());
    let tells = |gpu: &GpuLooks<'_>| {
        gpu.0
            .iter()
            .any(|look| power_of(look).is_some() || look.energy_j.is_some_and(f64::is_finite))
    };
    let own = board(place);
    let mut others = gpus.iter().enumerate();
    !own.is_empty()
        && !gpus.get(place).is_some_and(tells)
        && others.any(|(other, gpu)| other != place && board(other) == own && tells(gpu))
}

impl All {
    /// Mean power of each over what is known of it; the time is that of the one least known.
    fn from_courses(courses: &[&EnergyCourse], window: EnergySpan) -> Option<Self> {
        let spans = courses.iter().filter_map(|course| EnergySpan::from_points(course.points()));
        let span = spans.fold(window, EnergySpan::intersection);
        let known = courses.iter().map(|course| course.known_part(span));
        let seconds = known.clone().map(|known| known.seconds).reduce(f64::min)?;
        (seconds > 0.0 && 2.0 * seconds >= window.seconds()).then(|| Self {
            joules: known.map(|known| known.joules / known.seconds).sum::<f64>() * seconds,
            seconds,
            by_counter: courses.iter().all(|course| matches!(course, EnergyCourse::Counter(_))),
        })
    }

    /// Power over the rate of tokens: where a part of the window is not known, it is taken to be
    /// like the rest.
    pub(super) fn energy_per_token(
        self,
        window: Window,
        tokens: WindowTokens,
        idle_w: Option<f64>,
    ) -> Energy {
        let mean_w = self.joules / self.seconds;
        let idle_w = idle_w.filter(|watts| watts.is_finite() && *watts >= 0.0);
        let per_token = |watts: f64| {
            let joules = watts * window.seconds();
            let each = |tokens: f64| {
                (tokens > 0.0).then(|| joules / tokens).filter(|each| each.is_finite())
            };
            PerToken {
                output_token: each(tokens.output),
                total_token: each(tokens.total),
                good_output_token: tokens.good_output.and_then(each),
            }
        };
        let above = idle_w.map(|idle| mean_w - idle).filter(|watts| *watts > 0.0);
        Energy {
            joules: self.joules,
            by: if self.by_counter { "counter" } else { "power" }.to_owned(),
            seconds: self.seconds,
            mean_w,
            idle_w,
            joules_per: per_token(mean_w),
            above_idle_joules_per: above.map(per_token),
        }
    }
}
