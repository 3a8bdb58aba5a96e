//! Networks and servers that go away in the middle of a run and come back.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use goodput_clock::pause;
use rustix::process::Signal;

use super::new_case;
use super::peer::Engine;
use super::{
    MEASURED, SHORT, check_tool, error_classes, number_at, read_summary, start_with_wrapper,
};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, EndedProcess, ScratchFolder, seconds_to_nanos};

/// Two namespaces and a link; what happens to the link is in `$FATE`. The server is in the other
/// namespace, so that only the link is between it and the client.
const LINKED: &str = r#"
unshare -n sleep 30 & peer=$!
n=0; until [ "$(readlink /proc/$peer/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do
  n=$((n+1)); [ $n -lt 500 ] || exit 90; sleep 0.01; done
ip link add va type veth peer name vb && ip link set vb netns $peer || exit 91
ip addr add 10.77.0.1/24 dev va && ip link set va up || exit 92
nsenter -t $peer -n sh -c 'ip addr add 10.77.0.2/24 dev vb && ip link set vb up' || exit 93
nsenter -t $peer -n "$0" mock --listen 10.77.0.2:8000 --ttft 5ms --itl 1ms 2>mock.err & mock=$!
n=0; until grep -q http mock.err; do n=$((n+1)); [ $n -lt 500 ] || exit 94; sleep 0.01; done
sh -c "$FATE" & fate=$!
"$0" "$@"; code=$?
kill $mock $peer $fate 2>/dev/null
exit $code
"#;

/// A name, what happens to the link, the exit codes, and how many of 120 must be good at least and
/// at most.
const LINKS: [(&str, &str, &[i32], f64, f64); 3] = [
    // A packet that is lost is sent again within the limit of 2 s; what is due meanwhile has no way.
    (
        "link down for 0.5 s",
        "sleep 1.5; ip link set va down; sleep 0.5; ip link set va up",
        &MEASURED,
        60.0,
        119.0,
    ),
    ("link down for good", "sleep 1.5; ip link set va down", &[5], 20.0, 70.0),
    ("link loses half", "sleep 1; tc qdisc add dev va root netem loss 50%", &[0, 5], 40.0, 120.0),
];

pub(super) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (name, fate, codes, least, most) in LINKS {
        let expected = CaseBounds::exit(codes).within(12.0, 160.0);
        all.push(new_case("network", name, expected, move |goodput| {
            run_over_bad_link(goodput, fate, least, most)
        }));
    }
    let measured = CaseBounds::exit(&MEASURED).within(10.0, 160.0);
    all.push(new_case("network", "server killed and back", measured, restart_server));
    let void = CaseBounds::exit(&[5]).within(10.0, 160.0);
    all.push(new_case("network", "server killed for good", void, kill_server));
    let nothing = CaseBounds::exit(&[3]).within(8.0, 160.0);
    all.push(new_case("network", "backlog full", nothing, fill_backlog));
    let refused = CaseBounds::exit(&[3]).within(6.0, 160.0);
    all.push(new_case("network", "refused from the first", refused, |goodput| {
        let scratch = ScratchFolder::new()?;
        let words = ["run", "http://127.0.0.1:1", "--rate", "20", "--duration", "1s"];
        let ended = goodput.run(scratch.path(), &[&words[..], &SHORT].concat(), 15.0)?;
        Ok(Observed::from_process(&ended))
    }));
    all
}

/// The load: 40 a second for 3 s, each with 2 s at most.
const LOAD: [&str; 8] = ["--rate", "40", "--duration", "3s", "--timeout", "2s", "--json", "--out"];

