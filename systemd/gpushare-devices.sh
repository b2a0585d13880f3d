#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# usage: gpushare-devices [PROC]        (PROC: /proc)
#
# Loads NVIDIA's kernel modules and makes the device nodes of every GPU and of every MIG instance. libcuda does so itself
# by a setuid program, which has no effect in gpushared.service: the service has NoNewPrivileges=yes. On a server on which no
# other program has used CUDA since it booted, /dev/nvidia-uvm is then missing and cuInit fails with error 999.
#
# Exit status 0: every step succeeded. 1: a step failed, and the others were taken all the same. 2: wrong usage. Where
# nvidia-modprobe is not installed nothing is done: the nodes are then the concern of udev rules, or there is no GPU.
set -u

[ $# -le 1 ] || { echo "usage: gpushare-devices [PROC]" >&2; exit 2; }
proc=${1:-/proc}
status=0

modprobe() {
    nvidia-modprobe "$@" && return
    echo "gpushare-devices: 'nvidia-modprobe $*' failed; is the NVIDIA kernel driver built for this kernel?" >&2
    status=1
}

if ! command -v nvidia-modprobe >/dev/null; then
    echo "gpushare-devices: nvidia-modprobe is not installed; /dev/nvidia* are left as they are" >&2
    exit 0
fi

# The first call loads the module, after which /proc lists the GPUs and their minor numbers.
modprobe -c 0
for gpu in "$proc"/driver/nvidia/gpus/*/information; do
    [ -r "$gpu" ] || continue
    minor=$(sed -n 's/^Device Minor:[[:space:]]*\([0-9][0-9]*\)$/\1/p' "$gpu")
    case $minor in '' | 0) ;; *) modprobe -c "$minor" ;; esac
done
# Unified memory's module has its own two nodes, and CUDA does not start without them.
modprobe -u -c 0
# A MIG instance is opened through a node of its own, below /dev/nvidia-caps.
for access in "$proc"/driver/nvidia/capabilities/gpu*/mig/gi*/access "$proc"/driver/nvidia/capabilities/gpu*/mig/gi*/ci*/access; do
    [ -e "$access" ] && modprobe -f "$access"
done
exit $status
