//! What recordings and shadows share: passing on until it is over, and draining.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_clock::pause;

use crate::observer::{LiveObserver, ObserverCommand};
use crate::proxy::{Drained, Proxy, ProxyError, Settings, Witness};

/// How long a session looks at its commands before it looks at everything else.
const TICK: Duration = Duration::from_millis(50);

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// As long, or as much, as was asked for.
    Complete,
    /// It was told to.
    Stopped,
    /// The proxy ended by itself.
    Broken,
}

/// How passing on came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionEnd {
    /// Why.
    pub reason: EndReason,
    /// Whether it was told not to wait for answers.
    pub is_hurried: bool,
    /// Answers that were cut off at the end, where they were waited for.
    pub cut: u64,
}

/// What a recording or a shadow does while the proxy passes on.
pub(crate) trait ProxySession {
    /// Attends to commands and to its own limits; of the proxy, while it takes requests. Whether to
    /// stop.
    fn handle_command(&mut self, command: Option<ObserverCommand>, proxy: Option<&Proxy>) -> bool;
    /// Takes no more requests, and waits for answers on a thread of its own.
    fn drain(&mut self, proxy: Proxy) -> std::io::Result<JoinHandle<Drained>>;
}

/// Starts the proxy, and says where it listens.
pub(crate) fn start_proxy(
    settings: Settings,
    witness: Arc<dyn Witness>,
    observer: &dyn LiveObserver,
) -> Result<Proxy, ProxyError> {
    let is_encrypted = settings.tls.is_some();
    let proxy = Proxy::start(settings, witness)?;
    observer.listening(proxy.address(), is_encrypted);
    Ok(proxy)
}

/// Passes on until it is over, and drains.
pub(crate) fn run_session(
    proxy: Proxy,
    session: &mut impl ProxySession,
    commands: &Receiver<ObserverCommand>,
) -> SessionEnd {
    let mut end = SessionEnd { reason: EndReason::Broken, is_hurried: false, cut: 0 };
    loop {
        let command = next_command(commands);
        let is_enough = session.handle_command(command, Some(&proxy));
        end.reason = match (proxy.is_running(), command, is_enough) {
            (false, ..) => EndReason::Broken,
            (_, Some(ObserverCommand::Stop), _) => EndReason::Stopped,
            (_, _, true) => EndReason::Complete,
            _ => continue,
        };
        break;
    }
    let Ok(draining) = session.drain(proxy) else { return end };
    while !draining.is_finished() {
        let command = next_command(commands);
        session.handle_command(command, None);
        if command == Some(ObserverCommand::Stop) {
            end.is_hurried = true;
            return end;
        }
    }
    end.cut = draining.join().map_or(0, |drained| drained.cut);
    end
}

fn next_command(commands: &Receiver<ObserverCommand>) -> Option<ObserverCommand> {
    match commands.recv_timeout(TICK) {
        Ok(command) => Some(command),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => {
            pause(TICK.into());
            None
        }
    }
}
