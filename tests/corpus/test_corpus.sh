#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# Every corpus kernel on the software GPU against the same source on the host, and
# proof that the comparison can fail.
set -u
cd "$(dirname "$0")" || exit 1
corpus=$BUILD/tests/programs/corpus
driver=${CORPUS_DRIVER:-$BUILD/lib/softgpu/libcuda.so.1}
run() { "$corpus/corpus" --oracle "$corpus/liboracle.so" --quiet "$@"; }

self=$(run --self) || { echo "$self"; echo "the oracle's results depend on the order of threads"; exit 1; }

report=$(run --driver "$driver" --ptx ptx)
status=$?
echo "$report"
passed=$(echo "$report" | sed -n 's/^\([0-9]*\) passed, .*/\1/p')
[ "$status" -eq 0 ] || exit 1
[ "${passed:-0}" -ge 150 ] || { echo "only ${passed:-0} kernels ran, 150 must"; exit 1; }

# A single wrong instruction must be seen.
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
for change in 'integer|add\.s64|sub.s64|integer_limbs' 'float|add\.rz\.f32|add.rn.f32|float_rounding_sum' \
              'warp|shfl\.sync\.up|shfl.sync.down|warp_scan' 'diverge|xor\.b32|or.b32|diverge_if_else'; do
    IFS='|' read -r module from to kernel <<<"$change"
    sed "s/$from/$to/" "ptx/$module.ptx" >"$folder/$module.ptx"
    cmp -s "ptx/$module.ptx" "$folder/$module.ptx" && { echo "$module.ptx has no $from"; exit 1; }
    if run --driver "$driver" --ptx "$folder" --match "$kernel" >"$folder/report"; then
        echo "$module.ptx with $to for $from passes: $(tail -1 "$folder/report")"
        exit 1
    fi
done
