#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A kernel that Triton compiles, checked against PyTorch's sum."""
import sys

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as missing:
    print(f"not run: {missing}")
    sys.exit(77)


@triton.jit
def add(a, b, to, count, BLOCK: tl.constexpr):
    """Adds block by block."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    within = at < count
    tl.store(to + at, tl.load(a + at, mask=within) + tl.load(b + at, mask=within), mask=within)


COUNT = 98432
one, other = (torch.rand(COUNT, device="cuda") for _ in range(2))
sums = torch.empty_like(one)
add[(triton.cdiv(COUNT, 1024),)](one, other, sums, COUNT, BLOCK=1024)
assert torch.equal(sums, one + other), "sums"
print(f"triton {triton.__version__}: {COUNT} sums are right")
