"""A Ray cluster of several nodes on one host, as long as a command runs.

    python3 cluster.py NODES CPUS COMMAND [WORD …]

Every node is a raylet of its own with so many processors; RAY_ADDRESS tells the command where the
cluster is. Ends with the command's exit code.
"""
import os
import subprocess
import sys

from ray.cluster_utils import Cluster


def main():
    nodes, cpus, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus})
    try:
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=cpus)
        cluster.wait_for_nodes()
        env = {**os.environ, "RAY_ADDRESS": cluster.address}
        sys.exit(subprocess.run(command, env=env, check=False).returncode)
    finally:
        cluster.shutdown()


main()