/// 120 requests, each of them counted once, good or failed for a reason that the network gives.
fn judge_run(ended: &EndedProcess, allowed: &[&str]) -> Result<(Observed, f64), Skip> {
    let found = read_summary(ended)?;
    let mut observed = Observed::from_process(ended);
    observed.classes = error_classes(&found).into_iter().collect();
    let (ok, failed) = (number_at(&found, "/requests/ok"), number_at(&found, "/requests/failed"));
    observed.check(ok + failed == 120.0, || format!("{ok} good and {failed} failed of 120"));
    let odd: Vec<String> = error_classes(&found)
        .into_iter()
        .filter(|class| !allowed.contains(&class.as_str()))
        .collect();
    observed.check(odd.is_empty(), || format!("failures of {odd:?}, allowed {allowed:?}"));
    observed.check(failed == 0.0 || found["verdict"] != "valid" || failed <= 1.2, || {
        format!("{failed} failed, and the verdict is valid")
    });
    observed.note = format!(" {ok} of 120 good");
    Ok((observed, ok))
}

fn run_over_bad_link(
    goodput: &Binary,
    fate: &str,
    least: f64,
    most: f64,
) -> Result<Observed, Skip> {
    check_tool("unshare", &["-n", "sh", "-c", "ip link add va type veth peer name vb"])?;
    if fate.contains("netem") {
        let probe =
            "ip link add va type veth peer name vb && tc qdisc add dev va root netem loss 1%";
        check_tool("unshare", &["-n", "sh", "-c", probe])?;
    }
    let scratch = ScratchFolder::new()?;
    let fate = format!("FATE={fate}");
    let wrapper = ["env", &fate, "unshare", "-n", "sh", "-c", LINKED];
    let words = [&["run", "http://10.77.0.2:8000"], &LOAD[..], &["run"], &SHORT].concat();
    let ended = start_with_wrapper(goodput, scratch.path(), &wrapper, &words)?.wait(25.0)?;
    let (mut observed, ok) = judge_run(&ended, &["connect", "timeout", "cut", "closed"])?;
    observed
        .check((least..=most).contains(&ok), || format!("{ok} good, expected {least} to {most}"));
    Ok(observed)
}

/// The process is killed after a second and a new one has its port half a second later.
fn restart_server(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    let (url, address) = (engine.url(), engine.address.clone());
    let words = [&["run", &url], &LOAD[..], &["run"], &SHORT].concat();
    let running = goodput.start(scratch.path(), "run", &words)?;
    engine.wait_for(40, 20.0)?;
    engine.process.stop(Signal::KILL, 5.0)?;
    pause(seconds_to_nanos(0.5));
    let again = Engine::start_on(goodput, scratch.path(), &address, &[])?;
    let ended = running.wait(20.0)?;
    let (mut observed, ok) = judge_run(&ended, &["connect", "closed", "cut"])?;
    observed.check(observed.classes.contains("connect"), || "nothing was refused".to_owned());
    observed.check((70.0..115.0).contains(&ok), || format!("{ok} good, about 99 expected"));
    let later = again.requests()?;
    observed.check(later >= 20, || format!("only {later} requests came to the second server"));
    Ok(observed)
}

fn kill_server(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    let url = engine.url();
    let words = [&["run", &url], &LOAD[..], &["run"], &SHORT].concat();
    let running = goodput.start(scratch.path(), "run", &words)?;
    engine.wait_for(40, 20.0)?;
    engine.process.stop(Signal::KILL, 5.0)?;
    let (observed, _) = judge_run(&running.wait(20.0)?, &["connect", "closed", "cut"])?;
    Ok(observed)
}

/// A listener that never accepts, and whose queue is full: connections do not open.
fn fill_backlog(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        waiting.push(stream);
        if waiting.len() > 10_000 {
            return Err(Skip::Unavailable("the queue of a listener does not fill".to_owned()));
        }
    }
    let url = format!("http://{address}");
    let words = ["run", &url, "--rate", "20", "--duration", "1s", "--timeout", "1s", "--no-probe"];
    let ended = goodput.run(scratch.path(), &[&words[..], &SHORT].concat(), 20.0)?;
    let mut observed = Observed::from_process(&ended);
    let is_said = ended.stderr.contains("does not accept connections");
    observed.check(is_said, || format!("no reason is given: {}", ended.stderr));
    observed.note = format!(" {} connections waited", waiting.len());
    Ok(observed)
}
