# Written by goodput: one process on each of several nodes of a Ray cluster, all with the same words.
# Start it on a machine of the cluster; GOODPUT_BIN names another program to start on the nodes.
import collections
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ASKED = json.loads(r"""@ASKED@""")
TAIL = 40  # lines that are kept of what ranks other than 0 print


@ray.remote(max_restarts=0, max_task_retries=0)
class Rank:
    def __init__(self, rank, asked):
        self.rank, self.asked, self.child = rank, asked, None

    def place(self):
        """This node, its address, and a port that is free there."""
        port = self.asked["port"]
        if port is None:
            with socket.socket() as free:
                free.bind(("", 0))
                port = free.getsockname()[1]
        node = ray.get_runtime_context().get_node_id()
        return node, ray.util.get_node_ip_address(), port

    # Keys come as arguments of a call, which go straight from the driver to this process: what is
    # set when an actor is made, or in its runtime environment, Ray keeps and logs.
    def lines(self, program, rendezvous, keys, folder):
        """Runs it: of rank 0 its lines as they come, of others the last ones; then the exit code."""
        own = {
            "GOODPUT_RAY_RANK": str(self.rank),
            "GOODPUT_RAY_SIZE": str(self.asked["ranks"]),
            "GOODPUT_RENDEZVOUS": rendezvous,
        }
        words, plan = self.asked["words"], self.asked["plan"]
        with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
            if plan is not None:
                file.write(plan)
                file.flush()
                words = [*words, "--plan", file.name]
            self.child = subprocess.Popen(
                [program, *words],
                cwd=folder if os.path.isdir(folder) else tempfile.gettempdir(),
                env={**os.environ, **keys, **own},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                errors="replace",
            )
            lines = self.child.stdout
            # Not `yield from`: Ray sends values to generators, which a file does not take.
            for line in lines if self.rank == 0 else collections.deque(lines, TAIL):
                yield line
            yield self.child.wait()

    def stop(self, number):
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(number)


def collect(stream, rank):
    """Prints what a rank prints; its exit code, 255 where it was lost."""
    kept, code = [], 255
    try:
        for ref in stream:
            said = ray.get(ref)
            if isinstance(said, int):
                code = said if said >= 0 else 128 - said
            elif rank == 0:
                print(said, end="", flush=True)
            else:
                kept.append(said)
    except ray.exceptions.RayError as lost:
        kept.append(f"{type(lost).__name__}: {str(lost).strip().splitlines()[-1:]}\n")
    if code:
        print(f"rank {rank} ended with {code}\n{''.join(kept)}", end="", file=sys.stderr, flush=True)
    return code


def main():
    ray.init(address=ASKED["address"], log_to_driver=False)
    ranks, strategy = ASKED["ranks"], ASKED["strategy"]
    group = placement_group([{"CPU": ASKED["cpus"]}] * ranks, strategy=strategy)
    if not group.wait(120):
        sys.exit(f"error: no room for {ranks} ranks of {ASKED['cpus']} processors ({strategy})")
    actors = [
        Rank.options(
            num_cpus=ASKED["cpus"],
            max_concurrency=2,
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, bundle),
        ).remote(bundle, ASKED)
        for bundle in range(ranks)
    ]
    places = ray.get([actor.place.remote() for actor in actors])
    _, host, port = places[0]
    rendezvous = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    spread = f"{ranks} ranks on {len({place[0] for place in places})} nodes"
    print(f"{spread}, rank 0 at {rendezvous}", file=sys.stderr, flush=True)
    keys = {name: os.environ[name] for name in ASKED["keys"] if name in os.environ}
    keys.setdefault("GOODPUT_FLEET_TOKEN", secrets.token_hex(32))

    def pass_on(number, _frame):
        for actor in actors:
            actor.stop.remote(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    call = (os.environ.get("GOODPUT_BIN", ASKED["program"]), rendezvous, keys, os.getcwd())
    streams = [actor.lines.options(num_returns="streaming").remote(*call) for actor in actors]
    codes = [collect(stream, rank) for rank, stream in enumerate(streams)]
    ray.shutdown()
    # Rank 0 has the whole; where it is content, 1 says that another was lost.
    sys.exit(codes[0] or int(any(codes)))


main()
