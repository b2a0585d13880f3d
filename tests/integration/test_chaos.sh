#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# timed: 300 changes must find launches in flight, within six seconds
# make chaos, for seconds: no launch is lost while shares, modes and configuration change and clients are killed.
set -eu
status=0
"$BUILD/tests/programs/chaos/chaos" 6 300 >"$TMPDIR/said" || status=$?
cat "$TMPDIR/said"
[ "$status" -eq 0 ] || exit "$status" # the server ends behind the last line
grep -qE '^changes: 300 changes of share .*, [1-9][0-9]* launches, none lost$' "$TMPDIR/said"
grep -qE '^disorder: [1-9].*, [1-9][0-9]* launches, none lost$' "$TMPDIR/said"
