//! The kinds of faults, their names and their values.

use std::fmt;

use goodput_model::Nanos;

use super::value;

/// What goes wrong. The text forms are the interface (`goodput mock --fault …`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// `500`, `429=5`: a status instead of an answer, with `Retry-After` where that is usual.
    Status(u16, Option<u32>),
    /// `refuse`: the listener is closed.
    Refuse,
    /// `slow-accept`: each accepted connection waits.
    SlowAccept(Nanos),
    /// `close-after`: a connection ends after this many requests.
    CloseAfter(u32),
    /// `pause`: the whole server stands still for the first time, once every second one.
    Pause(Nanos, Nanos),
    /// `reset`: a reset before the headers.
    Reset,
    /// `reset-midstream`: a reset between tokens.
    ResetMidstream(At),
    /// `cut`: the end of the connection between tokens, without the closing chunk.
    Cut(At),
    /// `stall`: silence after half of the tokens, then the rest.
    Stall(Nanos),
    /// `drip`: so many bytes leave at once, then comes a wait.
    Drip(u32, Nanos),
    /// `truncated-json`: an event whose JSON stops in the middle.
    TruncatedJson,
    /// `error-event`: an error inside a stream whose status was 200.
    ErrorEvent,
    /// `early-eos`: the answer stops after half of its tokens.
    EarlyEos,
    /// `ignores-ignore-eos`: `ignore_eos` and `min_tokens` have no effect.
    IgnoresIgnoreEos,
    /// `wrong-usage`: the token counts in `usage` are wrong.
    WrongUsage,
    /// `no-usage`: no `usage`, asked for or not.
    NoUsage,
    /// `no-done`: no `[DONE]`.
    NoDone,
    /// `no-finish`: `[DONE]` without a finish reason.
    NoFinish,
    /// `empty`: a finish reason without a token.
    Empty,
    /// `crlf`: lines end with CR LF.
    Crlf,
    /// `pings`: comments between the events.
    Pings,
    /// `no-space`: `data:` without the space.
    NoSpace,
    /// `role`: another shape of the chunk with the role.
    Role(RoleShape),
    /// `cumulative`: each event repeats the text so far.
    Cumulative,
    /// `joined`: several events in one write.
    Joined(u32),
    /// `split`: one event over several writes.
    Split(u32),
    /// `split-utf8`: writes end inside characters.
    SplitUtf8,
    /// `huge-event`: one event of this many bytes.
    HugeEvent(u32),
    /// `html`: a web page with status 200.
    Html,
    /// `bad-http`: garbage instead of a status line.
    BadHttp,
    /// `slow-headers`: the status line waits.
    SlowHeaders(Nanos),
}

/// Where in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After half of the tokens.
    Half,
    /// After this many tokens.
    Tokens(u32),
}

/// The shape of the chunk that carries the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RoleShape {
    /// `{"role":"assistant","content":""}`, the usual one.
    #[default]
    Empty,
    /// `{"role":"assistant","content":null}`
    Null,
    /// `{"role":"assistant"}`
    Bare,
    /// No such chunk, and no role.
    Absent,
    /// The role comes with the first token.
    WithFirst,
}

impl RoleShape {
    pub(super) const NAMES: [(Self, &'static str); 5] = [
        (Self::Empty, "empty"),
        (Self::Null, "null"),
        (Self::Bare, "bare"),
        (Self::Absent, "absent"),
        (Self::WithFirst, "with-first"),
    ];
}

/// How a kind is called in `mock_faults_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// A status.
    Status(u16),
    /// Any other kind.
    Named(&'static str),
}

/// What an answer must have for a fault to happen to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Anything can be broken so.
    Nothing,
    /// Text: no embeddings.
    Text,
    /// A stream.
    Stream,
    /// A request that wants all of its tokens, by `ignore_eos` or `min_tokens`.
    Orders,
}

