#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A kernel that cuda.core compiles to a cubin, launches and reads back."""
import sys

try:
    import cuda.core
    import numpy
    from cuda.bindings import driver
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
except ImportError as missing:
    print(f"not run: {missing}")
    sys.exit(77)

COUNT = 256
device = Device()
device.set_current()
stream = device.create_stream()
source = 'extern "C" __global__ void triple(int *to) { to[threadIdx.x] = threadIdx.x * 3; }'
options = ProgramOptions(arch="sm_" + "".join(map(str, device.compute_capability)))
kernel = Program(source, code_type="c++", options=options).compile("cubin").get_kernel("triple")
buffer = device.allocate(COUNT * 4, stream=stream)
launch(stream, LaunchConfig(grid=1, block=COUNT), kernel, int(buffer.handle))
stream.sync()
found = numpy.zeros(COUNT, numpy.int32)
(status,) = driver.cuMemcpyDtoH(found.ctypes.data, int(buffer.handle), COUNT * 4)
assert status == driver.CUresult.CUDA_SUCCESS, status
assert numpy.array_equal(found, numpy.arange(COUNT) * 3), found
print(f"cuda.core {cuda.core.__version__}: {COUNT} values are right")
