"""A wire to another network namespace that is slow, loses packets, and can be cut.

    python3 wire.py NAMESPACE NEAR FAR THERE_MS BACK_MS LOSS

NEAR and FAR are the addresses of both ends (a /30 of their own); packets take THERE_MS to the far end
and BACK_MS from it, and each is lost with the chance LOSS. Prints `up` and goes on until it is ended;
the ends go with it. Needs root. Packets pass through this process, since not every kernel has netem.
"""

import fcntl
import heapq
import os
import random
import selectors
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN_WITHOUT_HEADER = 0x1001
LONGEST = 65_535


def end(name):
    """One end of the wire, for packets as they are."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN_WITHOUT_HEADER))
    return fd


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def main():
    namespace, near_address, far_address = sys.argv[1:4]
    there, back, loss = (float(word) for word in sys.argv[4:7])
    near, far = end("goodput-slow"), end("goodput-end")
    ip("link", "set", "goodput-end", "netns", namespace)
    ip("addr", "add", f"{near_address}/30", "dev", "goodput-slow")
    ip("link", "set", "goodput-slow", "up")
    ip("-n", namespace, "addr", "add", f"{far_address}/30", "dev", "goodput-end")
    ip("-n", namespace, "link", "set", "goodput-end", "up")
    print("up", flush=True)

    chance = random.Random(7)
    on_the_way, number = [], 0
    looks = selectors.DefaultSelector()
    looks.register(near, selectors.EVENT_READ, (far, there / 1e3))
    looks.register(far, selectors.EVENT_READ, (near, back / 1e3))
    while True:
        wait = max(0.0, on_the_way[0][0] - time.monotonic()) if on_the_way else None
        for key, _ in looks.select(wait):
            to, delay = key.data
            packet = os.read(key.fd, LONGEST)
            if chance.random() >= loss:
                number += 1
                heapq.heappush(on_the_way, (time.monotonic() + delay, number, to, packet))
        while on_the_way and on_the_way[0][0] <= time.monotonic():
            _, _, to, packet = heapq.heappop(on_the_way)
            try:
                os.write(to, packet)
            except OSError:
                pass  # A wire that is full, or an end that is down: the packet is lost.


main()
