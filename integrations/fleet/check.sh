#!/usr/bin/env bash
# Fleets of real processes against one simulated engine: under a real srun, with a rank that is killed,
# one that is cut off, one whose clocks are off, one with another token; and a sweep.
#
#   SLURM_CONF=/var/lib/goodput-slurm/slurm.conf integrations/fleet/check.sh [GOODPUT]
#
# Needs root (network and time namespaces), and the Slurm of integrations/slurm/setup.sh.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
goodput=$(realpath "${1:-$root/target/debug/goodput}")
look() { python3 "$root/integrations/fleet/look.py" "$@"; }
work=$(mktemp -d)
pids=()
tidy() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    ip netns del goodput-far 2>/dev/null || true
    ip link del goodput-near 2>/dev/null || true
    rm -rf "$work"
}
trap tidy EXIT
cd "$work"
fail() { echo "error: $1" >&2; tail -n 30 "$work"/*.log >&2; exit 1; }
say() { echo "fleet: $1"; }

unset "${!SLURM_PROCID@}" GOODPUT_RENDEZVOUS 2>/dev/null || true
GOODPUT_FLEET_TOKEN=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
export GOODPUT_FLEET_TOKEN
"$goodput" mock --listen 0.0.0.0:8480 >mock.log 2>&1 &
pids+=($!)
for _ in $(seq 50); do grep -q ' on http' mock.log && break; sleep 0.1; done
load=(--rate 40 --duration 20s --seed 7 --no-length-check)

# One client, for comparison: every instant and every prompt of four must be among its own.
"$goodput" run http://127.0.0.1:8480 "${load[@]}" --out one --quiet >one.log 2>&1 || true

# Four tasks of a real srun.
timeout 180 srun -n 4 --kill-on-bad-exit=0 --wait=0 "$goodput" run http://127.0.0.1:8480 "${load[@]}" \
    --shard auto --out srun --quiet >srun.log 2>&1 || true
for folder in one srun srun/shards/000{0,1,2,3}; do
    "$goodput" report "$folder" --format csv --output "$(echo "$folder" | tr / -).csv" || fail "csv of $folder"
done
look same one.csv srun.csv || fail "four ranks did not send what one sends"
look union srun.csv srun-shards-000{0,1,2,3}.csv || fail "the merge is not the union of its parts"
look percentiles srun/summary.json srun-shards-000{0,1,2,3}.csv || fail "percentiles are not those of all samples"
look clients srun/summary.json there=4 late_ms=50 || fail "clients under srun"
look poisson srun/summary.json || fail "arrivals are not Poisson"
say "$(srun --version): 4 ranks sent what one sends, merged exactly"

# The same by the launcher: sbatch, followed to its end.
timeout 180 "$goodput" fleet slurm --ranks 3 --cpus 1 --name load -- run http://127.0.0.1:8480 "${load[@]}" \
    --out sbatch >sbatch.log 2>&1 || fail "goodput fleet slurm ended with $?"
"$goodput" report sbatch --format csv --output sbatch.csv || fail "csv of sbatch"
look same one.csv sbatch.csv || fail "three ranks of a job did not send what one sends"
look clients sbatch/summary.json there=3 late_ms=50 || fail "clients under sbatch"
say "goodput fleet slurm: 3 ranks by sbatch, merged"

# A fleet by hand: words for all, then how each rank is started.
fleet() {
    local name=$1 ranks=$2 at=$3 k
    shift 3
    for k in $(seq $((ranks - 1)) -1 0); do
        "start_$name" "$k" "$goodput" run "http://${at%:*}:8480" "${load[@]}" --shard "$k/$ranks" --rendezvous "$at" \
            --join-within 15s --out "$name" --quiet "$@" >"$name-$k.log" 2>&1 &
        pids+=($!)
        eval "${name}_$k=$!"
    done
}
ended() { code=0; wait "$1" 2>/dev/null || code=$?; }

# A rank that is killed in mid-run: the others go on, and what it measured is not lost.
start_killed() { shift; exec "$@"; }
fleet killed 4 127.0.0.1:8481
sleep 9
kill -9 "$killed_2"
ended "$killed_0"
[ "$code" = 5 ] || fail "a fleet that lost a rank ended with $code"
look clients killed/summary.json there=4 cut=2 verdict=void || fail "the killed rank is not named"
say "rank 2 of 4 killed: named, its record merged up to there, void"

# One with another token, which is refused, and never there.
start_token() { local k=$1; shift; [ "$k" != 1 ] || export GOODPUT_FLEET_TOKEN=AnotherTokenOfSomeLength; exec "$@"; }
fleet token 3 127.0.0.1:8482
ended "$token_1"
[ "$code" = 2 ] || fail "a wrong token ended with $code"
grep -qi token token-1.log || fail "a wrong token is not called so"
ended "$token_0"
[ "$code" = 5 ] || fail "a fleet without one of three ended with $code"
look clients token/summary.json there=2 missing=1 verdict=void || fail "the rank with another token"
say "a wrong token is refused, and its rank is missing"

# Clocks: a monotonic clock 3 s ahead, by a namespace. (A wall clock that is off is tried in the tests: no
# namespace has one, and libfaketime does not reach a program that asks the kernel itself.)
start_clock() { local k=$1; shift; if [ "$k" = 1 ]; then exec unshare --time --monotonic 3 --boottime 3 "$@"; fi; exec "$@"; }
fleet clock 3 127.0.0.1:8483
ended "$clock_0"
look clients clock/summary.json there=3 late_ms=50 offset_s=1:3 || fail "a clock that is off (exit $code)"
say "a clock 3 s off: all begin together"

# A rank far away: 5 ms there, 45 ms back, one packet in a hundred lost. All clocks here are one clock, so
# that the true offset is 0, and the stated error must hold it.
ip netns add goodput-far
ip netns exec goodput-far ip link set lo up
python3 "$root/integrations/fleet/wire.py" goodput-far 10.213.8.1 10.213.8.2 5 45 0.01 >wire.log 2>&1 &
wire=$!
pids+=("$wire")
for _ in $(seq 50); do grep -q up wire.log && break; sleep 0.1; done
start_slow() { local k=$1; shift; if [ "$k" = 1 ]; then exec ip netns exec goodput-far "$@"; fi; exec "$@"; }
fleet slow 3 10.213.8.1:8486
ended "$slow_0"
look clients slow/summary.json there=3 late_ms=50 held_ms=1:25 || fail "a rank far away (exit $code)"
"$goodput" report slow --format csv --output slow.csv || fail "csv of slow"
look same one.csv slow.csv || fail "ranks near and far did not send what one sends"
look slower slow/shards/000{0,1}/summary.json || fail "the way is not in the figures of the far rank"
say "a rank 50 ms away, 1 % of packets lost: all begin together, nothing is lost"
kill "$wire"

# A rank behind a network that goes away.
ip link add goodput-near type veth peer name far netns goodput-far
ip addr add 10.213.7.1/24 dev goodput-near
ip link set goodput-near up
ip netns exec goodput-far ip addr add 10.213.7.2/24 dev far
ip netns exec goodput-far ip link set far up
start_cut() { local k=$1; shift; if [ "$k" = 1 ]; then exec ip netns exec goodput-far "$@"; fi; exec "$@"; }
fleet cut 3 10.213.7.1:8484 --timeout 5s --drain 5s
sleep 11
ip link set goodput-near down
ended "$cut_1"
far=$code
ended "$cut_0"
[ "$code" = 5 ] || fail "a fleet with a rank cut off ended with $code"
look clients cut/summary.json there=3 sick=1 verdict=void || fail "the rank that was cut off is not named"
say "rank 1 cut off from server and rank 0: rank 0 ended with $code, rank 1 with $far; named, void"

# A rank that does not see the disk of rank 0 hands its files over.
start_disk() {
    local k=$1
    shift
    [ "$k" = 1 ] || exec "$@" --save-text
    # shellcheck disable=SC2016
    exec unshare --mount sh -c 'mount -t tmpfs tmpfs "$0" && cd "$0" && exec "$@" --save-text' "$work" "$@"
}
fleet disk 2 127.0.0.1:8487
ended "$disk_0"
look clients disk/summary.json there=2 late_ms=50 || fail "a rank with a disk of its own (exit $code)"
"$goodput" report disk --format csv --output disk.csv || fail "csv of disk"
look same one.csv disk.csv || fail "what was handed over is not what one sends"
[ "$(wc -l <disk/text.jsonl)" = "$(($(wc -l <disk.csv) - 1))" ] || fail "not all texts were handed over"
say "a rank on a disk of its own: all records and texts handed over"

# A sweep: rank 0 decides, all send.
start_sweep() {
    local k=$1
    shift
    exec "$goodput" sweep http://127.0.0.1:8480 --rates 20,40 --slo 'ttft < 500ms' --quick --no-length-check --shard "$k/2" \
        --rendezvous 127.0.0.1:8485 --out sweep --quiet
}
fleet sweep 2 127.0.0.1:8485
ended "$sweep_1"
other=$code
ended "$sweep_0"
[ "$other" = 0 ] || fail "rank 1 of a sweep ended with $other"
look sweep sweep 2 || fail "the points of a sweep (exit $code)"
say "a sweep of two ranks: exit $code"
