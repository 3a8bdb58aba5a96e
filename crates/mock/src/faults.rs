//! Faults on purpose: which of them happen to a request, and to the connections.
//!
//! Nothing here reads a clock or a socket. What happens to request `id` at an instant is a
//! function of the list, the seed, the id and the instant, so a run can be repeated exactly.

mod grammar;
mod kind;
pub(crate) mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use goodput_model::Nanos;
use goodput_model::random::{Domain, RandomStream};

pub use grammar::{FaultError, FaultShare, FaultWindow, MockFault};
pub use kind::{At, FaultKind, Label, Needs, RoleShape};

/// All faults of a server.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    list: Vec<MockFault>,
    seed: u64,
    is_drawn: bool,
}

/// What happens to one request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Injected {
    /// A status instead of an answer, with the seconds of `Retry-After`.
    pub status: Option<(u16, Option<u32>)>,
    /// Something else instead of an answer.
    pub before_headers: Option<BeforeHeaders>,
    /// How long the status line waits.
    pub slow_headers: Option<Nanos>,
    /// What happens between tokens, and where.
    pub after_tokens: Option<(AfterTokens, At)>,
    /// Bytes that leave at once, and the wait after them.
    pub drip: Option<(u32, Nanos)>,
    /// How events become writes.
    pub delivery: EventDelivery,
    /// Peculiarities of the bytes.
    pub quirks: Quirks,
    /// Stop after half of the tokens, whatever was asked for.
    pub early_eos: bool,
    /// `ignore_eos` and `min_tokens` have no effect: stop after half.
    pub ignores_ignore_eos: bool,
    /// An event whose JSON stops in the middle.
    pub truncated_json: bool,
    /// An error inside the stream.
    pub error_event: bool,
    /// A finish reason without a token.
    pub empty: bool,
    /// The kinds above, each once, in the order of the list.
    pub kinds: Vec<Label>,
}

/// What comes instead of a status line and headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeforeHeaders {
    /// A reset.
    Reset,
    /// A web page with status 200.
    Html,
    /// Garbage.
    BadHttp,
}

/// What happens between tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterTokens {
    /// A reset.
    Reset,
    /// The end of the connection without the closing chunk.
    Cut,
    /// Silence, then the rest.
    Stall(Nanos),
}

/// How events become writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventDelivery {
    /// Events in one write.
    pub joined: u32,
    /// Writes of one event.
    pub split: u32,
    /// Writes end inside characters.
    pub split_utf8: bool,
}

impl Default for EventDelivery {
    fn default() -> Self {
        Self { joined: 1, split: 1, split_utf8: false }
    }
}

/// Peculiarities of the bytes; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks {
    /// Lines end with CR LF.
    pub crlf: bool,
    /// `data:` without the space.
    pub no_space: bool,
    /// The shape of the chunk with the role.
    pub role: RoleShape,
    /// Each event repeats the text so far.
    pub cumulative: bool,
    /// No `usage`.
    pub no_usage: bool,
    /// Wrong token counts in `usage`.
    pub wrong_usage: bool,
    /// No `[DONE]`.
    pub no_done: bool,
    /// No finish reason.
    pub no_finish: bool,
    /// Text of characters with several bytes.
    pub utf8: bool,
    /// Comments between the events.
    pub pings: bool,
    /// The event of the first token is padded to this many bytes.
    pub huge_event: Option<u32>,
    /// The event of this token ends in the middle of its JSON.
    pub truncated_json_at: Option<u32>,
    /// In place of this token comes an error, and nothing after it.
    pub error_at: Option<u32>,
    /// The answer ends with `stop` after this many tokens.
    pub early_eos_at: Option<u32>,
}

/// What happens to connections and to the whole server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Connections {
    /// When the listener is closed.
    pub refuse: Vec<FaultWindow>,
    /// How long accepted connections wait, and when.
    pub slow_accept: Vec<(Nanos, FaultWindow)>,
    /// After how many requests a connection ends, and when.
    pub close_after: Vec<(u32, FaultWindow)>,
    /// When the server stands still.
    pub pause: Vec<Pause>,
}