impl Label {
    /// What an answer must have for this to happen to it.
    pub fn required_answer(self) -> Needs {
        let Self::Named(name) = self else { return Needs::Nothing };
        match name {
            "no-done" | "crlf" | "pings" | "no-space" | "role" | "cumulative" | "joined"
            | "split" | "split-utf8" | "huge-event" => Needs::Stream,
            "early-eos" | "wrong-usage" | "no-usage" | "no-finish" | "empty" => Needs::Text,
            "ignores-ignore-eos" => Needs::Orders,
            _ => Needs::Nothing,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

impl FaultKind {
    /// Seconds of `Retry-After` when the fault does not say.
    pub(super) const RETRY_AFTER: u32 = 1;
    pub(super) const STALL: Nanos = Nanos(60_000_000_000);
    pub(super) const DRIP: (u32, Nanos) = (16, Nanos::from_millis(5));
    pub(super) const JOINED: u32 = 4;
    pub(super) const SPLIT: u32 = 3;
    pub(super) const HUGE: u32 = 8_000_000;

    /// The name without the value.
    pub fn label(self) -> Label {
        Label::Named(match self {
            Self::Status(status, _) => return Label::Status(status),
            Self::Refuse => "refuse",
            Self::SlowAccept(_) => "slow-accept",
            Self::CloseAfter(_) => "close-after",
            Self::Pause(..) => "pause",
            Self::Reset => "reset",
            Self::ResetMidstream(_) => "reset-midstream",
            Self::Cut(_) => "cut",
            Self::Stall(_) => "stall",
            Self::Drip(..) => "drip",
            Self::TruncatedJson => "truncated-json",
            Self::ErrorEvent => "error-event",
            Self::EarlyEos => "early-eos",
            Self::IgnoresIgnoreEos => "ignores-ignore-eos",
            Self::WrongUsage => "wrong-usage",
            Self::NoUsage => "no-usage",
            Self::NoDone => "no-done",
            Self::NoFinish => "no-finish",
            Self::Empty => "empty",
            Self::Crlf => "crlf",
            Self::Pings => "pings",
            Self::NoSpace => "no-space",
            Self::Role(_) => "role",
            Self::Cumulative => "cumulative",
            Self::Joined(_) => "joined",
            Self::Split(_) => "split",
            Self::SplitUtf8 => "split-utf8",
            Self::HugeEvent(_) => "huge-event",
            Self::Html => "html",
            Self::BadHttp => "bad-http",
            Self::SlowHeaders(_) => "slow-headers",
        })
    }

    /// Happens to connections or to the whole server, not to single requests.
    pub fn affects_connections(self) -> bool {
        matches!(self, Self::Refuse | Self::SlowAccept(_) | Self::CloseAfter(_) | Self::Pause(..))
    }

    /// Takes the place of the whole answer, so that nothing else can happen to it.
    pub fn is_exclusive(self) -> bool {
        matches!(self, Self::Status(..) | Self::Reset | Self::Html | Self::BadHttp)
    }
}

/// `KIND` or `KIND=VALUE`; a value that is the default is left out.
impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.label())?;
        match *self {
            Self::Status(_, Some(seconds)) if seconds != Self::RETRY_AFTER => {
                write!(f, "={seconds}")
            }
            Self::SlowAccept(time) | Self::SlowHeaders(time) => {
                write!(f, "={}", value::time_text(time))
            }
            Self::CloseAfter(requests) => write!(f, "={requests}"),
            Self::Pause(length, every) => {
                write!(f, "={}/{}", value::time_text(length), value::time_text(every))
            }
            Self::ResetMidstream(At::Tokens(tokens)) | Self::Cut(At::Tokens(tokens)) => {
                write!(f, "={tokens}")
            }
            Self::Stall(time) if time != Self::STALL => write!(f, "={}", value::time_text(time)),
            Self::Drip(bytes, wait) if (bytes, wait) != Self::DRIP => {
                write!(f, "={bytes}/{}", value::time_text(wait))
            }
            Self::Role(role) => {
                let name = RoleShape::NAMES.iter().find(|(other, _)| *other == role);
                write!(f, "={}", name.map_or("empty", |(_, name)| name))
            }
            Self::Joined(events) if events != Self::JOINED => write!(f, "={events}"),
            Self::Split(writes) if writes != Self::SPLIT => write!(f, "={writes}"),
            Self::HugeEvent(bytes) if bytes != Self::HUGE => {
                write!(f, "={}", value::size_text(bytes))
            }
            _ => Ok(()),
        }
    }
}
