#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""PyTorch's elementwise kernels, sums, sorts, streams, events, and a training without a matrix product; the CPU checks them."""
import sys

try:
    import torch
except ImportError as missing:
    print(f"not run: {missing}")
    sys.exit(77)

torch.manual_seed(0)
x = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
assert torch.allclose((x * 2 + 1).sin().relu().cpu(), (x.cpu() * 2 + 1).sin().relu(), atol=1e-5), "elementwise"
assert float(x.double().sum()) == (1 << 20) * ((1 << 20) - 1) / 2, "sum"
n = 1 << 22
x = torch.rand(n, device="cuda")
y = 3 * x + 2 + 0.01 * torch.randn(n, device="cuda")
w, b = (torch.zeros(1, device="cuda", requires_grad=True) for _ in range(2))
optimizer = torch.optim.SGD([w, b], lr=0.5)
for _ in range(200):
    optimizer.zero_grad()
    ((w * x + b - y) ** 2).mean().backward()
    optimizer.step()
assert abs(w.item() - 3) < 0.05 and abs(b.item() - 2) < 0.05, f"training: {w.item()} {b.item()}"
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    sorted_ = torch.sort(torch.rand(1 << 20, device="cuda")).values
event = torch.cuda.Event()
event.record(stream)
event.synchronize()
assert bool((sorted_[1:] >= sorted_[:-1]).all()), "sort"
pinned = torch.rand(1 << 20).pin_memory()
assert torch.equal(pinned.cuda(non_blocking=True).cpu(), pinned), "pinned"
print(f"torch {torch.__version__}: elementwise, sum, training, stream, event, sort and pinned memory are right on "
      f"{torch.cuda.get_device_properties(0).multi_processor_count} multiprocessors")
