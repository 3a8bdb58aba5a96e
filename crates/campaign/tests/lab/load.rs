//! One point in simulated time, open loop or closed.

use goodput_campaign::sweep::{Level, PointAsk};
use goodput_model::schedule::ArrivalSequence;
use goodput_model::{ArrivalProcess as Process, EndedBy, Nanos, Rate, StopEarly};
use goodput_sim::{Output, SimEngine};

use super::Server;

/// A request as it went.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub at: Nanos,
    pub first: Option<Nanos>,
    pub last: Option<Nanos>,
    pub output_tokens: u32,
    pub refused: bool,
}

/// Everything of a point.
pub struct PointTrace {
    pub requests: Vec<Request>,
    pub burn_in: Nanos,
    /// When sending ended.
    pub end: Nanos,
    pub ended_by: EndedBy,
    /// When the last answer was there.
    pub over: Nanos,
}

struct Course<'a> {
    server: &'a Server,
    ask: &'a PointAsk,
    engine: SimEngine,
    requests: Vec<Request>,
    outputs: Vec<Output>,
    unfinished: usize,
    now: Nanos,
}

/// How often a stop is thought about.
const LOOK: Nanos = Nanos::from_millis(2000);

pub fn run(server: &Server, ask: &PointAsk) -> PointTrace {
    let mut course = Course {
        server,
        ask,
        engine: server.engine(ask.seed),
        requests: Vec::new(),
        outputs: Vec::new(),
        unfinished: 0,
        now: Nanos::ZERO,
    };
    let burn_in = Nanos::from_secs_f64(ask.burn_in_s);
    let (end, ended_by) = course.send(burn_in);
    // A lost server is left alone, the others are drained. (What the drain would bring is wanted
    // all the same: requests that are given up stay out of the figures.)
    course.drain();
    let last = course.requests.iter().filter_map(|request| request.last).max();
    let over = if ended_by == EndedBy::Hopeless {
        end + Nanos::from_millis(1000)
    } else {
        last.unwrap_or(end).max(end)
    };
    PointTrace { requests: course.requests, burn_in, end, ended_by, over }
}

impl Course<'_> {
    fn submit(&mut self, at: Nanos) {
        let id = self.requests.len() as u64;
        let job = self.server.job(self.ask.seed, id);
        let output_tokens = job.output_tokens;
        let refused = self.engine.submit(at, job).is_err();
        self.requests.push(Request { at, first: None, last: None, output_tokens, refused });
        self.unfinished += usize::from(!refused);
    }

    /// Lets the engine work; says how many answers ended.
    fn advance(&mut self, until: Nanos) -> usize {
        self.engine.advance(until, &mut self.outputs);
        self.now = self.now.max(until);
        let mut ended = 0;
        for output in self.outputs.drain(..) {
            let request = &mut self.requests[output.id as usize];
            if output.total_tokens > 0 {
                request.first.get_or_insert(output.at);
            }
            if output.finished {
                request.last = Some(output.at);
                ended += 1;
            }
        }
        self.unfinished -= ended;
        ended
    }

    fn drain(&mut self) {
        while let Some(at) = self.engine.next() {
            self.advance(at);
        }
    }

    fn send(&mut self, burn_in: Nanos) -> (Nanos, EndedBy) {
        let end = burn_in + Nanos::from_secs_f64(self.ask.seconds);
        let mut rule = Rule::new(self.server, self.ask, burn_in);
        let mut look = burn_in + LOOK;
        let most = self.ask.requests.unwrap_or(u64::MAX);
        let mut arrivals = match self.ask.level {
            Level::Rate(rate) => {
                Some(ArrivalSequence::new(Rate::PerSecond(rate), Process::Poisson, self.ask.seed))
            }
            Level::Users(users) => {
                (0..users).for_each(|_| self.submit(Nanos::ZERO));
                None
            }
        };
        let mut due = arrivals.as_mut().and_then(Iterator::next);
        loop {
            let engine = self.engine.next();
            let at = [due, engine].into_iter().flatten().fold(look, Nanos::min);
            if at >= end {
                self.advance(end);
                return (end, EndedBy::Plan);
            }
            let ended = self.advance(at);
            if self.ask.requests.is_some()
                && self.requests.len() as u64 >= most
                && arrivals.is_none()
            {
                return (at, EndedBy::Plan);
            }
            if arrivals.is_none() {
                (0..ended).for_each(|_| self.submit(at));
            }
            if due == Some(at) {
                self.submit(at);
                due = arrivals.as_mut().and_then(Iterator::next);
            }
            if at == look {
                look += LOOK;
                if let Some(ended_by) = rule.look(self.server, &self.requests, at) {
                    return (at, ended_by);
                }
            }
        }
    }
}

/// When a point ends early.
struct Rule {
    stops: Option<StopEarly>,
    burn_in: Nanos,
    limit: Nanos,
    allowed: f64,
    /// Requests that the point will have.
    planned: f64,
    is_open: bool,
    /// Requests looked at, and what became of those that are measured.
    known: usize,
    good: f64,
    bad: f64,
}

impl Rule {
    fn new(server: &Server, ask: &PointAsk, burn_in: Nanos) -> Self {
        let planned = match ask.level {
            Level::Rate(rate) => rate * ask.seconds,
            Level::Users(_) => f64::INFINITY,
        };
        Self {
            stops: ask.stops,
            burn_in,
            limit: server.limit,
            allowed: 1.0 - server.percent / 100.0,
            planned,
            is_open: matches!(ask.level, Level::Rate(_)),
            known: 0,
            good: 0.0,
            bad: 0.0,
        }
    }

    fn look(&mut self, server: &Server, requests: &[Request], now: Nanos) -> Option<EndedBy> {
        // Of those that came a limit ago it is known.
        while let Some(request) = requests.get(self.known).filter(|r| r.at + self.limit <= now) {
            let is_good = server.keeps(request.at, request.first, request.last);
            if request.at >= self.burn_in {
                self.good += f64::from(u8::from(is_good));
                self.bad += f64::from(u8::from(!is_good));
            }
            self.known += 1;
        }
        let (good, bad) = (self.good, self.bad);
        self.stops?;
        // Out of reach, with some room for what is not planned: or the backlog grows.
        if bad > self.allowed * self.planned + 3.0 * (self.allowed * self.planned).sqrt() {
            return Some(EndedBy::Hopeless);
        }
        let seconds = (now - self.burn_in).as_secs();
        if self.is_open && seconds >= 10.0 && bad > 0.5 * (good + bad) {
            let half = self.burn_in + Nanos::from_secs_f64(seconds / 2.0);
            let under_way = |at: Nanos| {
                let is = |request: &&Request| {
                    request.at <= at && request.last.is_none_or(|last| last > at)
                };
                requests.iter().filter(is).count() as f64
            };
            let (middle, end) = (under_way(half), under_way(now));
            if end > middle + 3.0 * (2.0 * middle).sqrt() && end > 1.1 * middle {
                return Some(EndedBy::Hopeless);
            }
        }
        if self.stops == Some(StopEarly::Decided) {
            let p0 = 1.0 - self.allowed;
            let p1 = p0 - (2.0 * self.allowed).min(0.05);
            let score = good * (p1 / p0).ln() + bad * ((1.0 - p1) / (1.0 - p0)).ln();
            let bound = (0.95f64 / 0.05).ln();
            if score.abs() > bound {
                return Some(EndedBy::Decided);
            }
        }
        None
    }
}
