# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The file that the bench writes, for tests that run rows in their short form."""
import json
import os
import re

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/numbers.md")
TIMES, RATES = ("ns", "us", "ms"), ("GB/s", "1/s")
# Rows that compare with a run alone, where neighbours don't slow each other down.
STEADY = {"overlap_two_clients", "overlap_two_clients_serialized", "overlap_copy_compute", "lease_5ms_loss", "threads_30_70_error", "priority_p99",
          "neighbour_streams", "softgpu_block_start_ns",
          "softgpu_lane_instructions_per_second", "dropin_launch_sync_us", "dropin_copy_pinned", "dropin_copy_pageable",
          "dropin_malloc_warm", "dropin_start_ms", "dropin_samples_wall"}


def read(path, names):
    """{name: row}: these rows and no others, each whole, and measured on the device that docs/numbers.md says."""
    with open(path, encoding="utf-8") as file:
        results = {row["name"]: row for row in json.load(file)}
    assert sorted(results) == sorted(names), f"rows {sorted(results)}"
    for name, row in results.items():
        missing = {"name", "value", "unit", "yardstick", "ratio", "spread", "switches"} - set(row)
        assert not missing, f"{name} lacks {missing}"
        assert row["yardstick"] != 0 and row["spread"] >= 0, row
        words = row["switches"].split()
        assert ("SOFTGPU_STRICT=1" in words and any(word.startswith("SOFTGPU_SEED=") for word in words)) or "null" in words, row
    return results


def contention_is_off_where_rows_compare(results):
    for name, row in results.items():
        assert ("SOFTGPU_CONTENTION_PERCENT=0" in row["switches"].split()) == (name in STEADY), row


def near_the_page(results):
    """No time is ten times what docs/numbers.md has, or its goal if that is longer, and no rate a tenth: neither a busy machine nor
    a short run does that."""
    with open(PAGE, encoding="utf-8") as file:
        page = {cells[1].strip("` "): cells for cells in (line.split("|") for line in file if line.startswith("| `"))}
    for name, row in results.items():
        if row["unit"] in TIMES + RATES:
            value, unit = page[name][3].split()
            goal = re.match(r" ([\d.,]+) at most ", page[name][6])
            assert unit == row["unit"], row
            usual = max(float(value), float(goal[1].replace(",", "")) if goal else 0)
            far = row["value"] / usual if unit in TIMES else usual / row["value"]
            assert far < 10, f"{row['value']} {unit}, and {usual} on the page: {row}"


def within(results, bounds):
    """bounds: {name: (least, most)}, of rows that may not have been run."""
    for name, (least, most) in bounds.items():
        assert name not in results or least < results[name]["value"] < most, results[name]
