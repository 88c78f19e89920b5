#!/usr/bin/env bash
# Measures on a GPU within eight minutes, the most important first: each step has its own limit, and writes what it
# measured into one JSON file, so that a limit that strikes costs only its step. Not all fit into one call on a slow
# host: a second one with STEPS measures those that the log calls "no time left".
#
#     bash bench/gpu.sh                                                  # writes gpu.json and gpu.log
#     DEVICE=cpu OUT=gpu-out bash bench/gpu.sh                           # the rehearsal: tiny networks
#     STEPS='speed|busy' bash bench/gpu.sh                               # only the steps whose words have one of these
#     WHEELS=DIR PYTHON=/usr/bin/python3 OUT=gpu-out bash bench/gpu.sh   # first installs the wheels of a folder
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
DEVICE=${DEVICE:-cuda} OUT=${OUT:-.} TOTAL=${TOTAL:-470}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
export PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
unset PYTHONDONTWRITEBYTECODE
mkdir -p "$OUT"
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HYBRID_HOME=$home/home
if [ -n "${WHEELS:-}" ]; then
    "$PYTHON" -m pip install -q --no-index --no-deps --no-compile --target "$home/site" "$WHEELS"/*.whl || exit 2
    export PYTHONPATH=$home/site${PYTHONPATH:+:$PYTHONPATH}
fi
rm -f "$OUT/gpu.json" "$OUT/gpu.log"
tiny=$([ "$DEVICE" = cpu ] && echo --tiny)
missed=0
step() { # SECONDS STEP OPTIONS...
    local limit=$1 begun=$SECONDS left=$((TOTAL - SECONDS)) code
    shift
    [[ "$*" =~ machine|${STEPS:-.} ]] || return 0
    [ "$limit" -le "$left" ] || limit=$left
    [ "$limit" -gt 0 ] || { echo "$*: no time left" | tee -a "$OUT/gpu.log"; missed=1; return; }
    # shellcheck disable=SC2086
    # At its limit a process says where each of its threads stands.
    timeout -s ABRT -k 5 "$limit" "$PYTHON" -X faulthandler -m bench.gpu --json "$OUT/gpu.json" --device "$DEVICE" $tiny "$@" >> "$OUT/gpu.log" 2>&1
    code=$?
    [ "$code" = 0 ] || missed=1
    echo "$*: exit $code after $((SECONDS - begun)) s" | tee -a "$OUT/gpu.log"
}
step 30 machine
step 150 tests
step 110 speed --network depth_anything_v2_large owlv2_base aliked_lightglue
step 110 busy
step 60 study
step 120 speed --network dinov2_base_dense sam2_base_plus depth_anything_v2_small siglip2_base
for dtype in float32 bfloat16; do step 40 speed --network depth_anything_v2_large --dtype $dtype; done
step 60 reduced --network depth_anything_v2_small owlv2_base aliked_lightglue --dtype bfloat16
step 100 speed --network efficientloftr vit_small_forensics clipseg_search
[ "$DEVICE" = cpu ] || step 120 speed --network depth_anything_v2_small --compiled
"$PYTHON" -m bench.gpu --json "$OUT/gpu.json" page
exit $missed
