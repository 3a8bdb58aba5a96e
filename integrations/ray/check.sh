#!/usr/bin/env bash
# Runs the driver of `goodput fleet ray` on a real Ray cluster of four nodes on this host, and looks at
# what each rank was told. Needs Python with venv and the package index.
#
#   integrations/ray/check.sh [GOODPUT]     the program [default: target/debug/goodput]
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
goodput=$(realpath "${1:-$root/target/debug/goodput}")
venv=${VENV:-/tmp/goodput-ray-venv}
if ! "$venv/bin/python" -c 'import ray' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet ray
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Stands in for goodput on the nodes: says who it is, and rank 2 dies.
cat >"$work/rank.sh" <<RANK
#!/bin/sh
"$goodput" fleet detect >"$work/\$GOODPUT_RAY_RANK.txt"
echo "\$*" >>"$work/\$GOODPUT_RAY_RANK.txt"
printf %s "\$GOODPUT_FLEET_TOKEN" | wc -c >>"$work/\$GOODPUT_RAY_RANK.txt"
printf %s "\$GOODPUT_FLEET_TOKEN" | sha256sum >>"$work/\$GOODPUT_RAY_RANK.txt"
[ "\$GOODPUT_RAY_RANK" != 2 ] || kill -9 \$\$
echo "rank \$GOODPUT_RAY_RANK speaks"
RANK
chmod +x "$work/rank.sh"

code=0
GOODPUT_BIN="$work/rank.sh" timeout 300 "$venv/bin/python" "$root/integrations/ray/cluster.py" 4 1 \
    "$goodput" fleet ray --python "$venv/bin/python" --ranks 4 --cpus 1 --strict-spread \
    -- run http://127.0.0.1:9 --rate 5 --duration 1s --model "it's \$(x)" \
    >"$work/out" 2>"$work/err" || code=$?

fail() { echo "error: $1" >&2; cat "$work"/*.txt "$work/out" "$work/err" >&2; exit 1; }
[ "$code" = 1 ] || fail "exit code $code where a rank was lost"
grep -qx 'rank 0 speaks' "$work/out" || fail "rank 0 was not heard"
grep -q '4 ranks on 4 nodes' "$work/err" || fail "the ranks were not spread"
grep -qx 'rank 2 ended with 137' "$work/err" || fail "the rank that died was not named"
for rank in 0 1 2 3; do
    file=$work/$rank.txt
    [ "$(sed -n 1p "$file" | cut -d' ' -f1-3)" = "$rank/4 by Ray," ] || fail "rank $rank"
    [ "$(sed -n 2p "$file")" = "run http://127.0.0.1:9 --rate 5 --duration 1s --model it's \$(x) --shard auto" ] ||
        fail "words of rank $rank"
    [ "$(sed -n 3p "$file")" = 64 ] || fail "token of rank $rank"
done
[ "$(for rank in 0 1 2 3; do sed -n '1s/.*rendezvous//p' "$work/$rank.txt"; done | sort -u | wc -l)" = 1 ] ||
    fail "they do not meet in one place"
[ "$(for rank in 0 1 2 3; do sed -n 4p "$work/$rank.txt"; done | sort -u | wc -l)" = 1 ] ||
    fail "they have different tokens"

# The real thing: three ranks, one result. It ends with rank 0's exit code. The driver alone has the plan.
cd "$work"
"$goodput" mock --listen 127.0.0.1:8490 >mock.log 2>&1 &
mock=$!
trap 'kill "$mock" 2>/dev/null; rm -rf "$work"' EXIT
sed 's|llm.default:8000|127.0.0.1:8490|; s|"5m"|"10s"|; s|"30s"|"0s"|; s|800/s|20/s|' \
    "$root/integrations/kubernetes/plan.toml" >plan.toml
"$goodput" fleet ray --program "$goodput" --ranks 3 --cpus 1 --strict-spread --plan plan.toml --dry-run \
    -- run --out "$work/run" >driver.py
rm plan.toml
code=0
timeout 300 "$venv/bin/python" "$root/integrations/ray/cluster.py" 3 1 "$venv/bin/python" driver.py >out 2>err ||
    code=$?
[ "$code" = 0 ] || fail "a fleet of three by Ray ended with $code"
python3 "$root/integrations/fleet/look.py" clients run/summary.json there=3 late_ms=50 || fail "clients under Ray"

echo "Ray $("$venv/bin/python" -c 'import ray; print(ray.__version__)'): four ranks on four nodes, one of them killed; a run of three, merged"
