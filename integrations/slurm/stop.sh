#!/usr/bin/env bash
# Stops the Slurm of setup.sh, cancels what it still runs, and removes its folder.
#
#   sudo integrations/slurm/stop.sh [DIR]
set -euo pipefail

dir=${1:-/var/lib/goodput-slurm}
[ -s "$dir/slurm.conf" ] || { echo "nothing is set up in $dir"; exit 0; }
export SLURM_CONF="$dir/slurm.conf"

timeout 20 scancel --user="$(id -un)" 2>/dev/null || true
for name in slurmd slurmctld munged; do
    [ -s "$dir/$name.pid" ] || continue
    pid=$(cat "$dir/$name.pid")
    # A pid file may be older than the process that has its number now.
    case "$(cat "/proc/$pid/comm" 2>/dev/null || true)" in
        slurmd* | slurmctld* | munged*) kill "$pid" ;;
        *) continue ;;
    esac
    for _ in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
done
rm -rf "$dir"
echo "Slurm is stopped, and $dir removed."
