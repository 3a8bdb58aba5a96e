//! Who is told what happens while traffic passes, and what can be asked of a session meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;

use goodput_campaign::compare::Comparison;
use goodput_campaign::shadow::Pair;

/// Hears what happens: a terminal, a page of metrics, a test. Called from several threads; it must not
/// wait. Foreign text in words is not made harmless yet.
pub trait LiveObserver: Send + Sync {
    /// Worth knowing while one waits.
    fn note(&self, _text: &str) {}
    /// Changes what the result is worth, or what the user has to do.
    fn warn(&self, _text: &str) {}
    /// Clients can connect here.
    fn listening(&self, _address: SocketAddr, _is_encrypted: bool) {}
    /// Time to show how far it is: several times a second, on the thread of `run`.
    fn tick(&self) {}
    /// A shadow has one more pair.
    fn pair(&self, _pair: &Pair) {}
    /// What the pairs of a shadow say so far.
    fn comparison_so_far(&self, _comparison: &Arc<Comparison>) {}
    /// A shadow passes nothing more on; its result follows.
    fn passing_ended(&self) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentObserver;

impl LiveObserver for SilentObserver {}

/// What a session can be told while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObserverCommand {
    /// Take no more requests and wait for answers; once more, do not wait.
    Stop,
    /// Begin a new file of a recording.
    Rotate,
    /// Turn mirroring off, or on again.
    Switch,
}
