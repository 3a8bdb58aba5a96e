//! The thread that serves all ranks: one task for each, one that lets them in, and one that keeps
//! the beat.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use goodput_clock::{now, now_and_unix};
use goodput_model::Nanos;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsStream;

use super::collect::{Taking, failure_reason};
use super::state::{Admitted, CoordinatorShared, Said};
use super::store::{self, StoreItem};
use super::{Coordinator, CoordinatorSettings, RankPhase};
use crate::channel::{self, Channel, ChannelFailure};
use crate::frame::{self, FrameError, FrameKind, LARGEST_MESSAGE};
use crate::message::{Hello, ToCoordinator, ToRank, clip_text};
use crate::{FleetError, Refusal, Token};

/// Most unauthenticated connections, in addition to one for each missing rank: where more come, the
/// oldest are closed, so that idle connections cannot keep the others out.
const STRANGERS: usize = 64;
/// The system's queue: as many as may start at once.
const BACKLOG: u32 = 4_096;
/// How long is waited after the system has refused a connection (no descriptors, mostly).
const BREATH: Duration = Duration::from_millis(50);
/// How often clocks are compared, at most and for each rank: a hundred of them in a second take
/// little of a core that has to make load too.
const COMPARE_EVERY: (Nanos, Nanos) = (Nanos::from_millis(5_000), Nanos::from_millis(10));
/// Letters of a rank's words that are kept.
const WORDS: usize = 4_096;
/// How long last words may take to arrive.
const PARTING: Duration = Duration::from_secs(1);

/// What a rank and rank 0 speak through.
type Stream = TlsStream<TcpStream>;

/// How often each end says that it is alive.
pub(crate) fn beat_interval(silence: Nanos) -> Nanos {
    Nanos(silence.0 / 10).clamp(Nanos::from_millis(10), Nanos::from_millis(1_000))
}

/// Listens and starts the threads.
pub(super) fn start_coordinator(
    address: SocketAddr,
    settings: CoordinatorSettings,
) -> Result<Coordinator, FleetError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _context = runtime.enter();
        bind_listener(address).map_err(|error| FleetError::Listen(address, error))?
    };
    let address = listener.local_addr()?;
    let shared = Arc::new(CoordinatorShared::new(settings, channel::server_config()?));
    let (store, items) = mpsc::channel(store::WAITING);
    let mut threads = Vec::new();
    let mut spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        threads.push(thread);
        std::io::Result::Ok(())
    };
    let (ours, theirs) = (Arc::clone(&shared), Arc::clone(&shared));
    spawn("fleet", Box::new(move || serve_ranks(&runtime, &ours, listener, store)))?;
    spawn("fleet-files", Box::new(move || store::run_store(&theirs, items)))?;
    Ok(Coordinator { shared, address, threads })
}

fn bind_listener(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until it is told to stop. Each has a task of its own: what one of them takes of the runtime's
/// budget, the others do not lack.
fn serve_ranks(
    runtime: &Runtime,
    shared: &Arc<CoordinatorShared>,
    listener: TcpListener,
    store: mpsc::Sender<StoreItem>,
) {
    runtime.spawn(accept_connections(Arc::clone(shared), listener, store));
    runtime.spawn(run_beats(Arc::clone(shared)));
    runtime.block_on(shared.stop.notified());
}

async fn run_beats(shared: Arc<CoordinatorShared>) {
    let silence = shared.settings.limits.silence;
    let beat = beat_interval(silence);
    let every = COMPARE_EVERY.0.max(Nanos(COMPARE_EVERY.1.0 * u64::from(shared.settings.of)));
    let (mut before, mut compared) = (now(), now());
    loop {
        tokio::time::sleep(beat.into()).await;
        let present = now();
        let mut state = shared.lock();
        if present - before > beat + Nanos(silence.0 / 2) {
            state.reset_silence(present);
        }
        let is_time = present - compared >= every;
        if is_time {
            compared = present;
        }
        state.tick(present, silence, is_time);
        before = present;
        drop(state);
        shared.changed.notify_all();
    }
}

async fn accept_connections(
    shared: Arc<CoordinatorShared>,
    listener: TcpListener,
    store: mpsc::Sender<StoreItem>,
) {
    let mut strangers = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, from)) if is_address_allowed(shared.settings.token.as_ref(), from.ip()) => {
                evict_strangers(&mut strangers, &shared);
                let (place, displaced) = oneshot::channel();
                strangers.push_back(place);
                let (shared, store) = (Arc::clone(&shared), store.clone());
                tokio::spawn(async move {
                    handle_connection(&shared, stream, from.ip(), displaced, &store).await;
                });
            }
            Ok((_, from)) => {
                note_turned_away(&shared, from.ip(), "is another machine, and no token is set");
            }
            Err(_) => tokio::time::sleep(BREATH).await,
        }
    }
}

