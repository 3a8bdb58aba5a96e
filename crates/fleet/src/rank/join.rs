//! Finding rank 0, which may start later, and being let in.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::link::{self, LinkThread, Out, RankShared, Stream};
use super::{JoinedRank, LOOK_UP, RankSettings};
use crate::channel::{Channel, ChannelFailure};
use crate::frame::{self, FrameError, LARGEST_MESSAGE};
use crate::message::{Hello, ToRank};
use crate::{FleetError, Token};

/// How long one address may take.
const CONNECTING: Duration = Duration::from_secs(3);
/// How long rank 0 may take to answer: longer than it lets strangers wait.
const PROVING: Duration = Duration::from_secs(15);
/// Between two tries, at first and at last.
const AGAIN: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_millis(1_000));
/// Messages that wait to be sent at most.
const QUEUE: usize = 64;
/// Ranks that send counts with every beat; of more, each does so less often, so that rank 0 reads
/// this many in a second.
const REPORTS: u32 = 512;
/// Pieces of files that wait to be sent at most.
const PIECES: usize = 4;
/// What rank 0 may say about silence.
const SILENCE: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_millis(3_600_000));

/// What a rank needs to speak with rank 0.
struct Entered {
    shared: Arc<RankShared>,
    fleet: String,
    control: mpsc::Sender<Out>,
    files: mpsc::Sender<Out>,
}

/// Why a try failed.
enum Tried {
    /// Another may not.
    Again(String),
    /// Others will too.
    Never(FleetError),
}

impl From<io::Error> for Tried {
    fn from(error: io::Error) -> Self {
        FrameError::from(error).into()
    }
}

impl From<ChannelFailure> for Tried {
    fn from(failed: ChannelFailure) -> Self {
        match failed {
            ChannelFailure::Refused(refusal) => Self::Never(FleetError::Refused(refusal)),
            ChannelFailure::Impostor => Self::Never(FleetError::Impostor),
            ChannelFailure::Frame(error) => error.into(),
        }
    }
}

impl From<FrameError> for Tried {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLarge(_) | FrameError::Garbage | FrameError::Tampered => {
                Self::Again("the process there does not speak the fleet protocol".to_owned())
            }
            FrameError::Io(error) => Self::Again(error.to_string()),
            other => Self::Again(other.to_string()),
        }
    }
}

/// Looks for rank 0 on a thread of its own, which then speaks with it: whatever a name, a network or
/// who listens there may take, the caller is asked all the time.
pub(super) fn join_fleet(
    address: &str,
    settings: &RankSettings,
    mut look: impl FnMut(&str) -> bool,
) -> Result<JoinedRank, FleetError> {
    let (news, heard) = channel();
    let (at, own) = (address.to_owned(), settings.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let speak = move || run_link(&runtime, &at, &own, &news);
    let thread = std::thread::Builder::new().name("fleet".to_owned()).spawn(speak)?;
    let mut why = "no answer yet".to_owned();
    loop {
        match heard.recv_timeout(LOOK_UP.into()) {
            Ok(Ok(Entered { shared, fleet, control, files })) => {
                let (control, files) = (Some(control), Some(files));
                return Ok(JoinedRank { shared, fleet, control, files, thread: Some(thread) });
            }
            Ok(Err(Tried::Never(error))) => return Err(error),
            Ok(Err(Tried::Again(reason))) => why = reason,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("a thread of the fleet ended unexpectedly").into());
            }
        }
        if !look(&why) || now() >= settings.deadline {
            return Err(FleetError::NoCoordinator { address: address.to_owned(), why });
        }
    }
}

/// The thread of a rank: tries until rank 0 accepts it, or the caller gives up.
fn run_link(
    runtime: &Runtime,
    address: &str,
    settings: &RankSettings,
    news: &Sender<Result<Entered, Tried>>,
) {
    let mut again = AGAIN.0;
    loop {
        let tried = match connect_once(runtime, address, settings) {
            Ok((stream, fleet, silence)) => {
                let (control, said) = mpsc::channel(QUEUE);
                let (files, pieces) = mpsc::channel(PIECES);
                let shared = Arc::new(RankShared::default());
                let line = LinkThread {
                    shared: Arc::clone(&shared),
                    clocks: settings.clocks,
                    silence,
                    every: settings.shard.count().div_ceil(REPORTS),
                    control: control.downgrade(),
                };
                if news.send(Ok(Entered { shared, fleet, control, files })).is_ok() {
                    runtime.block_on(link::run_link(line, stream, (said, pieces)));
                }
                return;
            }
            Err(tried) => tried,
        };
        let is_last = matches!(tried, Tried::Never(_));
        if news.send(Err(tried)).is_err() || is_last {
            return;
        }
        pause(again);
        again = Nanos(again.0 * 2).min(AGAIN.1);
    }
}

/// The connection, the name of the fleet, and how long either end may be silent.
type Welcomed = (Stream, String, Nanos);

/// One try, at each address that the name has.
fn connect_once(
    runtime: &Runtime,
    address: &str,
    settings: &RankSettings,
) -> Result<Welcomed, Tried> {
    let mut failed = Tried::Again("the name has no address".to_owned());
    let found = address.to_socket_addrs().map_err(|error| match error.kind() {
        // Not a name with a port: it will never be one.
        io::ErrorKind::InvalidInput => Tried::Never(FleetError::NoCoordinator {
            address: address.to_owned(),
            why: "the address is not HOST:PORT".to_owned(),
        }),
        _ => error.into(),
    })?;
    for address in found {
        if settings.token.is_none() && !address.ip().to_canonical().is_loopback() {
            return Err(Tried::Never(FleetError::TokenRequired(address)));
        }
        match runtime.block_on(connect_at(address, settings)) {
            Err(Tried::Again(why)) => failed = Tried::Again(why),
            outcome => return outcome,
        }
    }
    Err(failed)
}

async fn connect_at(address: SocketAddr, settings: &RankSettings) -> Result<Welcomed, Tried> {
    let late = |_| Tried::Again("no answer in time".to_owned());
    let connecting = tokio::time::timeout(CONNECTING, TcpStream::connect(address));
    let stream = connecting.await.map_err(late)??;
    // Where it is refused, messages are late, and the clock's error says so.
    let _ = stream.set_nodelay(true);
    let (rank, of) = (settings.shard.index(), settings.shard.count());
    let hello = Hello { rank, of, host: settings.host.clone() };
    let proving = async {
        let token = settings.token.clone().unwrap_or_else(Token::public);
        let mut channel = Channel::connect(stream).await?;
        channel.join(&token, &settings.version, &hello).await?;
        match frame::read_message(&mut channel.stream, LARGEST_MESSAGE).await? {
            ToRank::Welcome { fleet, silence } => {
                Ok((channel.stream, fleet, silence.clamp(SILENCE.0, SILENCE.1)))
            }
            ToRank::Refused(refusal) => Err(Tried::Never(FleetError::Refused(refusal))),
            _ => Err(FrameError::Garbage.into()),
        }
    };
    tokio::time::timeout(PROVING, proving).await.map_err(late)?
}
