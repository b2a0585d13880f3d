/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_start: what a start finds of the machine, its driver and its GPUs. Part of the table in
 * common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_START_H
#define GPUSHARE_COMMON_MESSAGES_START_H

/* clang-format off */
#define MESSAGES_START(X) \
    X(host_access_users, NOT_PERMITTED, \
      "device %u serves another user now, and its kernels can use memory of other clients: try " \
      "again when user %u has left, or have the administrator switch that off (options " \
      "nvidia_uvm uvm_disable_hmm=1) or allow it (--allow-host-access)") \
    X(device_warning, SUCCESS, \
      "device %u: warning: %s") \
    X(list_no_arena, PROTOCOL_VIOLATION, \
      "the worker's --list names no usable address ranges") \
    X(arena_chosen, SUCCESS, \
      "addresses: device memory at 0x%llx, host memory at 0x%llx, %s each, for the driver or the " \
      "machine does not give the usual ranges") \
    X(window_cut, SUCCESS, \
      "--max-window: cut to %s, the size of the address ranges") \
    X(arena_none, DEVICE_NOT_READY, \
      "none of %d pairs of address ranges for device memory and host memory can be had, from %s " \
      "each at %s and %s down to %s each at %s and %s: name others with gpushared's " \
      "--device-base, --host-base and --arena; the last: %s") \
    X(arena_named_none, DEVICE_NOT_READY, \
      "the address ranges that gpushared's --device-base, --host-base and --arena name, %s each " \
      "at %s and %s, can't be had: name others: %s") \
    X(init_stub, SUCCESS, \
      "the library is the CUDA toolkit's stub, not a driver (%s): name the driver's own " \
      "libcuda.so.1 with --driver") \
    X(init_no_device, SUCCESS, \
      "the driver finds no GPU (%s): see that nvidia-smi lists one, and that the server may " \
      "open /dev/nvidiactl and /dev/nvidia0") \
    X(init_no_instance, SUCCESS, \
      "the driver offers no GPU that can be used (%s): a GPU in MIG mode needs an instance " \
      "(nvidia-smi mig -cgi PROFILE -C)") \
    X(init_fabric_manager, SUCCESS, \
      "the GPUs are not ready (%s): GPUs that are joined by NVSwitch need the fabric manager " \
      "of the driver's version: systemctl start nvidia-fabricmanager") \
    X(init_mismatch, SUCCESS, \
      "the driver's library and its kernel module differ in version (%s): after an update, " \
      "restart the machine or load the nvidia modules anew") \
    X(init_compat, SUCCESS, \
      "the library is CUDA's compatibility library, which this GPU does not support (%s): " \
      "name the driver's own libcuda.so.1 with --driver") \
    X(init_device_nodes, SUCCESS, \
      "the driver can't start (%s), usually because /dev/nvidia-uvm is missing or closed to " \
      "the server: systemctl start gpushare-devices.service, or nvidia-modprobe -u -c 0 as " \
      "root") \
    X(device_prohibited, DEVICE_NOT_READY, \
      "the GPU %s is in the compute mode Prohibited, in which no program can use it: nvidia-smi " \
      "-i %s -c DEFAULT") \
    X(device_exclusive, DEVICE_NOT_READY, \
      "another program uses the GPU %s, which is in an exclusive compute mode: end that " \
      "program, or nvidia-smi -i %s -c DEFAULT") \
    X(device_exclusive_mps, DEVICE_NOT_READY, \
      "the GPU %s is in an exclusive compute mode, and an MPS control daemon (process %d) runs, " \
      "whose server may hold it: echo quit | nvidia-cuda-mps-control") \
    X(warning_host_access, SUCCESS, \
      "kernels on the GPU can read and write all memory of the worker process (heterogeneous " \
      "memory management), rings and buffers of other clients too: load the module nvidia_uvm " \
      "with uvm_disable_hmm=1; until then clients of one user at a time are served, unless " \
      "gpushared has --allow-host-access") \
    X(warning_no_compiler, SUCCESS, \
      "the driver can't compile PTX (%s), so modules of PTX will be refused: install " \
      "libnvidia-ptxjitcompiler.so.1 of the driver's version; cubins run") \
    X(warning_mps, SUCCESS, \
      "an MPS control daemon runs (process %d): programs that use it share the GPU with " \
      "gpushare's clients outside of all limits; to end it: echo quit | nvidia-cuda-mps-control") \
    X(warning_polled, SUCCESS, \
      "the driver refuses memory operations on streams of partitions (%s): ends of work are " \
      "polled, and seen up to half a millisecond late; a newer driver may have them") \
    X(batch_ends, SUCCESS, \
      "the driver could not show how it tells that work has ended: %s") \
    X(clearing_driver, SUCCESS, \
      "the driver made no stream or no pinned memory for clearing new memory: %s")
/* clang-format on */

#endif
