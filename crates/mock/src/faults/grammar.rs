//! One fault in text: `KIND[=VALUE][:SHARE][@FROM[+FOR]]`.

use std::fmt;
use std::str::FromStr;

use goodput_model::Nanos;

use super::kind::{At, FaultKind, RoleShape};
use super::value;

/// One fault: what, to which requests, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MockFault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// For which requests.
    pub share: FaultShare,
    /// When.
    pub window: FaultWindow,
}

/// Which requests a fault is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultShare {
    /// All of them.
    Every,
    /// Each with this chance, in percent.
    Percent(f64),
    /// Every this many, exactly: of ten the last.
    OneIn(u64),
}

/// When a fault happens, counted from the server's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultWindow {
    /// The beginning.
    pub from: Nanos,
    /// How long; forever when there is none.
    pub length: Option<Nanos>,
}

impl FaultWindow {
    /// Whether this instant is inside.
    pub fn contains(self, since_start: Nanos) -> bool {
        let is_before_end = self.length.is_none_or(|length| since_start < self.from + length);
        since_start >= self.from && is_before_end
    }
}

/// Why a text is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a fault: {reason}")]
pub struct FaultError {
    text: String,
    reason: String,
}

/// Every kind with its form, in the order of the documentation. `500` stands for all statuses.
const FORMS: [(&str, &str); 31] = [
    ("500", "any status from 400 to 599; 429 and 503 take =SECONDS"),
    ("refuse", "refuse@FROM[+FOR]"),
    ("slow-accept", "slow-accept=TIME"),
    ("close-after", "close-after=REQUESTS"),
    ("pause", "pause=TIME/EVERY"),
    ("reset", "reset"),
    ("reset-midstream", "reset-midstream[=TOKENS]"),
    ("cut", "cut[=TOKENS]"),
    ("stall", "stall[=TIME]"),
    ("drip", "drip[=BYTES/TIME]"),
    ("truncated-json", "truncated-json"),
    ("error-event", "error-event"),
    ("early-eos", "early-eos"),
    ("ignores-ignore-eos", "ignores-ignore-eos"),
    ("wrong-usage", "wrong-usage"),
    ("no-usage", "no-usage"),
    ("no-done", "no-done"),
    ("no-finish", "no-finish"),
    ("empty", "empty"),
    ("crlf", "crlf"),
    ("pings", "pings"),
    ("no-space", "no-space"),
    ("role", "role=empty|null|bare|absent|with-first"),
    ("cumulative", "cumulative"),
    ("joined", "joined[=EVENTS]"),
    ("split", "split[=WRITES]"),
    ("split-utf8", "split-utf8"),
    ("huge-event", "huge-event[=SIZE]"),
    ("html", "html"),
    ("bad-http", "bad-http"),
    ("slow-headers", "slow-headers=TIME"),
];

impl MockFault {
    /// The forms of all kinds, for help texts.
    pub fn forms() -> impl Iterator<Item = &'static str> {
        FORMS.iter().map(|(_, form)| *form)
    }
}

impl FromStr for MockFault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        parse_fault(text).map_err(|reason| FaultError { text: text.to_owned(), reason })
    }
}

fn parse_fault(text: &str) -> Result<MockFault, String> {
    let (rest, window) = text.split_once('@').map_or((text, None), |(a, b)| (a, Some(b)));
    let (rest, share) = rest.split_once(':').map_or((rest, None), |(a, b)| (a, Some(b)));
    let (name, value) = rest.split_once('=').map_or((rest, None), |(a, b)| (a, Some(b)));
    let kind = parse_kind(name, value)?;
    if kind.affects_connections() && share.is_some() {
        return Err(format!("`{name}` does not apply to single requests and takes no share"));
    }
    if kind == FaultKind::Refuse && window.is_none() {
        return Err("`refuse` needs a time: write `refuse@5s+3s`".to_owned());
    }
    Ok(MockFault {
        kind,
        share: share.map_or(Ok(FaultShare::Every), parse_share)?,
        window: window.map_or(Ok(FaultWindow::default()), parse_window)?,
    })
}

fn parse_share(text: &str) -> Result<FaultShare, String> {
    let wrong = || format!("`{text}` is not a share: write `10%` or `1/10`");
    if let Some(number) = text.strip_suffix('%') {
        let percent: f64 = number.parse().map_err(|_| wrong())?;
        let is_share = percent > 0.0 && percent <= 100.0;
        return if is_share { Ok(FaultShare::Percent(percent)) } else { Err(wrong()) };
    }
    let every: u64 = text.strip_prefix("1/").ok_or_else(wrong)?.parse().map_err(|_| wrong())?;
    if every == 0 { Err(wrong()) } else { Ok(FaultShare::OneIn(every)) }
}

fn parse_window(text: &str) -> Result<FaultWindow, String> {
    let Some((from, length)) = text.split_once('+') else {
        return Ok(FaultWindow { from: value::parse_time(text)?, length: None });
    };
    Ok(FaultWindow {
        from: value::parse_time(from)?,
        length: Some(value::parse_positive_time(length)?),
    })
}

