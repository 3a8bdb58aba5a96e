#!/usr/bin/env bash
# Makes the pictures of the README and the tutorial: runs goodput against the mock and takes
# screenshots of the reports. Takes about eight minutes. The machine should have nothing else to do.
#
#   docs/images/make.sh [GOODPUT] [PICTURE…]
#
# GOODPUT is the program (target/release/goodput unless given); PICTURE is any of: run, sweep,
# compare, ui (all unless given). Needs chromium (Debian: apt-get install chromium) and python3 with
# Pillow, if it is there, to make the files smaller.
set -euo pipefail

images=$(cd "$(dirname "$0")" && pwd)
goodput=$(realpath "${1:-$images/../../target/release/goodput}")
wanted=${*:2}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
# The web view shows this path.
work=$(mktemp -d /tmp/goodput-XXXX)
pids=()
tidy() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap tidy EXIT
cd "$work"

wants() { [ -z "$wanted" ] || [[ " $wanted " == *" $1 "* ]]; }

# shoot NAME URL HEIGHT [WIDTH]: the upper part of a page.
shoot() {
    "$chromium" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --hide-scrollbars --user-data-dir="$work/browser" --window-size="${4:-1100},$3" \
        --screenshot="$work/$1.png" "$2" 2>/dev/null
    python3 - "$work/$1.png" <<'PY' 2>/dev/null || true
import sys
from PIL import Image
picture = Image.open(sys.argv[1]).convert("RGB").quantize(128)
picture.save(sys.argv[1], optimize=True)
PY
    cp "$work/$1.png" "$images/$1.png"
    echo "docs/images/$1.png" >&2
}

# serve PORT ARGUMENT…: a mock that serves until the end.
serve() {
    "$goodput" mock --listen "127.0.0.1:$1" "${@:2}" >/dev/null 2>&1 &
    pids+=($!)
    for _ in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.1
    done
    echo "error: the mock does not answer at port $1" >&2
    exit 1
}

# Ends with other codes than 0 where a result is suspect, void, or worse: the picture shows it.
measure() { "$goodput" "$@" --quiet || echo "exit code $? of goodput $1" >&2; }

if wants sweep || wants ui; then
    measure sweep mock --out runs/sweep
    wants sweep && shoot sweep "file://$work/runs/sweep/report.html" 1400
fi
if wants run || wants ui; then
    serve 18000 --profile demo
    measure run http://127.0.0.1:18000 --rate 20 --duration 30s --warmup 5s \
        --slo 'p99 ttft < 200ms, errors < 1%' --out runs/run
    wants run && shoot run "file://$work/runs/run/report.html" 1200
fi
if wants compare || wants ui; then
    serve 18001
    serve 18002 --set time_factor=1.1
    measure compare old=http://127.0.0.1:18001 new=http://127.0.0.1:18002 --rate 10 \
        --duration 10s --warmup 3s --blocks 6 --isl 100 --osl 50 --out runs/compare
    wants compare && shoot compare "file://$work/runs/compare/report.html" 1400
fi
if wants ui; then
    "$goodput" ui runs --listen 127.0.0.1:18642 >/dev/null 2>&1 &
    pids+=($!)
    sleep 2
    shoot ui http://127.0.0.1:18642/ 620 1300
fi
