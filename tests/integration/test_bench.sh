#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make bench's program writes what README says it does. Numbers are judged by make bench alone, on a quiet machine;
# here only that two clients overlap more than in the control, where nothing may overlap, and that a launch row, in
# which the driver's count of launches is checked, gets through.
set -eu
if ldd "$BUILD/bin/gpushared" | grep -qE 'lib(a|t|ub)san'; then
    echo "sanitizers' times mean nothing"
    exit 77
fi
rows="launch_sync_vs_socket overlap_two_clients overlap_two_clients_serialized share_change_ms"
if [ "$(nproc)" -lt 2 ]; then
    rows=${rows#* } # client and worker stand on a processor each
fi
# shellcheck disable=SC2086 # one word a row
"$BUILD/tests/bench/bench" "$TMPDIR/results.json" $rows
# shellcheck disable=SC2086
python3 - "$TMPDIR/results.json" $rows <<'END'
import json, sys
results = {row["name"]: row for row in json.load(open(sys.argv[1], encoding="utf-8"))}
assert sorted(results) == sorted(sys.argv[2:]), f"rows {sorted(results)}"
for name, row in results.items():
    missing = {"name", "value", "unit", "yardstick", "ratio", "spread"} - set(row)
    assert not missing, f"{name} lacks {missing}"
    assert row["value"] > 0 and row["yardstick"] != 0 and row["spread"] >= 0, row
# The row itself fails where a launch was lost or a change had no effect.
assert results["overlap_two_clients"]["ratio"] < results["overlap_two_clients_serialized"]["ratio"], results
END
if "$BUILD/tests/bench/bench" "$TMPDIR/none.json" no_such_row 2>"$TMPDIR/words"; then
    echo "a row that does not exist was accepted"
    exit 1
fi
grep -q "there is no row 'no_such_row'" "$TMPDIR/words"
