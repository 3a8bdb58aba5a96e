#!/usr/bin/env bash
# Checks the manifests of `goodput fleet kubernetes` against the schemas that Kubernetes publishes,
# and that no word of a user can break out of its place. Needs Python with venv and the package index;
# no cluster.
#
#   integrations/kubernetes/validate.sh [GOODPUT]       the program [default: target/debug/goodput]
#   VERSIONS="1.29.0 1.33.0" integrations/kubernetes/validate.sh
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
goodput=${1:-$root/target/debug/goodput}
venv=${VENV:-/tmp/goodput-kubernetes-venv}
here=$root/integrations/kubernetes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ ! -x "$venv/bin/kubernetes-validate" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet kubernetes-validate pyyaml
fi
schemas=$(echo "$venv"/lib/python3*/site-packages/kubernetes_validate/kubernetes-json-schema)
# Where a pod that fails may leave the others alone (backoffLimitPerIndex): 1.29 and later.
versions=${VERSIONS:-$(find "$schemas" -maxdepth 2 -name 'v1.*-strict' -printf '%f\n' |
    sed 's/^v//; s/-local-strict$//' | sort -Vu | awk -F. '$2 >= 29')}

render() { "$goodput" fleet kubernetes --ranks 8 --image registry.example/goodput:0.1 --dry-run "$@"; }
cd "$here"
render --name load --namespace bench --create-namespace --claim results \
    --api-key-secret llm/key --plan plan.toml >"$work/plan.yaml"
diff -u example.yaml "$work/plan.yaml" || { echo "error: example.yaml is old" >&2; exit 1; }
render -- sweep https://llm.example/v1 --slo interactive >"$work/sweep.yaml"
render --strict-spread --token-secret mine -- run http://h --rate 5 \
    --model $'a": [\n  - {}: $(HOME) $$ \t\'\u00e9\u2028\U0001f600 # |' \
    --extra-body $'{"x": "\\u0007%s\\n...\\n---\\n"}' >"$work/hostile.yaml"

# What was typed comes back, by a parser of somebody else.
"$venv/bin/python" - "$work/hostile.yaml" <<'PYTHON'
import sys

import yaml

documents = list(yaml.safe_load_all(open(sys.argv[1])))
assert [d["kind"] for d in documents] == ["Service", "NetworkPolicy", "Job"], documents
args = documents[2]["spec"]["template"]["spec"]["containers"][0]["args"]
args = [word.replace("$$", "$") for word in args]
expected = ["run", "http://h", "--rate", "5",
            "--model", "a\": [\n  - {}: $(HOME) $$ \t'\u00e9\u2028\U0001f600 # |",
            "--extra-body", '{"x": "\\u0007%s\\n...\\n---\\n"}', "--shard", "auto"]
assert args == expected, args
print("hostile words come back as they were typed")
PYTHON

for version in $versions; do
    for file in "$work"/*.yaml; do
        "$venv/bin/kubernetes-validate" --strict --quiet -k "$version" "$file"
    done
    echo "valid against the schemas of Kubernetes $version"
done
