//! The whole, on the loopback.

mod abuse;
mod files;
mod hostile;
mod life;
mod relay;
mod scale;

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use goodput_clock::{now, now_and_unix, pause};
use goodput_model::{Nanos, Shard};

use crate::{
    Coordinator, CoordinatorSettings, FleetError, JoinedRank, NextOrder, Order, OrderKind,
    PeerLimits, RankPhase, RankSettings, RankState, Start, Token,
};

/// Longer than anything takes, on any machine.
const LONG: Nanos = Nanos::from_millis(30_000);
/// A silence that a busy machine does not keep.
const SILENCE: Nanos = Nanos::from_millis(2_000);
const SECRET: &str = "a-secret-for-these-tests";

/// A key is made of it once: that takes time on purpose.
fn token() -> Token {
    static TOKEN: LazyLock<Token> = LazyLock::new(|| Token::new(SECRET).unwrap());
    TOKEN.clone()
}

fn soon() -> Nanos {
    now() + LONG
}

fn coordinator_of(of: u32) -> CoordinatorSettings {
    CoordinatorSettings {
        of,
        token: Some(token()),
        fleet: "tests".to_owned(),
        version: "1.0.0".to_owned(),
        limits: PeerLimits { silence: SILENCE, ..PeerLimits::default() },
    }
}

fn lead(of: u32) -> Coordinator {
    Coordinator::listen(SocketAddr::from(([127, 0, 0, 1], 0)), coordinator_of(of)).unwrap()
}

fn settings(rank: u32, of: u32) -> RankSettings {
    RankSettings {
        shard: Shard::new(rank, of).unwrap(),
        token: Some(token()),
        host: format!("host {rank}"),
        version: "1.0.0".to_owned(),
        deadline: soon(),
        clocks: now_and_unix,
    }
}

fn join(at: SocketAddr, settings: &RankSettings) -> Result<JoinedRank, FleetError> {
    JoinedRank::join(&at.to_string(), settings, |_| true)
}

fn joined(coordinator: &Coordinator, rank: u32, of: u32) -> JoinedRank {
    join(coordinator.address(), &settings(rank, of)).unwrap()
}

fn order(number: u64, kind: OrderKind) -> Order {
    Order {
        number,
        kind,
        plan: format!("plan = {number}"),
        folder: String::new(),
        workload: "hash".to_owned(),
    }
}

fn run(number: u64) -> Order {
    order(number, OrderKind::Run)
}

fn point(number: u64) -> Order {
    order(number, OrderKind::Point)
}

/// Waits until something is so; fails when it never is.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = soon();
    while !is_so() {
        assert!(now() < deadline, "{what} never came");
        pause(Nanos::from_millis(2));
    }
}

fn state_of(coordinator: &Coordinator, rank: u32) -> RankState {
    coordinator.ranks().into_iter().find(|one| one.rank == rank).unwrap()
}

fn taken(rank: &JoinedRank) -> Order {
    match rank.next_order(LONG) {
        NextOrder::Order(order) => order,
        other => panic!("{other:?}"),
    }
}

/// Lets a rank take the order, and be ready.
fn make_ready(rank: &JoinedRank) -> Order {
    let order = taken(rank);
    rank.report_ready().unwrap();
    order
}

/// Lets the ranks carry an order as far as its start.
fn begin(coordinator: &Coordinator, ranks: &[&JoinedRank], order: Order) -> Nanos {
    coordinator.prepare(order).unwrap();
    for rank in ranks {
        make_ready(rank);
    }
    coordinator.wait_ready(soon(), || true);
    let go = coordinator.announce_start(Nanos::from_millis(1));
    assert_eq!(go.ranks.len(), ranks.len());
    go.at
}

fn is_lost(coordinator: &Coordinator, rank: u32) -> bool {
    matches!(state_of(coordinator, rank).phase, RankPhase::Lost(_))
}

/// Calls of a clock, for tests that must know whether it was read.
static READ: AtomicU32 = AtomicU32::new(0);

/// Clocks that are ahead: the monotonic one by 1000 s, the wall clock by 3 s.
fn ahead() -> (Nanos, Nanos) {
    READ.fetch_add(1, Ordering::Relaxed);
    let (mono, wall) = now_and_unix();
    (mono + AHEAD, wall + Nanos::from_millis(3_000))
}

const AHEAD: Nanos = Nanos::from_millis(1_000_000);
