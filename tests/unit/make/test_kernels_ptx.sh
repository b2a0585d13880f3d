#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The PTX of examples, benches, GPU questions and pictures is what nvcc makes of their sources today, but for its .version.
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0 compared=0 skipped=
for source in examples/kernels/*.cu tests/programs/bench/kernels/*.cu tests/programs/gpu/kernels/*.cu tests/programs/pictures/kernels/*.cu; do
    ptx=${source%.cu}.ptx
    [ -f "$ptx" ] || { echo "$source has no PTX"; exit 1; }
    want=$(sed -n 's/^\/\/ \(Cuda compilation tools.*\)/\1/p' "$ptx")
    [ -n "$want" ] || { echo "$ptx does not say which compiler made it"; exit 1; }
    have=$(nvcc --version 2>/dev/null | grep '^Cuda compilation tools')
    if [ "$want" != "$have" ]; then
        skipped="'$want', here is '${have:-no nvcc}'"
        continue
    fi
    tests/programs/corpus/make-ptx --as-is --output "$folder" "$source" || exit 1
    if ! diff <(grep -v '^\.version\|^// SPDX' "$ptx") <(grep -v '^\.version' "$folder/$(basename "$ptx")"); then
        echo "$ptx is not what nvcc makes of $source"
        failed=1
    fi
    compared=$((compared + 1))
done
if [ -n "$skipped" ]; then
    echo "PTX not compared with its source: it was made by $skipped"
    exit 77
fi
[ $compared -ge 9 ] || { echo "only $compared files compared"; exit 1; }
exit $failed
