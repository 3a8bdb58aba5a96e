//! How far one coordinator goes: `cargo test -p goodput-fleet scale -- --ignored --nocapture`.

use std::collections::BTreeMap;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::*;
use crate::Totals;
use crate::channel::Channel;
use crate::frame::{self, LARGEST_MESSAGE};
use crate::message::{Hello, ToCoordinator, ToRank};

static AT_ONCE: Semaphore = Semaphore::const_new(64);

/// A rank without a thread of its own: answers for its clock, is ready, and sends counts.
async fn light(address: SocketAddr, rank: u32, of: u32, totals: Totals) -> Option<()> {
    // One thread stands for many machines: it does not begin what it cannot finish in time.
    let turn = AT_ONCE.acquire().await.ok()?;
    let stream = TcpStream::connect(address).await.ok()?;
    stream.set_nodelay(true).ok()?;
    let mut channel = Channel::connect(stream).await.ok()?;
    let hello = Hello { rank, of, host: String::new() };
    channel.join(&token(), "1.0.0", &hello).await.ok()?;
    drop(turn);
    let (mut from, mut to) = tokio::io::split(channel.stream);
    let mut beats = 0;
    loop {
        let answer = match frame::read_message(&mut from, LARGEST_MESSAGE).await.ok()? {
            ToRank::Ping { id } => ToCoordinator::Pong { id, mono: now(), wall: now() },
            ToRank::Order(order) => ToCoordinator::Ready { number: order.number },
            ToRank::Beat => {
                beats += 1;
                if beats % of.div_ceil(512) == 0 {
                    ToCoordinator::Totals { number: 1, totals: Box::new(totals.clone()) }
                } else {
                    ToCoordinator::Beat
                }
            }
            ToRank::End => {
                to.shutdown().await.ok()?;
                let _ = from.read(&mut [0; 8]).await;
                return Some(());
            }
            _ => continue,
        };
        frame::write_message(&mut to, &answer).await.ok()?;
    }
}

/// Seconds of processor time of the thread that serves.
fn served() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stat = tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok())
        .find(|stat| stat.contains("(fleet) "))
        .unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn look(of: u32) {
    let mut settings = coordinator_of(of);
    settings.limits.silence = PeerLimits::default().silence;
    let coordinator = Coordinator::listen("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    let address = coordinator.address();
    let mut totals = Totals { started: 1 << 40, ended: 1 << 40, ..Totals::default() };
    let counts: BTreeMap<u16, u64> = (500..700).map(|bucket| (bucket, 123_456)).collect();
    for histogram in [&mut totals.ttft, &mut totals.itl, &mut totals.e2e] {
        *histogram = serde_json::from_value(serde_json::json!({ "counts": counts })).unwrap();
    }
    let ranks = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let all: Vec<_> = (1..of)
                .map(|rank| tokio::spawn(light(address, rank, of, totals.clone())))
                .collect();
            for one in all {
                assert_eq!(one.await.unwrap(), Some(()));
            }
        });
    });
    let begin = now();
    assert_eq!(coordinator.gather(soon() + LONG, |_| true).len(), of as usize - 1);
    let (joined, joining) = (now() - begin, served());
    coordinator.prepare(Order { plan: "x".repeat(20_000), ..run(1) }).unwrap();
    coordinator.wait_ready(soon(), || true);
    let ready = now() - begin - joined;
    let before = now();
    let go = coordinator.announce_start(Nanos::ZERO);
    let states = coordinator.ranks();
    let odd = states.iter().find(|rank| !matches!(rank.phase, RankPhase::Running));
    assert_eq!(go.ranks.len(), of as usize - 1, "{odd:?}");
    let told = now() - before;
    let mut errors: Vec<_> =
        coordinator.ranks().iter().map(|rank| rank.clock.unwrap().error_ns / 1_000).collect();
    errors.sort_unstable();
    let (from, work) = (now(), served());
    pause(Nanos::from_millis(5_000));
    let share = (served() - work) / (now() - from).as_secs() * 100.0;
    println!(
        "{of}: joined {:.0} ms ({:.0} ms of rank 0), ready {:.0} ms, go {:.0} ms, error p50 {} µs, max {} µs, {share:.1} % of a core",
        joined.as_ms(),
        joining * 1e3,
        ready.as_ms(),
        told.as_ms(),
        errors[errors.len() / 2],
        errors[errors.len() - 1]
    );
    coordinator.announce_end();
    ranks.join().unwrap();
}

#[test]
#[ignore = "a measurement"]
fn scale() {
    for of in [10, 100, 1_000, 4_000] {
        look(of);
    }
}
