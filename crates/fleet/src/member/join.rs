//! Finding rank 0, which may start later, and being let in.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::link::{self, Line, Shared};
use super::{LOOK_UP, Member, MemberSettings};
use crate::frame::FrameError;
use crate::handshake::{self, Failed, Session};
use crate::message::{Hello, ToMember};
use crate::{FleetError, PROTOCOL, Token};

/// How long one address may take.
const CONNECTING: Duration = Duration::from_secs(3);
/// How long rank 0 may take to answer: longer than it lets strangers wait.
const PROVING: Duration = Duration::from_secs(15);
/// Between two tries, at first and at last.
const AGAIN: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_millis(1_000));
/// Messages that wait to be sent at most.
const QUEUE: usize = 64;
/// Members that send counts with every beat; of more, each does so less often, so that rank 0 reads
/// so many in a second.
const REPORTS: u32 = 512;
/// Pieces of files that wait to be sent at most.
const PIECES: usize = 4;
/// What rank 0 may say about silence.
const SILENCE: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_millis(3_600_000));

/// Let in.
struct Entered {
    stream: TcpStream,
    session: Session,
    fleet: String,
    silence: Nanos,
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
        Self::Again(error.to_string())
    }
}

impl From<Failed> for Tried {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Refused(refusal) => Self::Never(FleetError::Refused(refusal)),
            Failed::Impostor => Self::Never(FleetError::Impostor),
            Failed::Frame(error) => error.into(),
        }
    }
}

impl From<FrameError> for Tried {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLarge(_) | FrameError::Garbage => {
                Self::Again("something that is not a fleet answers there".to_owned())
            }
            other => Self::Again(other.to_string()),
        }
    }
}

pub(super) fn join(
    address: &str,
    settings: &MemberSettings,
    mut look: impl FnMut(&str) -> bool,
) -> Result<Member, FleetError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut again = AGAIN.0;
    loop {
        let why = match enter(&runtime, address, settings) {
            Ok(entered) => return start(runtime, entered, settings),
            Err(Tried::Never(error)) => return Err(error),
            Err(Tried::Again(why)) => why,
        };
        let until = (now() + again).min(settings.deadline);
        let mut goes_on = look(&why);
        while goes_on && now() < until {
            pause(LOOK_UP.min(until - now()));
            goes_on = look(&why);
        }
        if !goes_on || now() >= settings.deadline {
            return Err(FleetError::NoLeader { address: address.to_owned(), why });
        }
        again = Nanos(again.0 * 2).min(AGAIN.1);
    }
}

/// One try, at each address that the name has.
fn enter(runtime: &Runtime, address: &str, settings: &MemberSettings) -> Result<Entered, Tried> {
    let mut failed = Tried::Again("the name has no address".to_owned());
    let found = address.to_socket_addrs().map_err(|error| match error.kind() {
        // Not a name with a port: it will never be one.
        io::ErrorKind::InvalidInput => Tried::Never(FleetError::NoLeader {
            address: address.to_owned(),
            why: "that is not HOST:PORT".to_owned(),
        }),
        _ => error.into(),
    })?;
    for address in found {
        if settings.token.is_none() && !address.ip().to_canonical().is_loopback() {
            return Err(Tried::Never(FleetError::TokenRequired(address)));
        }
        match runtime.block_on(enter_at(address, settings)) {
            Err(Tried::Again(why)) => failed = Tried::Again(why),
            outcome => return outcome,
        }
    }
    Err(failed)
}

async fn enter_at(address: SocketAddr, settings: &MemberSettings) -> Result<Entered, Tried> {
    let left = Duration::from(settings.deadline - now());
    let late = |_| Tried::Again("no answer in time".to_owned());
    let connecting = tokio::time::timeout(CONNECTING.min(left), TcpStream::connect(address));
    let mut stream = connecting.await.map_err(late)??;
    // Where it is refused, messages are late, and the clock's error says so.
    let _ = stream.set_nodelay(true);
    let proving = async {
        let token = settings.token.clone().unwrap_or_else(Token::none);
        let mut session = handshake::join(&mut stream, &token, hello(settings)).await?;
        let (_, said) = session.receive.read(&mut stream).await?;
        match serde_json::from_slice(&said) {
            Ok(ToMember::Welcome { fleet, silence }) => Ok((session, fleet, silence)),
            Ok(ToMember::Refused(refusal)) => Err(Tried::Never(FleetError::Refused(refusal))),
            _ => Err(FrameError::Garbage.into()),
        }
    };
    let (session, fleet, silence) =
        tokio::time::timeout(PROVING.min(left), proving).await.map_err(late)??;
    Ok(Entered { stream, session, fleet, silence: silence.clamp(SILENCE.0, SILENCE.1) })
}

fn hello(settings: &MemberSettings) -> Hello {
    Hello {
        goodput_fleet: PROTOCOL,
        version: settings.version.clone(),
        rank: settings.shard.index(),
        of: settings.shard.of(),
        host: settings.host.clone(),
        nonce: [0; 32],
    }
}

fn start(
    runtime: Runtime,
    entered: Entered,
    settings: &MemberSettings,
) -> Result<Member, FleetError> {
    let Entered { stream, session, fleet, silence } = entered;
    let (control, said) = mpsc::channel(QUEUE);
    let (files, pieces) = mpsc::channel(PIECES);
    let shared = Arc::new(Shared::default());
    let line = Line {
        shared: Arc::clone(&shared),
        clocks: settings.clocks,
        silence,
        every: settings.shard.of().div_ceil(REPORTS),
        control: control.downgrade(),
    };
    let thread = std::thread::Builder::new().name("fleet".to_owned()).spawn(move || {
        runtime.block_on(link::run(line, stream, session, (said, pieces)));
    })?;
    let (control, files) = (Some(control), Some(files));
    Ok(Member { shared, fleet, control, files, thread: Some(thread) })
}