/// The whole server stands still for `length`, `every` so often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// How long it stands still.
    pub length: Nanos,
    /// From the beginning of one pause to that of the next; the first begins after one of these.
    pub every: Nanos,
    /// When.
    pub window: FaultWindow,
}

impl Faults {
    /// These faults, drawn with this seed.
    pub fn new(list: Vec<MockFault>, seed: u64) -> Self {
        let is_drawn = list.iter().any(|fault| matches!(fault.share, FaultShare::Percent(_)));
        Self { list, seed, is_drawn }
    }

    /// The kinds in the list, for counters that begin at zero.
    pub fn labels(&self) -> impl Iterator<Item = Label> {
        self.list.iter().map(|fault| fault.kind.label())
    }

    /// What happens to request `id` that arrives at this instant.
    ///
    /// A fault that takes the place of the answer suppresses all others; of several faults for the
    /// same place the first in the list happens. What is suppressed is not in `kinds`.
    pub fn for_request(&self, id: u64, since_start: Nanos) -> Injected {
        let mut hits = self.faults_for(id, since_start);
        let mut injected = Injected::default();
        if hits.is_empty() {
            return injected;
        }
        if let Some(only) = hits.iter().copied().find(|kind| kind.is_exclusive()) {
            hits = vec![only];
        }
        for kind in hits {
            let label = kind.label();
            if !injected.kinds.contains(&label) && injected.apply(kind) {
                injected.kinds.push(label);
            }
        }
        injected
    }

    /// The faults that this request meets, in the order of the list.
    fn faults_for(&self, id: u64, since_start: Nanos) -> Vec<FaultKind> {
        let mut stream = self.is_drawn.then(|| RandomStream::new(self.seed, Domain::Faults, id));
        let mut hits = Vec::new();
        for fault in &self.list {
            // One draw for each fault, used or not: a change to one does not move the others.
            let draw = stream.as_mut().map_or(0.0, RandomStream::next_unit);
            let is_shared = match fault.share {
                FaultShare::Every => true,
                FaultShare::Percent(percent) => draw * 100.0 < percent,
                // Ids count from zero: the tenth request has the id 9.
                FaultShare::OneIn(every) => id.checked_rem(every) == every.checked_sub(1),
            };
            let is_now = fault.window.contains(since_start);
            if is_shared && is_now && !fault.kind.affects_connections() {
                hits.push(fault.kind);
            }
        }
        hits
    }

    /// What happens to connections and to the whole server.
    pub fn connection_faults(&self) -> Connections {
        let mut connections = Connections::default();
        for MockFault { kind, window, .. } in self.list.iter().copied() {
            match kind {
                FaultKind::Refuse => connections.refuse.push(window),
                FaultKind::SlowAccept(time) => connections.slow_accept.push((time, window)),
                FaultKind::CloseAfter(requests) => connections.close_after.push((requests, window)),
                FaultKind::Pause(length, every) => {
                    connections.pause.push(Pause { length, every, window });
                }
                _ => {}
            }
        }
        connections
    }
}