/// A place among strangers: who has it goes when it is dropped.
type Place = oneshot::Sender<()>;

/// Lets one more in, at the cost of those who have been strangers for the longest.
fn evict_strangers(strangers: &mut VecDeque<Place>, shared: &CoordinatorShared) {
    let missing = (shared.settings.of as usize).saturating_sub(1 + shared.lock().connections);
    let most = STRANGERS + missing;
    if strangers.len() >= most {
        strangers.retain(|place| !place.is_closed());
        let too_many = (strangers.len() + 1).saturating_sub(most);
        strangers.drain(..too_many);
    }
}

fn is_address_allowed(token: Option<&Token>, from: IpAddr) -> bool {
    token.is_some() || from.to_canonical().is_loopback()
}

/// Notes that a stranger was turned away.
fn note_turned_away(shared: &CoordinatorShared, from: IpAddr, why: &str) {
    let sentence = format!("a connection from {} {why}", from.to_canonical());
    shared.lock().turned_away.count(sentence);
}

/// Who has come, as far as it has proved it, and the connection with it.
type Proved = (Stream, Result<Hello, Refusal>);

async fn prove_peer(
    shared: &CoordinatorShared,
    stream: TcpStream,
) -> Result<Proved, ChannelFailure> {
    let token = shared.settings.token.clone().unwrap_or_else(Token::public);
    let mut channel = Channel::accept(stream, &shared.tls).await?;
    match channel.admit_rank(&token, &shared.settings.version).await {
        Ok(hello) => Ok((channel.stream, Ok(hello))),
        Err(ChannelFailure::Refused(refusal)) => Ok((channel.stream, Err(refusal))),
        Err(failed) => Err(failed),
    }
}

/// One who has connected: a stranger at first, then a rank until it leaves.
///
/// What ends a wait comes first in every `select`: one that always has bytes ready takes what the
/// runtime lets a task do at a time, and who is asked after it is not heard.
async fn handle_connection(
    shared: &Arc<CoordinatorShared>,
    stream: TcpStream,
    from: IpAddr,
    mut displaced: oneshot::Receiver<()>,
    store: &mpsc::Sender<StoreItem>,
) {
    // Where it is refused, messages are late, and the clock's error says so.
    let _ = stream.set_nodelay(true);
    let limit = shared.settings.limits.proof.into();
    let proved = tokio::select! {
        biased;
        _ = &mut displaced => None,
        proved = tokio::time::timeout(limit, prove_peer(shared, stream)) => proved.ok(),
    };
    let (stream, hello) = match proved {
        Some(Ok((stream, Ok(hello)))) => (stream, hello),
        Some(Ok((stream, Err(refusal)))) => {
            note_turned_away(shared, from, &refusal.text_for_coordinator());
            return tokio::select! {
                biased;
                _ = displaced => {}
                () = close_gracefully(stream, None) => {}
            };
        }
        Some(Err(_)) => {
            return note_turned_away(
                shared,
                from,
                "used a different protocol, or closed the connection",
            );
        }
        None => return note_turned_away(shared, from, "did not authenticate in time"),
    };
    // A stranger no more.
    drop(displaced);
    let admitted = shared.lock().admit(&hello, &shared.settings);
    match admitted {
        Ok(admitted) => serve_rank(shared, hello.rank, admitted, stream, store).await,
        Err(refusal) => {
            let (rank, from) = (hello.rank, from.to_canonical());
            let sentence = format!("rank {rank} at {from} {}", refusal.text_for_coordinator());
            shared.lock().turned_away.count(sentence);
            close_gracefully(stream, Some(ToRank::Refused(refusal))).await;
        }
    }
}

/// Lets the last words arrive: a socket that is closed with something unread forgets them.
async fn close_gracefully(mut stream: Stream, last: Option<ToRank>) {
    let parting = async {
        if let Some(last) = last {
            frame::write_message(&mut stream, &last).await?;
        }
        stream.shutdown().await?;
        while stream.read(&mut [0; 512]).await? > 0 {}
        std::io::Result::Ok(())
    };
    // Whatever becomes of it, nothing more is said.
    let _ = tokio::time::timeout(PARTING, parting).await;
}

/// One rank, until it leaves or is lost.
async fn serve_rank(
    shared: &Arc<CoordinatorShared>,
    rank: u32,
    admitted: Admitted,
    stream: Stream,
    store: &mpsc::Sender<StoreItem>,
) {
    shared.changed.notify_all();
    let Admitted { connection, queue, cut } = admitted;
    let (reader, writer) = tokio::io::split(stream);
    let ear = MessageReader { shared, rank, connection, store };
    let why = tokio::select! {
        biased;
        () = cut.notified() => "it was cut off".to_owned(),
        why = send_queue(writer, queue) => format!("the connection failed: {why}"),
        why = ear.read_messages(reader) => why,
    };
    let _ = store.send(StoreItem::Gone { connection }).await;
    shared.lock().remove_rank(rank, connection, &why);
    shared.changed.notify_all();
}

