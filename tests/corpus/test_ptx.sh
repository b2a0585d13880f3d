#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The checked-in PTX is what nvcc makes of the sources today, but for its .version,
# and holds exactly the kernels that the oracle describes.
set -u
cd "$(dirname "$0")" || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

"$BUILD/tests/corpus/corpus" --oracle "$BUILD/tests/corpus/liboracle.so" --list | sort >"$folder/described"
for ptx in *.ptx; do
    sed -n "s/.*\.entry \([A-Za-z0-9_]*\).*/${ptx%.ptx} \1/p" "$ptx"
done | sort >"$folder/compiled"
diff "$folder/described" "$folder/compiled" >"$folder/difference" || {
    cat "$folder/difference"
    echo "kernels described (<) and compiled (>) are not the same: run make corpus-ptx"
    exit 1
}
for source in *.cu; do
    [ -f "${source%.cu}.ptx" ] || { echo "$source has no PTX: run make corpus-ptx"; exit 1; }
done

want=$(sed -n 's/^\/\/ \(Cuda compilation tools.*\)/\1/p' integer.ptx)
have=$(nvcc --version 2>/dev/null | grep '^Cuda compilation tools')
if [ "$want" != "$have" ]; then
    echo "PTX not compared with its source: it was made by '$want', here is '${have:-no nvcc}'"
    exit 77
fi
failed=0
./make-ptx --as-is --output "$folder" *.cu || exit 1
for source in *.cu; do
    name=${source%.cu}
    if ! diff <(grep -v '^\.version\|^// SPDX' "$name.ptx") <(grep -v '^\.version' "$folder/$name.ptx") >"$folder/difference"; then
        head -5 "$folder/difference"
        echo "$name.ptx is not what nvcc makes of $source: run make corpus-ptx"
        failed=1
    fi
done
exit $failed
