#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A CUDA program in Python with no word about gpushare: the plate of heat.cu, and its kernels (heat.ptx).

  heat.py [STEPS [STRAY [pause]]]    STRAY: the step at which a kernel writes where no memory is
                                     pause: waits for a line of its standard input after half of the steps

It calls CUDA's driver interface as Python's packages for CUDA do, and needs none of them. It ends with status 0
if device and CPU agree.
"""
import ctypes
import os
import sys

SIDE = 192
CELLS = SIDE * SIDE
MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT

cuda = ctypes.CDLL("libcuda.so.1")


class Failed(Exception):
    """A call's error, by CUDA's name for it."""


def check(status):
    """Raises what the call returned, unless it is CUDA_SUCCESS."""
    if status:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(status, ctypes.byref(name))
        raise Failed((name.value or str(status).encode()).decode())


def made(call, kind, *words):
    """What a call stores at its first parameter."""
    value = kind()
    check(call(ctypes.byref(value), *words))
    return value


def launch(function, grid, block, *parameters):
    """Launches on the default stream."""
    pointers = (ctypes.c_void_p * len(parameters))(*(ctypes.addressof(parameter) for parameter in parameters))
    check(cuda.cuLaunchKernel(function, *grid, *block, 0, None, pointers, None))


def flow(plate):
    """One step on the CPU. C's division goes towards zero."""
    after = list(plate)
    for row in range(SIDE, CELLS - SIDE, SIDE):
        for at in range(row + 1, row + SIDE - 1):
            sum_ = plate[at - 1] + plate[at + 1] + plate[at - SIDE] + plate[at + SIDE] - 4 * plate[at]
            after[at] = plate[at] + (sum_ // 8 if sum_ >= 0 else -(-sum_ // 8))
    return after


def run(steps, stray, pause, where):
    """Both plates, step by step; where[0] is the step for the message of a failure."""
    check(cuda.cuInit(0))
    device = made(cuda.cuDeviceGet, ctypes.c_int, 0)
    check(cuda.cuCtxSetCurrent(made(cuda.cuDevicePrimaryCtxRetain, ctypes.c_void_p, device)))
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "heat.ptx"), "rb") as file:
        module = made(cuda.cuModuleLoadData, ctypes.c_void_p, file.read())
    spread = made(cuda.cuModuleGetFunction, ctypes.c_void_p, module, b"_Z6spreadPKiPi")
    lost = made(cuda.cuModuleGetFunction, ctypes.c_void_p, module, b"_Z5strayPi")
    plate = [i * 37 % 4096 for i in range(CELLS)]
    bytes_ = (ctypes.c_int * CELLS)(*plate)
    plates = [made(cuda.cuMemAlloc_v2, ctypes.c_uint64, ctypes.c_size_t(4 * CELLS)) for _ in range(2)]
    for one in plates:
        check(cuda.cuMemcpyHtoD_v2(one, bytes_, ctypes.c_size_t(4 * CELLS)))
    for where[0] in range(1, steps + 1):
        launch(spread, (SIDE // 16, SIDE // 16, 1), (16, 16, 1), plates[(where[0] - 1) % 2], plates[where[0] % 2])
        if where[0] == stray:
            launch(lost, (1, 1, 1), (32, 1, 1), plates[0])
        if where[0] % 5 == 0:
            check(cuda.cuCtxSynchronize())
        if pause and where[0] == steps // 2:
            check(cuda.cuCtxSynchronize())
            print("heat.py: half of the steps", flush=True)
            sys.stdin.readline()
        plate = flow(plate)
    check(cuda.cuMemcpyDtoH_v2(bytes_, plates[steps % 2], ctypes.c_size_t(4 * CELLS)))
    if list(bytes_) != plate:
        raise Failed("wrong")
    count = made(cuda.cuDeviceGetAttribute, ctypes.c_int, MULTIPROCESSORS, device)
    total = made(cuda.cuDeviceTotalMem_v2, ctypes.c_size_t, device)
    print(f"heat.py: {steps} steps on {count.value} multiprocessors, {total.value >> 20} MiB: verified")


def main():
    """The status of the program."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    where = [0]
    try:
        run(steps, int(sys.argv[2]) if len(sys.argv) > 2 else -1, len(sys.argv) > 3, where)
    except Failed as failed:
        print(f"heat.py: step {where[0]} of {steps}: {failed}")
        return 1
    return 0


sys.exit(main())
