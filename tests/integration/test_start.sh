#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# How the server starts, refuses to start, and what is left when it is killed.
set -eu

folder=$(mktemp -d)
server=
cleanup() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT

fail() {
    echo "FAILED: $*"
    sed 's/^/  log: /' "$folder/log" 2>/dev/null || true
    exit 1
}

# Waits up to ten seconds for a command to succeed.
wait_for() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || fail "this did not come true: $*"
        sleep 0.05
    done
}

# Without the caller's variables of gpushare, and on the device that tests/run has chosen.
# shellcheck disable=SC2046 # one word a variable
unset $(env | sed -n 's/^\(\(GPUSHARE\|CUDA\|LISTEN\|NOTIFY\)_[A-Z_]*\)=.*/\1/p')

run() {
    "$BUILD/bin/gpushared" --socket "$folder/s" --admin-socket "$folder/a" "$@"
}

# refused STATUS WORDS OPTION...: the server must exit with this status and print these words.
refused() {
    expected=$1
    words=$2
    shift 2
    status=0
    run "$@" >"$folder/log" 2>&1 || status=$?
    [ "$status" = "$expected" ] || fail "status $status, not $expected, with $*"
    grep -q -- "$words" "$folder/log" || fail "no \"$words\" with $*"
    [ ! -e "$folder/s" ] && [ ! -e "$folder/a" ] || fail "a socket was left with $*"
}

start() {
    rm -f "$folder/log" # of the server before
    "$BUILD/bin/gpushared" --socket "$folder/s" --admin-socket "$folder/a" --driver softgpu \
        >"$folder/log" 2>&1 &
    server=$!
    wait_for grep -q "ready: clients connect" "$folder/log"
    worker=$(pgrep -P "$server") || fail "there is no worker"
}

gone() {
    ! kill -0 "$1" 2>/dev/null
}

refused 1 "no other driver is tried" --driver /nonexistent/libcuda.so.1
refused 1 "no other driver is tried$" --driver /nonexistent/libcuda.so.1
refused 1 "/nonexistent/libcuda.so.1" --driver /nonexistent/libcuda.so.1
refused 1 "cannot load" --driver "$BUILD/libexec/gpushare-worker"
refused 1 "could not be executed" --driver softgpu --worker /nonexistent/gpushare-worker
refused 2 "nvidia, softgpu or a path with a slash" --driver amd
refused 1 "at most, or raise the limit" --driver softgpu --max-clients 100000
(export GPUSHARE_LEESE=50ms; refused 1 "GPUSHARE_LEESE is set, .* perhaps be GPUSHARE_LEASE" --driver /nonexistent/libcuda.so.1)
if ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
    refused 1 "no device can be served"
    refused 1 "--driver softgpu runs kernels on the CPU"
fi

# A second server on the same socket gives way; the first one keeps serving.
start
status=0
run --driver softgpu >"$folder/second" 2>&1 || status=$?
[ "$status" = 1 ] || fail "a second server ended with status $status"
grep -q "another server" "$folder/second" || fail "a second server did not say why it gave up"
"$BUILD/bin/gpusharectl" --socket "$folder/a" ping >/dev/null || fail "the first server is gone"

# SIGTERM: server, worker and sockets go.
kill -TERM "$server"
status=0
wait "$server" || status=$?
[ "$status" = 0 ] || fail "stopped with status $status"
gone "$worker" || fail "the worker outlived a stop"
[ ! -e "$folder/s" ] && [ ! -e "$folder/a" ] || fail "a socket outlived a stop"

# SIGKILL: the worker goes too; the next server takes the dead one's sockets over.
start
kill -KILL "$server"
wait "$server" || true
wait_for gone "$worker"
[ -e "$folder/s" ] || fail "the test expects a stale socket"
start
"$BUILD/bin/gpusharectl" --socket "$folder/a" ping >/dev/null || fail "no service after a kill"

# A worker that is killed is replaced.
kill -KILL "$worker"
replaced() {
    next=$(pgrep -P "$server") && [ "$next" != "$worker" ]
}
wait_for replaced
wait_for grep -q "killed by signal 9" "$folder/log"
kill -TERM "$server"
wait "$server" || fail "a server that had lost a worker stopped with an error"
gone "$next" || fail "the new worker outlived a stop"
server=
echo "start: refusals, stops, kills: as they should be"