/// Sends what is in the queue; once that has ended, waits for the other end to close.
async fn send_queue(mut to: WriteHalf<Stream>, mut queue: mpsc::Receiver<Said>) -> std::io::Error {
    while let Some(said) = queue.recv().await {
        if let Err(error) = frame::write_frame(&mut to, FrameKind::Message, &said).await {
            return error;
        }
    }
    match to.shutdown().await {
        Ok(()) => std::future::pending().await,
        Err(error) => error,
    }
}

/// Hears one rank.
struct MessageReader<'a> {
    shared: &'a Arc<CoordinatorShared>,
    rank: u32,
    connection: u64,
    store: &'a mpsc::Sender<StoreItem>,
}

impl MessageReader<'_> {
    /// Hears until nothing more comes; says why.
    async fn read_messages(&self, mut from: ReadHalf<Stream>) -> String {
        loop {
            let (kind, said) = match frame::read_frame(&mut from, LARGEST_MESSAGE).await {
                Ok(frame) => frame,
                Err(FrameError::Closed) => return "it has left".to_owned(),
                Err(error) => return error.to_string(),
            };
            let clocks = now_and_unix();
            if let Some(peer) = self.shared.lock().peer(self.rank, self.connection) {
                peer.note_heard(clocks.0);
            }
            let item = match kind {
                FrameKind::Piece => {
                    Some(StoreItem::Piece { connection: self.connection, bytes: said })
                }
                FrameKind::Message => match serde_json::from_slice(&said) {
                    Ok(message) => self.handle_message(message, clocks),
                    Err(_) => return FrameError::Garbage.to_string(),
                },
            };
            if let Some(item) = item
                && let Err(why) = self.hand_to_store(item).await
            {
                return why.to_owned();
            }
        }
    }

    /// Hands on what is to be written, and waits for the disk if it must.
    async fn hand_to_store(&self, item: StoreItem) -> Result<(), &'static str> {
        let is_last = matches!(item, StoreItem::Sent { .. } | StoreItem::Cut { .. });
        let first = match self.shared.lock().accept_upload(self.rank, self.connection, is_last)? {
            Taking::Ignored => return Ok(()),
            Taking::More => None,
            Taking::First(item) => Some(item),
        };
        self.set_held(true);
        for item in first.into_iter().chain([item]) {
            self.store.send(item).await.map_err(|_| "writing has stopped")?;
        }
        self.set_held(false);
        Ok(())
    }

    fn set_held(&self, is_held: bool) {
        if let Some(peer) = self.shared.lock().peer(self.rank, self.connection) {
            peer.is_held = is_held;
            peer.note_heard(now());
        }
    }

    /// Takes in a message; says what is to be written because of it.
    fn handle_message(&self, message: ToCoordinator, clocks: (Nanos, Nanos)) -> Option<StoreItem> {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        let (next, present) = (state.new_id(), state.order_number());
        let peer = state.peer(self.rank, self.connection)?;
        let connection = self.connection;
        match message {
            ToCoordinator::Pong { id, mono, wall } => {
                peer.note_clock(id, (mono, wall), clocks, next);
                if peer.is_comparing() {
                    return None;
                }
                state.ask_next();
            }
            ToCoordinator::Ready { number } if Some(number) == present => {
                if peer.phase == RankPhase::Preparing {
                    peer.phase = RankPhase::Ready;
                }
            }
            ToCoordinator::Cannot { number, why } if Some(number) == present => {
                peer.mark_failed(clip_text(&why, WORDS));
            }
            ToCoordinator::Totals { number, totals } if Some(number) == present => {
                peer.totals = Some(*totals);
            }
            ToCoordinator::Done { number, summary } if Some(number) == present => {
                if peer.phase == RankPhase::Running {
                    peer.phase = RankPhase::Done;
                    peer.summary = Some(clip_text(&summary, WORDS));
                }
            }
            ToCoordinator::Kept { number } if Some(number) == present => {
                state.note_kept(self.rank);
            }
            ToCoordinator::Offer { number, files } => {
                state.note_offer(self.rank, number, files, self.shared.settings.limits.upload);
            }
            ToCoordinator::File { name } => return Some(StoreItem::File { connection, name }),
            ToCoordinator::Sent => return Some(StoreItem::Sent { connection }),
            ToCoordinator::Cut(why) => {
                return Some(StoreItem::Cut { connection, why: failure_reason(&why) });
            }
            // A beat, or a word about an order that is over.
            _ => return None,
        }
        drop(guard);
        self.shared.changed.notify_all();
        None
    }
}
