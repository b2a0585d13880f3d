#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# usage: run-checks.sh [--driver nvidia|softgpu|/path/of/libcuda.so.1] [--results FOLDER] [--budget SECONDS]
#                      [--first | --rest | --only STEP... | --list]
#
# Examines this machine's GPU and gpushare on it, with what lies beside this script alone.
#
# --first   the steps on which the design stands, most load-bearing first, within 540 seconds
# --rest    what is left, without a budget: integration tests, bench rows, other questions; steps that
#           have their verdict in the results folder are not run again
# --only    one step (may be repeated), or those whose names begin so: dropin is each dropin-...
# --list    the steps
# without any of them: --first and then --rest, without a budget
#
# Results are written step by step to FOLDER (default: a new folder gpu-results-DATE-TIME here; for --rest
# and --only the newest of these): STEP.json, STEP.log, results.json and page.md. Nothing else is changed,
# neither on the GPU nor on the machine.
#
# Exit status: 0 all held, passed or was measured; 1 something is false, failed or not met; 3 nothing of
# that, but something is unknown; 4 the same, but something was not run; 2 wrong usage; 5 no driver, or no
# folder for the results.
set -u
here=$(cd "$(dirname "$0")" && pwd)
driver=nvidia list='' words=$#
while [ $words -gt 0 ]; do
    word=$1 words=$((words - 1))
    shift
    case $word in
    --help) sed -n 's/^# \{0,1\}//; 5,27p' "$0"; exit 0 ;;
    --list) list=1 ;;
    --driver)
        [ $words -gt 0 ] || { echo "run-checks.sh: --driver needs a value: nvidia, softgpu or an absolute path" >&2; exit 2; }
        driver=$1 words=$((words - 1))
        shift ;;
    *) set -- "$@" "$word" ;;
    esac
done
needed="$here/lib/needed${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH="$needed"
[ -z "$list" ] || exec "$here/gpu/checks" list

case $driver in
softgpu) library=$here/lib/softgpu/libcuda.so.1 ;;
/*) library=$driver ;;
nvidia)
    library=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | sed -n 's/.*libcuda\.so\.1 .*x86-64.* => //p' | head -n 1)
    for path in /usr/lib/x86_64-linux-gnu/libcuda.so.1 /usr/lib64/libcuda.so.1 /usr/lib/wsl/lib/libcuda.so.1 \
        /usr/local/nvidia/lib64/libcuda.so.1 /usr/local/cuda/compat/libcuda.so.1; do
        [ -n "$library" ] || { [ -e "$path" ] && library=$path; }
    done
    [ -n "$library" ] || { echo "run-checks.sh: no libcuda.so.1 here: install NVIDIA's driver, or name it with --driver" >&2; exit 5; }
    driver=$library ;;
*) echo "run-checks.sh: --driver takes nvidia, softgpu or an absolute path, not '$driver'" >&2; exit 2 ;;
esac
[ -e "$library" ] || { echo "run-checks.sh: there is no $library" >&2; exit 5; }
# Libraries that a driver loads by name lie beside it: its compiler of PTX above all.
LD_LIBRARY_PATH="$needed:$(dirname "$library")"
exec "$here/gpu/checks" run --library "$library" --driver "$driver" "$@"
