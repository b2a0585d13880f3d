#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# timed: two clients must overlap more than in the control, and no row be far off
# light: its kernels sleep
# long: a row after the other runs to its end
# make bench's program writes the file that docs/numbers.md describes, and each row of launches, memory and stalls runs to its end
# in a short form; test_bench_shares.sh and test_bench_recovery.sh have the others (tests/unit/bench/test_rows.py compares). Only make bench judges numbers, on a quiet
# machine. This test judges three things: two clients overlap more than in the control, where nothing may overlap; a launch row,
# which checks the driver's count of launches, passes; and the rows of stalls are not as far off as without what they measure.
set -eu
if ldd "$BUILD/bin/gpushared" | grep -qE 'lib(a|t|ub)san'; then
    echo "sanitizers' times mean nothing"
    exit 77
fi
rows="overlap_two_clients overlap_two_clients_serialized overlap_copy_compute \
    memory_exact_bytes accounting_error neighbour_streams stall_by_arrivals_ms_p99 stall_by_endless_ms load_waits_ms_p99 \
    windows_share dropin_launch_ns dropin_launch_sync_us dropin_copy_pinned dropin_copy_pageable dropin_malloc_warm dropin_start_ms \
    dropin_samples_wall \
    ring_bytes_idle_client idle_cpu_seconds idle_thread_wakeups idle_client_bytes metrics_scrape_ms \
    top_cpu ctl_status_ms"
if [ "$(nproc)" -ge 2 ]; then # these pin themselves to one processor, or to two
    rows="$rows launch_async launch_async_beside_metrics launch_sync_beside_metrics launch_sync_vs_pingpong launch_sync_vs_socket launch_with_64_clients copy_h2d copy_d2h \
        softgpu_lane_instructions_per_second softgpu_block_start_ns"
fi
# shellcheck disable=SC2086 # one word a row
"$BUILD/tests/programs/bench/bench" --short "$TMPDIR/results.json" $rows
# shellcheck disable=SC2086
PYTHONPATH=tests/support python3 -B - "$TMPDIR/results.json" $rows <<'END'
import sys
import bench_rows
results = bench_rows.read(sys.argv[1], sys.argv[2:])
bench_rows.contention_is_off_where_rows_compare(results)
bench_rows.near_the_page(results)
# The row itself fails where a launch was lost or a change had no effect.
assert results["overlap_two_clients"]["ratio"] < results["overlap_two_clients_serialized"]["ratio"], results
# A neighbour that had the same queues would leave a client a hundredth. The rows fail themselves where a call of an arrival
# failed, nobody waited for the endless kernel, or no window was counted.
bench_rows.within(results, {"accounting_error": (-1, 0.9), "neighbour_streams": (0.3, 2), "windows_share": (-0.9, 0.9),
                            "overlap_copy_compute": (1, 500), "idle_cpu_seconds": (-1, 0.02), "idle_thread_wakeups": (-1, 10),
                            "idle_client_bytes": (0, 400000)})
# These fail themselves where an answer, a look or the accounts lack a client.
for name in "metrics_scrape_ms", "top_cpu", "ctl_status_ms", "launch_async_beside_metrics", "launch_sync_beside_metrics":
    assert name not in results or results[name]["fault"] is None, results[name]
assert 0 < results["top_cpu"]["value"] < 0.2, results["top_cpu"]
for name in "memory_exact_bytes", "ring_bytes_idle_client":
    assert results[name]["met"], results[name]
END
# Beside neighbours a row is measured in that scene alone, and says which. The same seed draws the same.
for i in 1 2; do
    "$BUILD/tests/programs/bench/bench" --short --neighbours --seed 7 "$TMPDIR/beside$i.json" share_change_ms idle_cpu_seconds
done
python3 - "$TMPDIR/beside1.json" "$TMPDIR/beside2.json" <<'END'
import json, sys
(row,), (again,) = [json.load(open(path, encoding="utf-8")) for path in sys.argv[1:]]
assert row["name"] == "share_change_ms" and row["value"] > 0 and row["fault"] is None, row
assert row["neighbours"] and [scene["neighbours"] for scene in row["scenes"]] == [row["neighbours"]], row
assert row["neighbours"] == again["neighbours"], again
END

# A row that can't measure ends neither the bench nor the row after it, and both are in the file and in the pages' tables.
mkdir "$TMPDIR/build"
ln -s "$BUILD/bin" "$BUILD/lib" "$BUILD/libexec" "$TMPDIR/build/" # without the null driver, no launch row's server starts
if env BUILD="$TMPDIR/build" "$BUILD/tests/programs/bench/bench" --short "$TMPDIR/dies.json" launch_async threads_25_alone \
    >"$TMPDIR/lines" 2>"$TMPDIR/words"; then
    echo "a row died, and the exit status is 0"
    exit 1
fi
grep -q '^launch_async  *NOT MEASURED: its process was ended by signal 6' "$TMPDIR/lines"
# shellcheck disable=SC2016 # as a page writes a row's name
printf '| `launch_async` | a | - | - | - | b | c |\n| `threads_25_alone` | d | - | - | - | e | f |\n' >"$TMPDIR/page.md"
grep threads_25_alone "$TMPDIR/page.md" >"$TMPDIR/some.md"
tests/programs/bench/page.py "$TMPDIR/dies.json" "$TMPDIR/page.md" "$TMPDIR/some.md"
python3 - "$TMPDIR/dies.json" "$TMPDIR/page.md" "$TMPDIR/some.md" <<'END'
import json, sys
died, lived = json.load(open(sys.argv[1], encoding="utf-8"))
assert (died["name"], died["met"], died["value"], died["ratio"]) == ("launch_async", False, None, None), died
assert died["fault"].startswith("its process was ended by signal 6"), died
assert (lived["name"], lived["fault"]) == ("threads_25_alone", None) and lived["value"] > 0 and lived["ratio"] > 0, lived
table = open(sys.argv[2], encoding="utf-8").read().splitlines()
assert table[0] == f"| `launch_async` | a | - | - | - | b | not measured: {died['fault']} |", table
assert f" {lived['ratio']:.3f} | e | " in table[1], table
assert open(sys.argv[3], encoding="utf-8").read().splitlines() == table[1:2], table
END
if "$BUILD/tests/programs/bench/bench" "$TMPDIR/none.json" no_such_row 2>"$TMPDIR/words"; then
    echo "a row that does not exist was accepted"
    exit 1
fi
grep -q "there is no row 'no_such_row'" "$TMPDIR/words"
# No file is named --help: the whole bench would run for it.
(cd "$TMPDIR" && timeout 5 "$BUILD/tests/programs/bench/bench" --help launch_async 2>"$TMPDIR/words") && exit 1
grep -q "^usage: bench" "$TMPDIR/words"
