#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# usage: make/gpu-bundle.sh BUILD BUNDLE [SAMPLES]
#
# Puts the programs, the libraries that they need beyond glibc, the PTX and the tests
# into one folder below 60 MiB. SAMPLES: a folder of CUDA programs, which goes along whole and does not count.
set -eu
build=$1 bundle=$2 samples=${3:-}
limit_kib=61440

rm -rf "$bundle"
mkdir -p "$bundle/lib/softgpu" "$bundle/lib/needed" "$bundle/tests/corpus" "$bundle/tests/integration" "$bundle/gpu" "$bundle/examples/data"
cp -rL "$build/bin" "$build/libexec" "$bundle/"
cp -L "$build/lib/libgpushare-client.so.0" "$bundle/lib/"
cp -L "$build/lib/softgpu/libcuda.so.1" "$bundle/lib/softgpu/"
for example in "$build"/examples/*; do
    [ -f "$example" ] && [ -x "$example" ] && cp "$example" "$bundle/examples/"
done
cp examples/data/*.csv "$bundle/examples/data/"
# What an unmodified CUDA program finds as a client, and the runtime alone for one that runs straight on a driver.
mkdir -p "$bundle/lib/gpushare" "$bundle/lib/runtime" "$bundle/tests/dropin"
cp -rL "$build/lib/gpushare/." "$bundle/lib/gpushare/"
cp -L "$build"/lib/gpushare/libcudart.so.* "$bundle/lib/runtime/"
[ ! -d "$build/examples/unmodified" ] || cp -r "$build/examples/unmodified" "$bundle/examples/"
for program in cudart/program_12 cudart/program_13 dropin/program pace/pace; do
    cp "$build/tests/programs/$program" "$bundle/tests/dropin/"
done
cp tests/programs/gpu/python/*.py "$bundle/tests/dropin/"
cp "$build/tests/programs/gpu/checks" "$bundle/gpu/"
cp "$build/tests/programs/corpus/corpus" "$build/tests/programs/corpus/liboracle.so" tests/corpus/ptx/*.ptx "$bundle/tests/corpus/"
for test in "$build"/tests/integration/test_*; do
    [ -x "$test" ] && cp "$test" "$bundle/tests/integration/"
done
mkdir -p "$bundle/bench"
cp "$build/tests/programs/bench/bench" "$bundle/bench/"
cp tests/programs/gpu/run-checks.sh "$bundle/"

# glibc, the loader and the compiler's own runtimes are the other machine's.
find "$bundle" -type f -perm -u+x ! -name '*.sh' -exec ldd {} + 2>/dev/null |
    sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|libstdc\+\+|libgcc_s)\.so' |
    grep -vE "/(libgpushare-client|libcuda|libcudart)" | while read -r library; do
    cp -L "$library" "$bundle/lib/needed/"
done
find "$bundle" -type f -perm -u+x ! -name '*.sh' -exec strip --strip-debug {} + 2>/dev/null || true

[ -z "$samples" ] || cp -rL "$samples" "$bundle/samples"
size_kib=$(du -sk --exclude=samples "$bundle" | cut -f1)
echo "$bundle: $size_kib KiB"
[ "$size_kib" -lt $limit_kib ] || { echo "gpu-bundle: larger than $limit_kib KiB" >&2; exit 1; }