impl Injected {
    /// Enters one fault; false when its place is taken.
    fn apply(&mut self, kind: FaultKind) -> bool {
        let needs_tokens = self.after_tokens.is_some() || self.truncated_json || self.error_event;
        let quirks = &mut self.quirks;
        match kind {
            FaultKind::Status(status, retry_after) => {
                set_once(&mut self.status, (status, retry_after))
            }
            FaultKind::Reset => set_once(&mut self.before_headers, BeforeHeaders::Reset),
            FaultKind::Html => set_once(&mut self.before_headers, BeforeHeaders::Html),
            FaultKind::BadHttp => set_once(&mut self.before_headers, BeforeHeaders::BadHttp),
            FaultKind::SlowHeaders(time) => set_once(&mut self.slow_headers, time),
            // An answer without tokens has no place between them.
            FaultKind::Empty if needs_tokens => false,
            FaultKind::Empty => set_flag(&mut self.empty),
            FaultKind::ResetMidstream(_)
            | FaultKind::Cut(_)
            | FaultKind::Stall(_)
            | FaultKind::TruncatedJson
            | FaultKind::ErrorEvent
                if self.empty =>
            {
                false
            }
            FaultKind::ResetMidstream(at) => {
                set_once(&mut self.after_tokens, (AfterTokens::Reset, at))
            }
            FaultKind::Cut(at) => set_once(&mut self.after_tokens, (AfterTokens::Cut, at)),
            FaultKind::Stall(time) => {
                set_once(&mut self.after_tokens, (AfterTokens::Stall(time), At::Half))
            }
            FaultKind::Drip(bytes, wait) => set_once(&mut self.drip, (bytes, wait)),
            // Both are done to the same event.
            FaultKind::TruncatedJson if self.error_event => false,
            FaultKind::TruncatedJson => set_flag(&mut self.truncated_json),
            FaultKind::ErrorEvent if self.truncated_json => false,
            FaultKind::ErrorEvent => set_flag(&mut self.error_event),
            FaultKind::EarlyEos => set_flag(&mut self.early_eos),
            FaultKind::IgnoresIgnoreEos => set_flag(&mut self.ignores_ignore_eos),
            FaultKind::NoFinish => set_flag(&mut quirks.no_finish),
            FaultKind::WrongUsage if quirks.no_usage => false,
            FaultKind::WrongUsage => set_flag(&mut quirks.wrong_usage),
            FaultKind::NoUsage if quirks.wrong_usage => false,
            FaultKind::NoUsage => set_flag(&mut quirks.no_usage),
            FaultKind::NoDone => set_flag(&mut quirks.no_done),
            FaultKind::Crlf => set_flag(&mut quirks.crlf),
            FaultKind::Pings => set_flag(&mut quirks.pings),
            FaultKind::NoSpace => set_flag(&mut quirks.no_space),
            FaultKind::Cumulative => set_flag(&mut quirks.cumulative),
            FaultKind::HugeEvent(bytes) => set_once(&mut quirks.huge_event, bytes),
            // Two of one kind have one label, and only the first comes here.
            FaultKind::Role(role) => {
                quirks.role = role;
                true
            }
            FaultKind::Joined(events) => {
                self.delivery.joined = events;
                true
            }
            FaultKind::Split(writes) => {
                self.delivery.split = writes;
                true
            }
            FaultKind::SplitUtf8 => {
                quirks.utf8 = true;
                set_flag(&mut self.delivery.split_utf8)
            }
            FaultKind::Refuse
            | FaultKind::SlowAccept(_)
            | FaultKind::CloseAfter(_)
            | FaultKind::Pause(..) => false,
        }
    }
}

fn set_flag(flag: &mut bool) -> bool {
    *flag = true;
    true
}

fn set_once<T>(place: &mut Option<T>, value: T) -> bool {
    let is_free = place.is_none();
    if is_free {
        *place = Some(value);
    }
    is_free
}

impl Connections {
    /// How long a connection accepted now waits.
    pub fn accept_delay(&self, since_start: Nanos) -> Option<Nanos> {
        first_active(&self.slow_accept, since_start)
    }

    /// After how many requests a connection accepted now ends.
    pub fn request_limit(&self, since_start: Nanos) -> Option<u32> {
        first_active(&self.close_after, since_start)
    }
}

fn first_active<T: Copy>(settings: &[(T, FaultWindow)], since_start: Nanos) -> Option<T> {
    settings.iter().find(|(_, window)| window.contains(since_start)).map(|(value, _)| *value)
}

/// How often each kind happened.
#[derive(Debug, Clone, Default)]
pub struct FaultCounts(BTreeMap<Label, u64>);

impl FaultCounts {
    /// Zeros for these kinds.
    pub fn new(labels: impl Iterator<Item = Label>) -> Self {
        Self(labels.map(|label| (label, 0)).collect())
    }

    /// One more.
    pub fn add(&mut self, label: Label) {
        let count = self.0.entry(label).or_default();
        *count = count.saturating_add(1);
    }

    /// Kind and count, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (Label, u64)> {
        self.0.iter().map(|(label, count)| (*label, *count))
    }
}
