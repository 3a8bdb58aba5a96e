#!/usr/bin/env bash
# Tries `srun` and `goodput fleet slurm` on the Slurm of setup.sh (SLURM_CONF must name it), and looks at
# what each rank was told.
#
#   SLURM_CONF=/var/lib/goodput-slurm/slurm.conf integrations/slurm/check.sh [GOODPUT]
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
goodput=$(realpath "${1:-$root/target/debug/goodput}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "error: $1" >&2; tail -n 20 "$work"/* >&2; exit 1; }

# srun itself: every task finds its shard and the first node.
timeout 120 srun -n 4 "$goodput" fleet detect | sort >srun.txt
node=$(scontrol show hostnames "$(sinfo -h -o %N)" | head -n 1)
for rank in 0 1 2 3; do echo "$rank/4 by Slurm, rendezvous $node"; done | diff - srun.txt || fail srun

# Stands in for goodput on the nodes: says who it is; rank 2 dies, the others go on.
cat >rank.sh <<RANK
#!/bin/sh
"$goodput" fleet detect >"$work/\$SLURM_PROCID.txt"
echo "\$*" >>"$work/\$SLURM_PROCID.txt"
printf %s "\$GOODPUT_FLEET_TOKEN" | wc -c >>"$work/\$SLURM_PROCID.txt"
printf %s "\$GOODPUT_FLEET_TOKEN" | sha256sum >>"$work/\$SLURM_PROCID.txt"
[ "\$SLURM_PROCID" != 2 ] || kill -9 \$\$
sleep 3
echo "rank \$SLURM_PROCID is done"
exit 4
RANK
chmod +x rank.sh

code=0
GOODPUT_BIN="$work/rank.sh" timeout 120 "$goodput" fleet slurm --ranks 4 --cpus 1 --name check \
    -- run http://127.0.0.1:9 --rate 5 --duration 1s --model "it's \$(x)" >out 2>err || code=$?
# srun gives the highest: 137 of the one that was killed.
[ "$code" = 137 ] || fail "exit code $code"
grep -qx 'rank 0 is done' out || fail "rank 0 was not heard to its end"
for rank in 0 1 2 3; do
    file=$work/$rank.txt
    [ "$(sed -n 1p "$file" | cut -d, -f1,2)" = "$rank/4 by Slurm, rendezvous $node" ] || fail "rank $rank"
    [ "$(sed -n 2p "$file")" = "run http://127.0.0.1:9 --rate 5 --duration 1s --model it's \$(x) --shard auto" ] ||
        fail "words of rank $rank"
    [ "$(sed -n 3p "$file")" = 64 ] || fail "token of rank $rank"
    [ "$rank" = 2 ] || grep -qx "rank $rank is done" check-*-"$rank".out || fail "rank $rank did not go on"
done
[ "$(for rank in 0 1 2 3; do sed -n 4p "$rank.txt"; done | sort -u | wc -l)" = 1 ] || fail "tokens differ"
echo "$(srun --version): four tasks by srun and by sbatch, one of them killed"
