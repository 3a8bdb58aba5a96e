//! A part of a run: which of its sessions one of several clients sends.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::parse::parse_error;
use crate::{Caveat, Load, LoadExtent, Mode, ParseError, Verdict};

/// One of several ranks that send one plan together. Sessions are dealt out in turn; their union
/// over all shards is what one client would send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    index: u32,
    of: u32,
}

impl Shard {
    /// One client sends all.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Shards of a run at most: more clients than anyone has, and few enough to list.
    pub const MOST: u32 = 65_536;

    /// Shard `index`, from 0, of `of`; `None` if it does not exist.
    pub fn new(index: u32, of: u32) -> Option<Self> {
        (index < of && of <= Self::MOST).then_some(Self { index, of })
    }

    /// Which one, from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Of how many.
    pub fn count(self) -> u32 {
        self.of
    }

    /// Whether there are others.
    pub fn is_part(self) -> bool {
        self.of > 1
    }

    /// Whether it sends the sessions of this turn.
    pub fn sends_turn(self, turn: u64) -> bool {
        turn % u64::from(self.of) == u64::from(self.index)
    }

    /// How many of this many things, dealt out in turn, are its own.
    pub fn share_of(self, count: u64) -> u64 {
        let of = u64::from(self.of);
        count / of + u64::from(u64::from(self.index) < count % of)
    }

    /// What this client sends of a load: its users, its part of the cap, and, of a closed loop, whose
    /// requests are counted when they are sent, its part of the counts. Open loops count by number,
    /// over the sessions of all.
    pub fn shard_load(self, load: &Load) -> Load {
        let part = |count: u32| u32::try_from(self.share_of(count.into())).unwrap_or(count);
        let mut own = load.clone();
        match &mut own.mode {
            Mode::Closed { concurrency, .. } => {
                *concurrency = part(*concurrency);
                let before = match load.warmup {
                    LoadExtent::Requests(requests) => requests,
                    LoadExtent::Time(_) | LoadExtent::Auto => 0,
                };
                // Requests are dealt out in turn, those before the window and those in it in one row.
                let rest =
                    |all: u64| self.share_of(before.saturating_add(all)) - self.share_of(before);
                own.num_requests = load.num_requests.map(rest);
                if let LoadExtent::Requests(requests) = &mut own.warmup {
                    *requests = self.share_of(before);
                }
            }
            Mode::Open { max_concurrency, .. }
            | Mode::Shaped { max_concurrency, .. }
            | Mode::Replay { max_concurrency, .. } => {
                *max_concurrency = max_concurrency.map(part);
            }
        }
        own
    }
}

/// One of several ranks that send one plan together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardFacts {
    /// The shard that it sent.
    pub shard: Shard,
    /// The name of the fleet; none if shards were started by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<String>,
    /// Its clocks compared with those of rank 0, if they were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
}

/// How the clocks of two machines differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockOffset {
    /// This machine's monotonic clock minus that of rank 0, in nanoseconds.
    pub offset_ns: i64,
    /// The error of that: half of the shortest round trip.
    pub error_ns: u64,
    /// This machine's wall clock minus that of rank 0, in nanoseconds; no figure depends on it.
    pub wall_ns: i64,
}

/// What is known of one rank of a merged run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardPart {
    /// Who it was.
    #[serde(flatten)]
    pub facts: ShardFacts,
    /// Its machine in a few words; empty if nothing of it is left.
    pub host: String,
    /// Whether its record exists; if not, the figures contain nothing of it.
    pub is_there: bool,
    /// Whether it ended as planned: it sent everything, and its record was closed.
    pub is_whole: bool,
    /// How long after the first rank it began, in milliseconds; never negative. None if its first
    /// instant is unknown.
    pub late_ms: Option<f64>,
    /// When its record ends, in seconds since its first instant, if it ends early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_s: Option<f64>,
    /// Requests in its record.
    pub requests: u64,
    /// Records that it measured and lost.
    pub lost_records: u64,
    /// Requests that failed for this rank only: the server never saw that load.
    #[serde(default)]
    pub failed_alone: u64,
    /// The verdict of its own record, before the merge.
    pub verdict: Verdict,
    /// The caveats that concern this rank.
    pub caveats: Vec<Caveat>,
}

