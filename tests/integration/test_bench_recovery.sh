#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# long: some thirty workers follow one another
# The rows of recovery run to their end in a short form, each in the scene that it describes. Only make bench judges their numbers.
set -eu
if ldd "$BUILD/bin/gpushared" | grep -qE 'lib(a|t|ub)san'; then
    echo "sanitizers' times mean nothing"
    exit 77
fi
rows="fault_recovery_ms_p99 worker_kill_recovery_ms_p99 recovery_1000_objects_ms supervisor_restart_pause_ms \
    client_death_reclaim_ms innocent_throughput_beside_faults"
if [ "$(nproc)" -ge 2 ]; then
    rows="$rows journal_launch_ns" # it pins itself to two processors
fi
# shellcheck disable=SC2086 # one word a row
"$BUILD/tests/programs/bench/bench" --short "$TMPDIR/results.json" $rows
# shellcheck disable=SC2086
PYTHONPATH=tests/support python3 -B - "$TMPDIR/results.json" $rows <<'END'
import re, sys
import bench_rows
results = bench_rows.read(sys.argv[1], sys.argv[2:])
for name, row in results.items():
    assert row["fault"] is None, row
# Some fifty times what docs/numbers.md has, for a machine that is busy; a throughput is no more than alone, and some. A client that
# does not go on waits for half a minute.
bench_rows.within(results, {
    "fault_recovery_ms_p99": (1, 1500), "worker_kill_recovery_ms_p99": (1, 1500), "recovery_1000_objects_ms": (1, 5000),
    "supervisor_restart_pause_ms": (1, 2500), "client_death_reclaim_ms": (0, 1000), "innocent_throughput_beside_faults": (0, 1.5),
    "journal_launch_ns": (-250, 250)})
# A row that drops rounds has the figure of all of them.
for name, words in {"fault_recovery_ms_p99": r"p99 of all [1-9]", "worker_kill_recovery_ms_p99": r"p99 of all [1-9]",
                    "supervisor_restart_pause_ms": r"longest of all [1-9]", "client_death_reclaim_ms": r"longest of all \d"}.items():
    assert re.search(words, results[name]["note"]), results[name]
END
