#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The demo does what README says of it: six clients and a seventh, two of them meant to fail, nothing left behind.
set -eu
# The demo makes its folder where every user's demo does; count what is there before and after.
export TMPDIR="$TMPDIR/demo"
mkdir "$TMPDIR"
examples/demo.py --build "$BUILD" | tee "$TMPDIR.out"
for line in '^vector-add +[0-9]+ sums verified' '^sgemm .*verified' '^kmeans .*verified' '^mandelbrot .*verified' \
    '^greedy +refused: out of memory' '^doomed +killed after round' 'steps of .* days verified' '^Everything was verified'; do
    grep -qE "$line" "$TMPDIR.out" || { echo "the demo did not print: $line"; exit 1; }
done
[ -z "$(ls -A "$TMPDIR")" ] || { echo "left behind:"; ls -A "$TMPDIR"; exit 1; }
