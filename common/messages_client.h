/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_client: what the client library says of its arguments, of its connection and of its
 * options and environment, and how a message can break the protocol. Part of the table in
 * common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_CLIENT_H
#define GPUSHARE_COMMON_MESSAGES_CLIENT_H

/* clang-format off */
#define MESSAGES_CLIENT(X) \
    X(options_newer, INVALID_VALUE, \
      "options: this library (%s) is older than the header and lacks a member that is set") \
    X(blocks_pointer_null, INVALID_VALUE, \
      "blocks: the pointer is NULL") \
    X(block_threads_zero, INVALID_VALUE, \
      "block_threads is 0") \
    X(driver_absent, NOT_SUPPORTED, \
      "gpushare's CUDA driver does not carry %s; each call of it returns CUDA_ERROR_NOT_SUPPORTED") \
    X(driver_heap_limit, NOT_SUPPORTED, \
      "kernels of all programs allocate from one heap of %s on this GPU, so a limit of %s " \
      "(cuCtxSetLimit, cudaDeviceSetLimit) is refused; ask for less, or have gpushared started with " \
      "--kernel-heap %s") \
    X(dropin_export_table, NOT_FOUND, \
      "%s asks for undocumented parts of NVIDIA's driver (cuGetExportTable), which gpushare does " \
      "not have; link it with the shared CUDA runtime (nvcc -cudart shared), and see what " \
      "'gpushare run --explain' says of the program") \
    X(dropin_work_lost, INTERRUPTED, \
      "work of this program on the GPU was lost with its worker, after a fault that may be another " \
      "program's; CUDA has no way to take work up, so start the program again") \
    X(print_limit_max, INVALID_VALUE, \
      "a buffer of %llu bytes for what kernels print is too large: at most %d can be had") \
    X(print_limit_late, INVALID_VALUE, \
      "the size of the buffer for what kernels print is set before the first module that prints is " \
      "loaded") \
    X(session_closed, CONNECTION_LOST, \
      "the server closed the connection; see whether gpushared is running, and its log (journalctl -u gpushared), " \
      "or ask gpushare doctor") \
    X(session_given_up, CONNECTION_LOST, \
      "the program ended the context while a stream of it waited for a value in memory; write the " \
      "value first") \
    X(server_protocol_old, PROTOCOL_VERSION, \
      "the server speaks version 1 of the protocol and this library (%s) %u.%u; install the " \
      "same release of both") \
    X(server_broke_protocol, PROTOCOL_VIOLATION, \
      "the server broke the protocol: %s") \
    X(server_reply_unfit, PROTOCOL_VIOLATION, \
      "the server answered with another message than the request asks for") \
    X(server_reply_unasked, PROTOCOL_VIOLATION, \
      "the server answered a request that was not made") \
    X(copy_no_staging, OUT_OF_MEMORY, \
      "copies of ordinary memory need a staging buffer, which those of a shared host buffer don't, " \
      "and there is no room for one") \
    X(runtime_absent, NOT_SUPPORTED, \
      "gpushare's CUDA runtime does not carry %s; each call of it returns cudaErrorNotSupported") \
    X(runtime_parts_unlinked, SUCCESS, \
      "the program's separately compiled parts (nvcc -rdc=true) can't be linked: %s") \
    X(runtime_no_part, SUCCESS, \
      "there is none: build the program again") \
    X(runtime_part_no_fatbin, SUCCESS, \
      "part %u of them is no fatbin: build the program again") \
    X(runtime_managed_unmade, SUCCESS, \
      "the program can't reach its managed variables, since its kernels could not be loaded (%s)") \
    X(runtime_managed_unreachable, SUCCESS, \
      "the program can't reach its managed variable %s, since the driver has none of this name in " \
      "memory of both sides; build the program with PTX for this device " \
      "(-gencode arch=compute_75,code=compute_75)") \
    X(copy_no_peer_buffer, SUCCESS, \
      "a copy between connections needs a host buffer") \
    X(warning_time, SUCCESS, \
      "%s asks for a share of time, which is not enforced: GPU %u is shared in mode %s; its " \
      "administrator can change that (gpusharectl set gpu %u mode=fair)") \
    X(warning_time_program, SUCCESS, \
      "the program asks for a share of time, which is not enforced: GPU %u is shared in mode " \
      "%s; its administrator can change that (gpusharectl set gpu %u mode=fair)") \
    X(warning_fraction, SUCCESS, \
      "%s asks for a share of time, which is not enforced: GPU %u is shared in mode %s; its " \
      "administrator can change that (gpusharectl set gpu %u mode=fair); the fraction's limit " \
      "of device memory is enforced") \
    X(warning_unseen, SUCCESS, \
      "%s limits device %s, which has no effect: of the server's devices this process sees %u of " \
      "%u (%s), and they are counted from 0 in that order") \
    X(warning_threads, SUCCESS, \
      "%s asks for multiprocessors of its own, and GPU %u can't give any: its driver has no " \
      "green contexts (CUDA 12.5 and later have them)") \
    X(warning_threads_program, SUCCESS, \
      "the program asks for multiprocessors of its own, and GPU %u can't give any: its driver " \
      "has no green contexts (CUDA 12.5 and later have them)") \
    X(variable_misspelt, SUCCESS, \
      "%s is set, and nothing of gpushare reads it: it should perhaps be %s") \
    X(variable_unread, SUCCESS, \
      "%s is set, and nothing of gpushare reads it: is it misspelt, or of another version?") \
    X(variable_of_clients, SUCCESS, \
      "%s is set, and has no effect on gpushared: each client reads it in its own environment") \
    X(protocol_broken, PROTOCOL_VIOLATION, \
      "%s") \
    X(protocol_short, PROTOCOL_VIOLATION, \
      "a message is shorter than its header") \
    X(protocol_length, PROTOCOL_VIOLATION, \
      "a message's length is not what its header says") \
    X(protocol_reserved, PROTOCOL_VIOLATION, \
      "message_header.reserved must be zero") \
    X(protocol_opcode, PROTOCOL_VIOLATION, \
      "unknown message") \
    X(protocol_peer, PROTOCOL_VIOLATION, \
      "a message that this peer may not send") \
    X(protocol_body, PROTOCOL_VIOLATION, \
      "a message's length does not fit its kind") \
    X(protocol_descriptors, PROTOCOL_VIOLATION, \
      "a message came with the wrong number of file descriptors") \
    X(protocol_long, PROTOCOL_VIOLATION, \
      "a message is longer than any message may be") \
    X(protocol_descriptors_max, PROTOCOL_VIOLATION, \
      "a message came with too many file descriptors, or this process has none left") \
    X(argument_null, INVALID_VALUE, \
      "%s: the pointer is NULL") \
    X(struct_size, INVALID_VALUE, \
      "%s: size is %zu; set it to sizeof the struct before the call") \
    X(options_size, INVALID_VALUE, \
      "options: size is %zu; set it to sizeof(struct gpushare_options)") \
    X(connection_pointer_null, INVALID_VALUE, \
      "connection: the pointer is NULL") \
    X(pointer_null, INVALID_VALUE, \
      "destination is NULL") \
    X(source_null, INVALID_VALUE, \
      "source is NULL") \
    X(image_pointer_null, INVALID_VALUE, \
      "image: the pointer is NULL") \
    X(module_pointer_null, INVALID_VALUE, \
      "module: the pointer is NULL") \
    X(path_pointer_null, INVALID_VALUE, \
      "path: the pointer is NULL") \
    X(copy_not_device_memory, INVALID_VALUE, \
      "%s: a range of %llu B from 0x%llx is not device memory of this client") \
    X(copy_not_host_memory, INVALID_VALUE, \
      "%s: 0x%llx is device memory, where host memory belongs; gpushare_copy() finds the " \
      "direction itself") \
    X(copy_stream_connection, INVALID_VALUE, \
      "the stream's connection must be one of the two that are copied between") \
    X(fill_width, INVALID_VALUE, \
      "width is %u; it must be 1, 2 or 4") \
    X(fill_alignment, INVALID_VALUE, \
      "destination 0x%llx is not a multiple of %u") \
    X(fill_count, INVALID_VALUE, \
      "count is too large") \
    X(fill_not_device_memory, INVALID_VALUE, \
      "a range of %llu B from 0x%llx is not device memory of this client") \
    X(count_pointer_null, INVALID_VALUE, \
      "count: the pointer is NULL") \
    X(event_null, INVALID_HANDLE, \
      "event: the handle is NULL") \
    X(event_pointer_null, INVALID_VALUE, \
      "event: the pointer is NULL") \
    X(event_flags, INVALID_VALUE, \
      "flags is 0x%x; only GPUSHARE_EVENT_TIMING is known") \
    X(milliseconds_pointer_null, INVALID_VALUE, \
      "milliseconds: the pointer is NULL") \
    X(function_null, INVALID_HANDLE, \
      "function: the handle is NULL") \
    X(parameters_null, INVALID_VALUE, \
      "%s takes parameters (%u); parameters is NULL") \
    X(parameter_null, INVALID_VALUE, \
      "%s takes parameters (%u); the pointer to number %u, from 0, is NULL") \
    X(parameter_block, INVALID_VALUE, \
      "%s takes a parameter block of %u B; %zu B at %p were given") \
    X(count_zero, INVALID_VALUE, \
      "count is 0; there is nothing to allocate") \
    X(module_null, INVALID_HANDLE, \
      "module: the handle is NULL") \
    X(name_pointer_null, INVALID_VALUE, \
      "name: the pointer is NULL") \
    X(name_bytes, NOT_FOUND, \
      "a name has 1 to %d bytes, this one %zu") \
    X(function_pointer_null, INVALID_VALUE, \
      "function: the pointer is NULL") \
    X(parameter_unknown, INVALID_VALUE, \
      "the number of %s's parameters is %u; counted from 0, there is no %u") \
    X(stream_pointer_null, INVALID_VALUE, \
      "stream: the pointer is NULL") \
    X(stream_flags, INVALID_VALUE, \
      "flags is 0x%x; only GPUSHARE_STREAM_NON_BLOCKING is known") \
    X(stream_of_thread, INVALID_HANDLE, \
      "a thread's own stream ends with the thread; it can't be destroyed") \
    X(priority_pointer_null, INVALID_VALUE, \
      "priority: the pointer is NULL") \
    X(request_over_limit, INVALID_ENVIRONMENT, \
      "%s requests %s of device %u, and %s limits it to %s: lower the request or raise the limit") \
    X(server_memory_unsealed, PROTOCOL_VIOLATION, \
      "the server sent shared memory that is not sealed or too small") \
    X(server_memory_unmapped, OUT_OF_MEMORY, \
      "the server's shared memory can't be mapped: %s") \
    X(server_window_invalid, PROTOCOL_VIOLATION, \
      "the server granted an invalid address window") \
    X(window_reserved, WINDOW_TAKEN, \
      "addresses 0x%llx and 0x%llx (0x%llx bytes each) can't be reserved in this " \
      "process: %s; a limit on address space (ulimit -v) is in the way") \
    X(window_taken, WINDOW_TAKEN, \
      "this process uses addresses in each of %d windows that the server offered") \
    X(process_no_memory, OUT_OF_MEMORY, \
      "this process has no memory left") \
    X(connection_null, NOT_INITIALIZED, \
      "the connection is NULL; gpushare_connect() makes one") \
    X(connection_of_parent, NOT_INITIALIZED, \
      "the connection belongs to the parent of this forked process; connect again here") \
    X(wait_not_one_allocation, INVALID_VALUE, \
      "a stream can't wait for %llu B at 0x%llx, which are not in one allocation of this client; " \
      "wait for device memory, or for host memory that CUDA has allocated") \
    X(copy_not_one_allocation, INVALID_VALUE, \
      "%s: a range of %llu B from 0x%llx is not in one allocation of this client") \
    X(copy_overlap, INVALID_VALUE, \
      "source and destination overlap") \
    X(events_of_two, INVALID_HANDLE, \
      "the events are of two connections, whose devices' clocks differ") \
    X(event_unfit, INVALID_HANDLE, \
      "the %s event was never recorded") \
    X(event_untimed, INVALID_HANDLE, \
      "the %s event takes no times; create it with GPUSHARE_EVENT_TIMING") \
    X(launch_grid, INVALID_VALUE, \
      "%s: a grid of %u x %u x %u blocks; each must be from 1 to %u, %u and %u") \
    X(launch_block, INVALID_VALUE, \
      "%s: a block of %u x %u x %u threads; each must be from 1 to %u, %u and %u") \
    X(launch_shared_memory, INVALID_VALUE, \
      "%s: %u bytes of dynamic shared memory; at most %u, see " \
      "gpushare_function_set_shared()") \
    X(launch_block_threads, INVALID_VALUE, \
      "%s: %llu threads in a block; the device can have %u") \
    X(launch_bounds, INVALID_VALUE, \
      "%s: %llu threads in a block; this kernel was compiled for at most %u (__launch_bounds__, .maxntid)") \
    X(launch_threads, LAUNCH_OUT_OF_RESOURCES, \
      "%s: %llu threads in a block; this kernel's registers are enough for %u") \
    X(launch_cooperative_large, COOPERATIVE_LAUNCH_TOO_LARGE, \
      "%s: the cooperative grid's size is %llu; a multiprocessor holds %u of its blocks at once, and " \
      "this client has %u multiprocessors: launch fewer blocks, or ask for more threads") \
    X(launch_cooperative_server, NOT_SUPPORTED, \
      "%s: the server is too old for cooperative launches: have it updated") \
    X(device_free_unknown, INVALID_HANDLE, \
      "0x%llx is not where device memory of this connection begins, or was freed before") \
    X(server_buffer_outside, PROTOCOL_VIOLATION, \
      "the server put a host buffer outside of this client's window") \
    X(server_buffer_unsealed, PROTOCOL_VIOLATION, \
      "the server sent a host buffer that is not sealed") \
    X(host_buffer_unmapped, OUT_OF_MEMORY, \
      "a host buffer can't be mapped: %s") \
    X(host_free_unknown, INVALID_HANDLE, \
      "0x%llx is not a shared host buffer of this connection, or was freed before") \
    X(memfd_create, OUT_OF_MEMORY, \
      "memfd_create: %s") \
    X(server_parameters_count, PROTOCOL_VIOLATION, \
      "the server described %zu bytes of parameters for %u") \
    X(server_parameters_block, PROTOCOL_VIOLATION, \
      "the server described parameters that don't fit their block") \
    X(peer_other_server, NOT_PERMITTED, \
      "the two connections are not to the same server") \
    X(staging_none, OUT_OF_MEMORY, \
      "there was none before") \
    X(server_stream, PROTOCOL_VIOLATION, \
      "the server made stream %u, which this client can't have") \
    X(process_no_keys, OUT_OF_MEMORY, \
      "this process has no thread-specific keys left") \
    X(stream_of_another, INVALID_HANDLE, \
      "the stream belongs to another connection than the call is about") \
    X(devices_none, NO_DEVICE, \
      "the server has no device") \
    X(devices_hidden, NO_DEVICE, \
      "%s leaves this process no device: it is empty, or says none; the server has %u, numbered " \
      "from 0: name some of these by number or UUID, or unset the variable") \
    X(devices_not_named, NO_DEVICE, \
      "%s leaves this process no device: its list ends at the first that the server lacks; the " \
      "server has %u, numbered from 0: name some of these by number or UUID, or unset the variable") \
    X(device_ordinal, INVALID_DEVICE, \
      "there is no device %u: this process sees %u, counted from 0") \
    X(options_share, INVALID_VALUE, \
      "options: %s is %g; it must be from 0.01 to 100, or 0 to ask for nothing") \
    X(options_share_request, INVALID_VALUE, \
      "options: %s is %g, above its limit of %g: lower the one or raise the other") \
    X(options_memory_request, INVALID_VALUE, \
      "options: %s is %s, above its limit of %s: lower the one or raise the other") \
    X(options_fraction, INVALID_VALUE, \
      "options: fraction is %g; it must be above 0 and at most 1, or 0 to ask for nothing") \
    X(options_fraction_small, INVALID_VALUE, \
      "options: fraction is %g; it must be from 0.0001 to 1, or 0 to ask for nothing") \
    X(options_thread_percentage, INVALID_VALUE, \
      "options: thread_percentage is %g; it must be from 1 to 100, or 0 for no wish") \
    X(options_priority, INVALID_VALUE, \
      "options: %s is %llu; it must be from %llu to %llu") \
    X(options_kernel_time, INVALID_VALUE, \
      "options: %s is %llu ns; it must be %s, or 0 for no wish") \
    X(options_name, INVALID_VALUE, \
      "options: name must be at most %d bytes of UTF-8 without control characters") \
    X(options_profile, INVALID_VALUE, \
      "options: profile must be 1 to %d bytes of UTF-8 without control characters") \
    X(options_socket, INVALID_VALUE, \
      "options: socket must be a path of 1 to %d bytes") \
    X(warnings_variable, INVALID_ENVIRONMENT, \
      "GPUSHARE_WARNINGS=%.40s: must be 1 (`gpushare info` prints warnings) or 0 (it " \
      "does not)") \
    X(request_unsent, SERVER_RESOURCES, \
      "a request could not be sent to the server: %s") \
    X(server_protocol, PROTOCOL_VERSION, \
      "the server (%s) speaks version %u.%u of the protocol and this library (%s) %u.%u; " \
      "install the same release of both") \
    X(socket_not_clients, CONNECTION_FAILED, \
      "%s is not a socket for clients (it may be the admin socket); name the clients' " \
      "socket in GPUSHARE_SOCKET") \
    X(socket_denied, CONNECTION_FAILED, \
      "the server's socket %s does not let this user connect (%s): ask the administrator, who " \
      "chooses its group and mode") \
    X(server_unreachable_named, CONNECTION_FAILED, \
      "no server can be reached at %s (%s), the path that %s gives: start gpushared there, or " \
      "correct the path") \
    X(server_unreachable, CONNECTION_FAILED, \
      "no server can be reached at %s (%s); start gpushared, or name its socket in " \
      "GPUSHARE_SOCKET") \
    X(server_unreachable_twice, CONNECTION_FAILED, \
      "no server can be reached at %s (%s), nor at %s (%s); start gpushared, or name its " \
      "socket in GPUSHARE_SOCKET")
/* clang-format on */

#endif
