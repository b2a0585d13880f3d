#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# gpushare-devices with a nvidia-modprobe and a /proc of the test's own: which nodes it has made, in which order, and its
# exit status.
set -u
cd "$(dirname "$0")/../.." || exit 1
script=$PWD/systemd/gpushare-devices.sh
cd "${TMPDIR:?}" || exit 1
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
tools=$TMPDIR/tools
mkdir "$tools"
ln -s "$(command -v sed)" "$tools/sed"
shell=$(command -v sh)

# run PROC: the script with no other program than those in $tools. Leaves $status and the files `calls` and `said`.
run() {
    : >calls
    PATH=$tools CALLS=$TMPDIR/calls "$shell" "$script" "$@" >said 2>&1
    status=$?
}
# calls_are LINE...: nvidia-modprobe was called so, in this order, and in no other way.
calls_are() {
    printf '%s\n' "$@" | diff - calls || fail "nvidia-modprobe was called otherwise"
}
gpu() {
    mkdir -p "$1/driver/nvidia/gpus/$2"
    printf 'Model: \t\t NVIDIA H200\nIRQ:   \t\t 92\nGPU UUID: \t GPU-1\nDevice Minor: \t %s\n' "$3" >"$1/driver/nvidia/gpus/$2/information"
}

# Not installed: nothing is done, and the machine starts.
run "$TMPDIR/none"
[ $status = 0 ] || fail "exit status $status without nvidia-modprobe"
grep -q 'nvidia-modprobe is not installed' said || fail "the missing program is not named: $(<said)"

printf '#!%s\necho "$*" >>"$CALLS"\ncase "$*" in $REFUSE) exit 1 ;; esac\n' "$shell" >"$tools/nvidia-modprobe"
chmod +x "$tools/nvidia-modprobe"
export REFUSE=never

# Two GPUs, the second in two MIG instances.
proc=$TMPDIR/two
gpu "$proc" 0000:01:00.0 0
gpu "$proc" 0000:41:00.0 3
caps=$proc/driver/nvidia/capabilities/gpu3/mig
mkdir -p "$caps/gi1/ci0" "$caps/gi2/ci0"
touch "$caps/gi1/access" "$caps/gi1/ci0/access" "$caps/gi2/access" "$caps/gi2/ci0/access"
run "$proc"
[ $status = 0 ] || fail "exit status $status: $(<said)"
calls_are "-c 0" "-c 3" "-u -c 0" "-f $caps/gi1/access" "-f $caps/gi2/access" "-f $caps/gi1/ci0/access" "-f $caps/gi2/ci0/access"

# A step that fails is named, the others are taken, and the unit shows as failed.
REFUSE='-c 3' run "$proc"
[ $status = 1 ] || fail "exit status $status after a failed step"
grep -qF "'nvidia-modprobe -c 3' failed" said || fail "the failed step is not named: $(<said)"
[ "$(wc -l <calls)" = 7 ] || fail "the steps after a failed one were not taken"

# No GPU that /proc knows: the modules are loaded all the same, since that is what fills /proc.
run "$TMPDIR/empty"
calls_are "-c 0" "-u -c 0"

run one two
[ $status = 2 ] || fail "two arguments were taken"
exit $((failures != 0))