fn parse_kind(name: &str, value: Option<&str>) -> Result<FaultKind, String> {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return parse_status(name, value);
    }
    let Some((_, form)) = FORMS.iter().find(|(known, _)| *known == name) else {
        return Err(unknown_fault_error(name));
    };
    let needed = || value.ok_or_else(|| format!("a value is missing: write `{form}`"));
    let at = || value.map_or(Ok(At::Half), |text| value::parse_count(text, 0).map(At::Tokens));
    let kind = match name {
        "slow-accept" => FaultKind::SlowAccept(value::parse_time(needed()?)?),
        "slow-headers" => FaultKind::SlowHeaders(value::parse_time(needed()?)?),
        "close-after" => FaultKind::CloseAfter(value::parse_count(needed()?, 1)?),
        "pause" => {
            let (length, every) = value::split_pair(needed()?)?;
            let (length, every) =
                (value::parse_positive_time(length)?, value::parse_positive_time(every)?);
            if length >= every {
                return Err("the pause must be shorter than the time between pauses".to_owned());
            }
            FaultKind::Pause(length, every)
        }
        "reset-midstream" => FaultKind::ResetMidstream(at()?),
        "cut" => FaultKind::Cut(at()?),
        "stall" => {
            FaultKind::Stall(value.map_or(Ok(FaultKind::STALL), value::parse_positive_time)?)
        }
        "drip" => {
            let Some(value) = value else {
                return Ok(FaultKind::Drip(FaultKind::DRIP.0, FaultKind::DRIP.1));
            };
            let (bytes, wait) = value::split_pair(value)?;
            FaultKind::Drip(value::parse_count(bytes, 1)?, value::parse_positive_time(wait)?)
        }
        "role" => parse_role(needed()?)?,
        "joined" => {
            FaultKind::Joined(value.map_or(Ok(FaultKind::JOINED), |n| value::parse_count(n, 2))?)
        }
        "split" => {
            FaultKind::Split(value.map_or(Ok(FaultKind::SPLIT), |n| value::parse_count(n, 2))?)
        }
        "huge-event" => FaultKind::HugeEvent(value.map_or(Ok(FaultKind::HUGE), value::parse_size)?),
        _ if value.is_some() => return Err(format!("`{name}` takes no value")),
        _ => kind_without_value(name).ok_or_else(|| unknown_fault_error(name))?,
    };
    Ok(kind)
}

/// A kind that has no value.
fn kind_without_value(name: &str) -> Option<FaultKind> {
    Some(match name {
        "refuse" => FaultKind::Refuse,
        "reset" => FaultKind::Reset,
        "truncated-json" => FaultKind::TruncatedJson,
        "error-event" => FaultKind::ErrorEvent,
        "early-eos" => FaultKind::EarlyEos,
        "ignores-ignore-eos" => FaultKind::IgnoresIgnoreEos,
        "wrong-usage" => FaultKind::WrongUsage,
        "no-usage" => FaultKind::NoUsage,
        "no-done" => FaultKind::NoDone,
        "no-finish" => FaultKind::NoFinish,
        "empty" => FaultKind::Empty,
        "crlf" => FaultKind::Crlf,
        "pings" => FaultKind::Pings,
        "no-space" => FaultKind::NoSpace,
        "cumulative" => FaultKind::Cumulative,
        "split-utf8" => FaultKind::SplitUtf8,
        "html" => FaultKind::Html,
        "bad-http" => FaultKind::BadHttp,
        _ => return None,
    })
}

fn parse_status(name: &str, value: Option<&str>) -> Result<FaultKind, String> {
    let status = name.parse().ok().filter(|status| (400..=599).contains(status));
    let status = status.ok_or_else(|| format!("`{name}` is not a status from 400 to 599"))?;
    match (status, value) {
        (429 | 503, None) => Ok(FaultKind::Status(status, Some(FaultKind::RETRY_AFTER))),
        (429 | 503, Some(seconds)) => {
            Ok(FaultKind::Status(status, Some(value::parse_count(seconds, 0)?)))
        }
        (_, None) => Ok(FaultKind::Status(status, None)),
        (_, Some(_)) => Err("only `429` and `503` take a value, the seconds to wait".to_owned()),
    }
}

fn parse_role(name: &str) -> Result<FaultKind, String> {
    let role = RoleShape::NAMES.iter().find(|(_, known)| *known == name);
    role.map(|(role, _)| FaultKind::Role(*role)).ok_or_else(|| {
        let names: Vec<&str> = RoleShape::NAMES.iter().map(|(_, name)| *name).collect();
        format!("`{name}` is not a role shape; expected one of {}", names.join(", "))
    })
}

fn unknown_fault_error(name: &str) -> String {
    let forms: Vec<&str> = MockFault::forms().collect();
    let list = format!("the kinds are: {}", forms.join(", "));
    let near = goodput_model::closest_name(name, FORMS.iter().map(|(known, _)| *known));
    near.map_or_else(
        || format!("no such kind\n{list}"),
        |known| format!("no such kind\nhint: did you mean `{known}`?\n{list}"),
    )
}

impl fmt::Display for MockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        match self.share {
            FaultShare::Every => {}
            FaultShare::Percent(percent) => write!(f, ":{percent}%")?,
            FaultShare::OneIn(every) => write!(f, ":1/{every}")?,
        }
        if self.window != FaultWindow::default() || self.kind == FaultKind::Refuse {
            write!(f, "@{}", value::time_text(self.window.from))?;
        }
        match self.window.length {
            Some(length) => write!(f, "+{}", value::time_text(length)),
            None => Ok(()),
        }
    }
}
