#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The GPU bundle, made as a user makes it and run from another folder, on the software GPU.
set -eu
if grep -qaE '__(asan|tsan|ubsan)_' "$BUILD/bin/gpushared"; then
    echo "a bundle is made of a build without sanitizers"
    exit 77
fi
make/gpu-bundle.sh "$BUILD" "$TMPDIR/bundle"
cd /
env -u BUILD "$TMPDIR/bundle/run-checks.sh" --driver softgpu | tee "$TMPDIR/verdicts"
for part in gpu/question_1 gpu/question_2 gpu/question_4 gpu/question_5 gpu/question_10 corpus examples/vector-add \
    examples/sgemm examples/histogram examples/kmeans examples/nbody examples/mandelbrot integration/test_limits bench; do
    grep -q "^ok     $part " "$TMPDIR/verdicts" || { echo "no verdict for $part"; exit 1; }
done
tail -n 1 "$TMPDIR/verdicts" | grep -qE '^[1-9][0-9]* passed, 0 failed$'
# A broken driver must show as failures, not as silence.
if "$TMPDIR/bundle/run-checks.sh" --driver "$TMPDIR/bundle/lib/libgpushare-client.so.0" --questions-only >"$TMPDIR/broken"; then
    echo "run-checks.sh passed on a library that is no driver"
    exit 1
fi
tail -n 1 "$TMPDIR/broken" | grep -qE '^0 passed, [1-9][0-9]* failed$'
