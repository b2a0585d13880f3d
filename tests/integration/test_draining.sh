#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# timed: what the integration programs that it runs measure
# The integration programs once more, on a device where each call that may wait for running work does so, and each call
# that takes the context's lock waits as well. In the other runs some of them don't, by seed.
set -u
seed=SOFTGPU_SEED=${SOFTGPU_SEED:-1}
draining="SOFTGPU_STRICT=1 SOFTGPU_DRAIN_PERCENT=100 $seed"
ran=0 failed=""
for program in "$BUILD"/tests/integration/test_*; do
    [ -x "$program" ] || continue
    ran=$((ran + 1))
    case ${program##*/} in
    # If mapping waited for running work, nobody could connect beside these programs' kernels without an end.
    test_quiet | test_endless) device=$draining ;;
    # These say for themselves which calls of the driver wait.
    test_calls | test_shim | test_streams) continue ;;
    # In these no kernel runs that a call could wait for: one stops the worker, the other has no work.
    test_watchdog | test_idle) continue ;;
    *) device="$draining SOFTGPU_LOCKING_DRAINS=1" ;;
    esac
    TEST_SOFTGPU=$device "$program" >"$TMPDIR/said" 2>&1
    status=$?
    if [ $status -ne 0 ] && [ $status -ne 77 ]; then
        cat "$TMPDIR/said"
        failed="$failed ${program##*/} (TEST_SOFTGPU=\"$device\")"
    fi
done
[ $ran -gt 0 ] || failed=" no program was there"
if [ -n "$failed" ]; then
    echo "failed:$failed"
    exit 1
fi
