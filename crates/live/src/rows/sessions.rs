//! Which request goes on from which answer.
//!
//! A client that names its sessions is believed. Without a name, a request follows the exchange whose
//! messages and answer it begins with; where the answer was changed on the way (reasoning left out,
//! blanks), the one of the same model in which all others had said the same, else the one whose users
//! had. Of several equal ones, it takes one that is not continued yet.

use std::collections::{BTreeMap, HashMap};

use goodput_model::Nanos;

use crate::rows::salted::Key;

/// Exchanges that are remembered, and for how long.
const MOST: usize = 50_000;
const LONGEST: Nanos = Nanos(3_600_000_000_000);

/// How long before the end of an answer its follower may come: clients do not wait for the last byte.
const EAGER: Nanos = Nanos(1_000_000_000);

/// Exchanges that are told apart under one key.
const ALIKE: usize = 64;

/// Exchanges that are over and may be followed.
#[derive(Default)]
pub(crate) struct Sessions {
    /// Sessions begun so far.
    begun: u64,
    /// Exchanges so far.
    number: u64,
    /// By their numbers: the oldest come first.
    ended: BTreeMap<u64, EndedExchange>,
    /// Their numbers by what they are found by.
    found: HashMap<Key, Vec<u64>>,
}

/// An exchange that is over.
#[derive(Debug, Clone)]
pub(crate) struct EndedExchange {
    /// Its session.
    pub(crate) session: String,
    /// When it was over.
    pub(crate) at: Nanos,
    /// Its messages and its answer, or the name of its session.
    pub(crate) exact: Option<Key>,
    /// What others than the model had said.
    pub(crate) others: Option<Key>,
    /// What its users had said.
    pub(crate) users: Option<Key>,
    /// Whether a later request continued it.
    pub(crate) is_followed: bool,
}

impl EndedExchange {
    /// What it is found by.
    fn keys(&self) -> impl Iterator<Item = Key> + use<> {
        [self.exact, self.others, self.users].into_iter().flatten()
    }
}

impl Sessions {
    /// A session without a name.
    pub(crate) fn new_session(&mut self) -> String {
        self.begun += 1;
        self.begun.to_string()
    }

    /// The end of the exchange before in a named session, for a request of this instant.
    pub(crate) fn previous_end(&self, name: &Key, asked: Nanos) -> Option<Nanos> {
        self.find_by_key(name, asked).map(|(_, ended)| ended.at).max()
    }

    /// The session and the end of the exchange that a request of this instant follows.
    pub(crate) fn find_previous(&mut self, key: &Key, asked: Nanos) -> Option<(String, Nanos)> {
        let alike = self.find_by_key(key, asked);
        let (number, _) = alike.max_by_key(|(number, ended)| (!ended.is_followed, *number))?;
        let found = self.ended.get_mut(&number)?;
        found.is_followed = true;
        Some((found.session.clone(), found.at))
    }

    /// An exchange is over.
    pub(crate) fn add_exchange(&mut self, ended: EndedExchange) {
        while self
            .ended
            .first_key_value()
            .is_some_and(|(_, oldest)| self.ended.len() >= MOST || ended.at - oldest.at > LONGEST)
        {
            self.drop_oldest();
        }
        self.number += 1;
        for key in ended.keys() {
            let alike = self.found.entry(key).or_default();
            alike.push(self.number);
            if alike.len() > ALIKE {
                alike.remove(0);
            }
        }
        self.ended.insert(self.number, ended);
    }

    /// What is found under a key and was over when this was asked, or nearly.
    fn find_by_key(&self, key: &Key, asked: Nanos) -> impl Iterator<Item = (u64, &EndedExchange)> {
        let numbers = self.found.get(key).map(Vec::as_slice).unwrap_or_default();
        let known = numbers.iter().filter_map(|number| Some((*number, self.ended.get(number)?)));
        known.filter(move |(_, ended)| ended.at <= asked + EAGER && asked - ended.at <= LONGEST)
    }

    /// Forgets the oldest.
    fn drop_oldest(&mut self) {
        let Some((number, oldest)) = self.ended.pop_first() else { return };
        for key in oldest.keys() {
            let Some(alike) = self.found.get_mut(&key) else { continue };
            alike.retain(|known| *known != number);
            if alike.is_empty() {
                self.found.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn ended(session: &str, second: u64, exact: u8) -> EndedExchange {
        EndedExchange {
            session: session.to_owned(),
            at: Nanos(second * SECOND),
            exact: Some([exact; 32]),
            others: None,
            users: Some([200; 32]),
            is_followed: false,
        }
    }

    #[test]
    fn the_latest_without_a_successor_is_followed() {
        let mut sessions = Sessions::default();
        sessions.add_exchange(ended("a", 1, 1));
        sessions.add_exchange(ended("b", 2, 1));
        let mut follow =
            |second| sessions.find_previous(&[1; 32], Nanos(second * SECOND)).unwrap().0;
        assert_eq!((follow(5), follow(6), follow(7)), ("b".into(), "a".into(), "b".into()));
        assert_eq!(sessions.find_previous(&[9; 32], Nanos(5 * SECOND)), None);
    }

    #[test]
    fn nothing_follows_what_is_not_over_or_long_over() {
        let mut sessions = Sessions::default();
        sessions.add_exchange(ended("a", 100, 1));
        assert_eq!(sessions.find_previous(&[1; 32], Nanos(90 * SECOND)), None);
        let late = Nanos(100 * SECOND) + LONGEST;
        assert!(sessions.find_previous(&[1; 32], late).is_some());
        assert_eq!(sessions.find_previous(&[1; 32], late + Nanos(1)), None);
    }

    #[test]
    fn a_named_session_goes_on_from_what_was_over_last() {
        let mut sessions = Sessions::default();
        sessions.add_exchange(ended("n", 5, 1));
        sessions.add_exchange(ended("n", 10, 1));
        assert_eq!(sessions.previous_end(&[1; 32], Nanos(7 * SECOND)), Some(Nanos(5 * SECOND)));
        assert_eq!(sessions.previous_end(&[1; 32], Nanos(12 * SECOND)), Some(Nanos(10 * SECOND)));
        assert_eq!(sessions.previous_end(&[1; 32], Nanos(2 * SECOND)), None);
    }

    #[test]
    fn memory_has_an_end() {
        let mut sessions = Sessions::default();
        for number in 0..MOST as u64 + 10 {
            let mut one = ended("s", 1, 0);
            one.exact = Some(std::array::from_fn(|place| (number >> (8 * (place % 8))) as u8));
            sessions.add_exchange(one);
        }
        assert_eq!(sessions.ended.len(), MOST);
        // One key each, and the one that all have.
        assert_eq!(sessions.found.len(), MOST + 1);
        assert_eq!(sessions.found[&[200; 32]].len(), ALIKE);
        sessions.add_exchange(ended("new", 2 + LONGEST.0 / SECOND, 1));
        assert_eq!((sessions.ended.len(), sessions.found.len()), (1, 2));
    }
}
