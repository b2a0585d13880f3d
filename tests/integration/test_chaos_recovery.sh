#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# long: some twenty workers follow one another
# make chaos-recovery, for seconds: clients that verify all that they have, beside one that faults in each way, and beside kills,
# stops and crashes of workers, clients and supervisors.
set -eu
program=$BUILD/tests/programs/recovery/recovery
seed=${TEST_SEED:-$(date +%s)}
# What the program finds behind its last line, or a sanitizer does, only its exit status tells.
run() {
    status=0
    "$program" "$@" "$seed" >"$TMPDIR/said" || status=$?
    cat "$TMPDIR/said"
    [ "$status" -eq 0 ] || exit "$status"
}
run sticky 1
[ "$(grep -c 'alone: 1 rounds in .*, and 0 with fewer; named at the first fault 1, at the second 0; interruptions of others 0$' "$TMPDIR/said")" -eq 7 ]
[ "$(grep -c 'all eight in flight: 1 rounds in ' "$TMPDIR/said")" -eq 7 ]
grep -qE '^sticky: 14 rounds of 7 errors; .* [1-9][0-9]* steps verified, ' "$TMPDIR/said"
run kills 20
grep -qE '^kills: 20 rounds, 2 with two at once, [0-9]+ \([0-9]+ %\) with work in flight; .* [1-9][0-9]* steps verified, ' "$TMPDIR/said"
for victim in worker client supervisor; do
    grep -q "^  $victim: .* in all [1-9]" "$TMPDIR/said"
done
run storm 2
[ "$(grep -c '^storm, --offender-wait .* named [1-9][0-9]* times; ' "$TMPDIR/said")" -eq 2 ]
grep -q '^company: isolated after .* and nobody was called guilty$' "$TMPDIR/said"
