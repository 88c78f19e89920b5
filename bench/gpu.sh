#!/usr/bin/env bash
# Measures on a GPU within eight minutes, the most important first: each step has its own limit, and writes what it
# measured into one JSON file, so that a limit that strikes costs only its step.
#
#     bash bench/gpu.sh                                                  # writes gpu.json and gpu.log
#     DEVICE=cpu OUT=gpu-out bash bench/gpu.sh                           # the rehearsal: tiny networks
#     TESTS= bash bench/gpu.sh                                           # without the tests
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
    [ "$limit" -le "$left" ] || limit=$left
    [ "$limit" -gt 0 ] || { echo "$*: no time left" | tee -a "$OUT/gpu.log"; missed=1; return; }
    # shellcheck disable=SC2086
    timeout -k 5 "$limit" "$PYTHON" -m bench.gpu --json "$OUT/gpu.json" --device "$DEVICE" $tiny "$@" >> "$OUT/gpu.log" 2>&1
    code=$?
    [ "$code" = 0 ] || missed=1
    echo "$*: exit $code after $((SECONDS - begun)) s" | tee -a "$OUT/gpu.log"
}
step 30 machine
[ -n "${TESTS-yes}" ] && step 150 tests
for network in depth_anything_v2_large aliked_lightglue owlv2_base; do step 40 speed --network $network; done
step 110 busy
step 80 study
for network in dinov2_base_dense sam2_base_plus depth_anything_v2_small; do step 40 speed --network $network; done
for dtype in float32 bfloat16; do step 40 speed --network depth_anything_v2_large --dtype $dtype; done
for network in aliked_lightglue depth_anything_v2_small; do step 40 reduced --network $network --dtype bfloat16; done
[ "$DEVICE" = cpu ] || step 60 speed --network depth_anything_v2_small --compiled
for network in siglip2_base efficientloftr vit_small_forensics clipseg_search; do step 40 speed --network $network; done
"$PYTHON" -m bench.gpu --json "$OUT/gpu.json" page
exit $missed