impl ShardPart {
    /// A client that left no record.
    pub fn missing(shard: Shard, fleet: Option<String>) -> Self {
        Self {
            facts: ShardFacts { shard, fleet, clock: None },
            host: String::new(),
            is_there: false,
            is_whole: false,
            late_ms: None,
            cut_s: None,
            requests: 0,
            lost_records: 0,
            failed_alone: 0,
            verdict: Verdict::Valid,
            caveats: Vec::new(),
        }
    }

    /// Whether requests that were due are not in its record: there is none, or it ends early.
    pub fn has_gap(&self) -> bool {
        !self.is_there || self.cut_s.is_some()
    }
}

/// Whether all of these clients began at one instant that rank 0 gave them on their own clocks. Where
/// not, nothing but their wall clocks says how far apart they began.
pub fn have_common_start<'a>(clients: impl IntoIterator<Item = &'a ShardFacts>) -> bool {
    let mut fleet: Option<&str> = None;
    clients.into_iter().all(|client| {
        let is_known = client.clock.is_some() || client.shard.index() == 0;
        let same = client.fleet.as_deref().is_some_and(|name| *fleet.get_or_insert(name) == name);
        is_known && same
    })
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl FromStr for Shard {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "a shard: K/N with K from 0 to N-1 (`0/4`), or `auto`";
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        numbers
            .and_then(|(index, of)| Self::new(index, of))
            .ok_or_else(|| parse_error(text, EXPECTED))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn shares_add_up_and_are_what_is_taken() {
        for of in 1..9 {
            for count in 0..40u64 {
                let shards = || (0..of).map(|index| Shard::new(index, of).unwrap());
                assert_eq!(shards().map(|shard| shard.share_of(count)).sum::<u64>(), count);
                for shard in shards() {
                    let taken = (0..count).filter(|turn| shard.sends_turn(*turn)).count() as u64;
                    assert_eq!(shard.share_of(count), taken, "{shard} of {count}");
                }
            }
        }
    }

    /// What is counted before the window and in it is dealt out in one row.
    #[test]
    fn counts_of_a_closed_loop_add_up_in_turn() {
        let load = |before: u64, requests: u64| -> Load {
            Load {
                seed: 1,
                duration: None,
                num_requests: Some(requests),
                warmup: LoadExtent::Requests(before),
                cooldown: Duration::ZERO,
                drain: Duration::ZERO,
                workers: 1,
                pin: false,
                mode: Mode::Closed {
                    concurrency: 7,
                    think_time: Duration::ZERO,
                    pause_first: false,
                },
            }
        };
        for of in 1..6 {
            for (before, requests) in [(5, 40), (0, 41), (7, 1), (2, 0)] {
                for index in 0..of {
                    let shard = Shard::new(index, of).unwrap();
                    let own = shard.shard_load(&load(before, requests));
                    let LoadExtent::Requests(first) = own.warmup else { panic!() };
                    let all = first + own.num_requests.unwrap();
                    assert_eq!(all, shard.share_of(before + requests), "{shard}");
                    assert_eq!(first, shard.share_of(before), "{shard}");
                }
            }
        }
    }

    #[test]
    fn a_common_start_takes_one_name_and_every_clock() {
        let client = |index, fleet: Option<&str>, clock| ShardFacts {
            shard: Shard::new(index, 3).unwrap(),
            fleet: fleet.map(str::to_owned),
            clock,
        };
        let clock = Some(ClockOffset::default());
        // Rank 0 is its own clock.
        let both = [client(0, Some("a"), None), client(1, Some("a"), clock)];
        assert!(have_common_start(&both));
        let [first, _] = both;
        assert!(!have_common_start(&[first.clone(), client(1, Some("b"), clock)]));
        assert!(!have_common_start(&[first.clone(), client(1, Some("a"), None)]));
        assert!(!have_common_start(&[first, client(1, None, clock)]));
    }

    #[test]
    fn only_shards_are_shards() {
        assert_eq!("3/4".parse(), Ok(Shard { index: 3, of: 4 }));
        for text in ["4/4", "0/0", "1", "-1/2", "0/65537", "a/b", "1/2/3", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
