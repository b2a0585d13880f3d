/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * messages: every sentence that gpushare makes for a user, in one table. Each sentence has a name,
 * which stays when the words change. A row is: name, error number, format of printf. The number
 * SUCCESS stands for "depends on the cause".
 *
 * The format is a whole sentence. Its arguments are values that a user wrote or sees, lists of
 * them, the nouns of another table (a resource, an account, the form of a value), or a cause behind
 * a colon, which is a sentence itself. Words that depend on the case are a row for each case, so no
 * argument of a call is a text in quotes: tests/unit/docs/test_messages.py refuses it.
 *
 * Two kinds of sentences are not in the table: those of the software GPU, a stand-in for a driver,
 * and those of the checks of a message's fields, which schemas/generate.py writes.
 *
 * A function that takes an error number and a format is given both by MESSAGE(name):
 *   return error_set(why, MESSAGE(module_unknown), number);
 * The compiler checks the arguments against the format in the table. MESSAGE_TEXT(name) is the
 * format alone, for a call site that has a more precise number.
 */
#ifndef GPUSHARE_COMMON_MESSAGES_H
#define GPUSHARE_COMMON_MESSAGES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/messages_accounting.h"
#include "common/messages_admin.h"
#include "common/messages_client.h"
#include "common/messages_code.h"
#include "common/messages_config.h"
#include "common/messages_mps.h"
#include "common/messages_doctor.h"
#include "common/messages_recovery.h"
#include "common/messages_server.h"
#include "common/messages_start.h"
#include "common/messages_tools.h"
#include "common/messages_watch.h"
#include "protocol.h"

/* clang-format off */
#define MESSAGES(X) \
    MESSAGES_ACCOUNTING(X) \
    MESSAGES_ADMIN(X) \
    MESSAGES_CLIENT(X) \
    MESSAGES_CODE(X) \
    MESSAGES_CONFIG(X) \
    MESSAGES_MPS(X) \
    MESSAGES_DOCTOR(X) \
    MESSAGES_RECOVERY(X) \
    MESSAGES_SERVER(X) \
    MESSAGES_START(X) \
    MESSAGES_WATCH(X) \
    MESSAGES_TOOLS(X) \
    X(driver_too_old, NO_DEVICE, \
      "%s: no symbol cuGetProcAddress_v2: not a CUDA driver of version 12.0 or newer") \
    X(driver_entry_missing, NO_DEVICE, \
      "%s: the driver has no %s (CUDA %d.%d): install a newer driver") \
    X(driver_path_relative, NO_DEVICE, \
      "the driver library must be given by an absolute path, not '%s'") \
    X(driver_not_loaded, NO_DEVICE, \
      "cannot load the driver library: %s") \
    X(driver_is_dropin, NO_DEVICE, \
      "%s is gpushare's own drop-in, not a driver: name the real libcuda.so.1") \
    X(server_stopping, DEVICE_NOT_READY, \
      "the server is stopping") \
    X(device_kept_down, DEVICE_NOT_READY, \
      "device %u is kept down after an error of the machine (%s): it is tried again in %s") \
    X(device_no_worker, DEVICE_NOT_READY, \
      "device %u has no worker now: %s") \
    X(device_starting, DEVICE_NOT_READY, \
      "the worker of device %u is starting") \
    X(list_answer, PROTOCOL_VIOLATION, \
      "the worker answered --list with \"%s\"") \
    X(devices_max, NOT_SUPPORTED, \
      "the driver has more than %d devices") \
    X(driver_no_device, NO_DEVICE, \
      "the driver has no device") \
    X(devices_none_visible, NO_DEVICE, \
      "%s leaves none of the driver's devices (%u) to serve") \
    X(list_pipe, SUCCESS, \
      "no pipe to the worker: %s") \
    X(list_start, SUCCESS, \
      "%s could not be started: %s") \
    X(list_timeout, SUCCESS, \
      "the driver %s did not list its devices: %s") \
    X(list_failed, NO_DEVICE, \
      "%s ended when it was asked for the driver's devices: %s") \
    X(trace_under_way, TOO_MANY_OBJECTS, \
      "GPU %u is being traced for %s, for %.1f s more: one trace at a time, try again " \
      "then") \
    X(trace_ending, TOO_MANY_OBJECTS, \
      "a trace of GPU %u for %s is just ending: try again") \
    X(trace_no_memory, SERVER_RESOURCES, \
      "the server has no %d MiB of memory for a trace: %s") \
    X(status_memory, SERVER_RESOURCES, \
      "the server could not share the status memory: %s") \
    X(attach_refused, SUCCESS, \
      "the worker could not attach it: %s") \
    X(profile_unknown, INVALID_VALUE, \
      "this server has no profile \"%s\" (GPUSHARE_PROFILE): its administrator knows the " \
      "names; without one the other limits hold") \
    X(group_token, SERVER_RESOURCES, \
      "the server got no random bytes for a group token") \
    X(attach_drained, DEVICE_NOT_READY, \
      "GPU %u takes no new clients, because an administrator drains it: try again when `gpusharectl " \
      "resume %u` was given, or use another GPU") \
    X(attach_worker_ended, DEVICE_NOT_READY, \
      "the worker of device %u has just ended: connect again") \
    X(attach_worker_lost, DEVICE_NOT_READY, \
      "not attached yet: connect again, for %s") \
    X(attach_resources, SERVER_RESOURCES, \
      "the server has no memory or file descriptors for another client: %s") \
    X(window_refused, SERVER_RESOURCES, \
      "the worker refused the new window") \
    X(window_in_use, NOT_PERMITTED, \
      "the window can't move any more: something has been allocated in it") \
    X(window_kept, NOT_PERMITTED, \
      "the window can't move: it has host buffers that the server has no room to keep apart; connect again") \
    X(window_move, SERVER_RESOURCES, \
      "its window could not be moved: %s") \
    X(module_foreign, INVALID_HANDLE, \
      "module %u is not a module of this client") \
    X(worker_ended, WORKER_LOST, \
      "the worker of device %u ended") \
    X(worker_just_ended, WORKER_LOST, \
      "the worker has just ended") \
    X(host_window_full, OUT_OF_MEMORY, \
      "the client's host window has no free range of %s") \
    X(host_request_no_memory, SERVER_RESOURCES, \
      "the server has no memory for this request") \
    X(share_owner_ended, INVALID_HANDLE, \
      "the connection that owned the buffer has ended meanwhile") \
    X(share_foreign, NOT_PERMITTED, \
      "client %u is not another connection of this process (its group)") \
    X(share_same_device, NOT_PERMITTED, \
      "both connections are to device %u: there the buffer is usable already") \
    X(link_failed, SERVER_RESOURCES, \
      "the connections could not be linked: %s") \
    X(window_fragmented, OUT_OF_MEMORY, \
      "the client's address window is too fragmented for an allocation of this size: " \
      "free some, or connect with a higher limit") \
    X(allocations_max, SERVER_RESOURCES, \
      "the client has as many allocations as it may have: free some, or allocate larger " \
      "pieces") \
    X(memory_request_failed, SERVER_RESOURCES, \
      "the server has no memory for this request, or its worker has just ended") \
    X(module_not_passed_on, WORKER_LOST, \
      "it could not be passed on to the worker") \
    X(modules_max, TOO_MANY_OBJECTS, \
      "the client has %u modules, as many as it may have: unload some") \
    X(module_record_no_memory, SERVER_RESOURCES, \
      "the server has no memory for another module") \
    X(client_record_no_memory, SERVER_RESOURCES, \
      "the server has no memory for another client") \
    X(window_none, ADDRESS_SPACE_FULL, \
      "no window of %llu MiB is free in the server's address plan: set a lower limit of " \
      "device memory (%s), or try again when clients have left") \
    X(window_none_options, ADDRESS_SPACE_FULL, \
      "no window of %llu MiB is free in the server's address plan: set a lower limit of " \
      "device memory among the program's options, or try again when clients have left") \
    X(change_over_device, INVALID_VALUE, \
      "client %u can have at most %s (%llu bytes) of %s: that is what the device has; %s " \
      "(%llu bytes) is more") \
    X(change_over_server, INVALID_VALUE, \
      "client %u can have at most %s (%llu bytes) of %s: that is what gpushared has for all " \
      "clients (--host-memory-total); %s (%llu bytes) is more") \
    X(change_over_window, INVALID_VALUE, \
      "client %u can have at most %s (%llu bytes) of %s: that is its window of addresses, " \
      "fixed when it attached; %s (%llu bytes) is more") \
    X(change_request_over_limit, INVALID_VALUE, \
      "client %u would have a %s.request of %s above its %s.limit of %s: the request must be the " \
      "lower one (both can be set in one command)") \
    X(change_under_way, NOT_READY, \
      "another change of client %u is under way: try again") \
    X(answers_unread, PROTOCOL_VIOLATION, \
      "the client asks and does not read the answers") \
    X(descriptors_early, PROTOCOL_VIOLATION, \
      "the client sent descriptors before it was attached") \
    X(closes_wait, PROTOCOL_VIOLATION, \
      "too many descriptors that clients have sent wait to be closed: send memfds only") \
    X(client_hung_up, SUCCESS, \
      "it closed its connection") \
    X(answer_unsent, SERVER_RESOURCES, \
      "an answer could not be sent: %s") \
    X(request_no_memory, SERVER_RESOURCES, \
      "the server has no memory for another request") \
    X(protocol_unknown, PROTOCOL_VERSION, \
      "the client speaks protocol %u.%u and this server (gpushare %s) %u.%u: use the client " \
      "library of the server's release") \
    X(user_clients_max, TOO_MANY_CLIENTS, \
      "user %u has as many clients as one user may have (%u): end some, or have the " \
      "administrator raise --max-clients-per-user") \
    X(user_clients_ended, TOO_MANY_CLIENTS, \
      "user %u has as many clients as one user may have (%u)") \
    X(clients_max, TOO_MANY_CLIENTS, \
      "the server has as many clients as it may have (%u): try again when one has left, or have the " \
      "administrator raise gpushared --max-clients") \
    X(clients_ended, TOO_MANY_CLIENTS, \
      "as many clients are served as may be (%u)") \
    X(device_unknown, INVALID_DEVICE, \
      "there is no device %u: this server has %u") \
    X(client_number_set, PROTOCOL_VIOLATION, \
      "message_header.client must be zero on a client's connection") \
    X(message_forbidden, PROTOCOL_VIOLATION, \
      "%s is a message that a client may not send") \
    X(message_no_serial, PROTOCOL_VIOLATION, \
      "%s came without a serial") \
    X(message_state, PROTOCOL_VIOLATION, \
      "%s is not allowed in the state '%s' of a connection") \
    X(receive_failed, CONNECTION_LOST, \
      "receiving failed: %s") \
    X(process_ended, SUCCESS, \
      "the process ended") \
    X(client_no_memory, SERVER_RESOURCES, \
      "no memory for the client's tables") \
    X(client_memory_unusable, SUCCESS, \
      "the client's shared memory can't be used: %s") \
    X(range_refused, SUCCESS, \
      "0x%llx and %llu bytes: %s") \
    X(range_not_granules, INVALID_VALUE, \
      "0x%llx and %llu bytes are not whole granules of the client's device window") \
    X(host_buffer_not_sealed, INVALID_VALUE, \
      "the host buffer is not a sealed memfd") \
    X(host_buffer_too_small, INVALID_VALUE, \
      "the host buffer is smaller than what is to be mapped") \
    X(range_not_pages, INVALID_VALUE, \
      "0x%llx and %llu bytes are not whole pages of the host arena") \
    X(host_buffer_unknown, INVALID_HANDLE, \
      "no host buffer of the client is mapped at 0x%llx") \
    X(host_buffer_unregister, SUCCESS, \
      "the host buffer's addresses could not be reserved again: %s") \
    X(module_exists, INVALID_VALUE, \
      "module %u exists already") \
    X(module_no_memory, SERVER_RESOURCES, \
      "no memory for a module") \
    X(variables_place, INVALID_VALUE, \
      "the client has no memory at 0x%llx for its module's %llu bytes of variables") \
    X(kernel_layout_unknown, NOT_SUPPORTED, \
      "neither the driver (CUDA 12.4 and newer can) nor the image says which parameters " \
      "%s has") \
    X(kernel_parameters_too_large, INVALID_IMAGE, \
      "kernel %s has %llu bytes of parameters, more than any launch can pass") \
    X(module_unknown, INVALID_HANDLE, \
      "there is no module %u") \
    X(name_length, INVALID_VALUE, \
      "a name must have 1 to %zu bytes, none of them zero") \
    X(kernel_not_found, NOT_FOUND, \
      "module %u has no kernel '%.200s': the name must be as in the image, where kernels " \
      "without extern \"C\" have mangled names") \
    X(kernels_max, TOO_MANY_OBJECTS, \
      "the client has looked up as many kernels as it may: unload modules") \
    X(kernel_no_memory, SERVER_RESOURCES, \
      "no memory for a kernel's handle") \
    X(kernel_unknown, INVALID_HANDLE, \
      "there is no kernel %u") \
    X(shared_memory_max, INVALID_VALUE, \
      "no kernel can have %u bytes of shared memory") \
    X(block_threads_max, INVALID_VALUE, \
      "no block can have %u threads") \
    X(variable_not_found, NOT_FOUND, \
      "module %u has no variable '%.200s'") \
    X(variable_unusable, SUCCESS, \
      "the variable's memory can't be used: %s") \
    X(quiet_thread, SERVER_RESOURCES, \
      "the quiet thread could not be started: %s") \
    X(loader_thread, SERVER_RESOURCES, \
      "the %s thread could not be started: %s") \
    X(driver_caller_thread, SERVER_RESOURCES, \
      "the thread that calls the driver could not be started: %s") \
    X(module_launches, NOT_SUPPORTED, \
      "the module launches kernels from the device (%s): with it loaded, kernels of every client " \
      "could run on two multiprocessors beside those granted, on a GPU of compute capability 9.x: " \
      "build it without dynamic parallelism") \
    X(variables_too_large, OUT_OF_MEMORY, \
      "the module's variables are larger than any device's memory") \
    X(worker_client_unknown, INVALID_HANDLE, \
      "there is no client %u") \
    X(worker_message_unknown, PROTOCOL_VIOLATION, \
      "a worker does not take message %u") \
    X(worker_client_exists, INVALID_VALUE, \
      "client %u exists already") \
    X(worker_ledger, SUCCESS, \
      "what clients have used, owe and are owed can't be kept for the next worker: %s") \
    X(worker_attach, SUCCESS, \
      "the client could not be attached: %s") \
    X(worker_window_in_use, INVALID_VALUE, \
      "the client's window can't move: it has memory in it") \
    X(worker_detaching, INVALID_HANDLE, \
      "client %u is being detached already") \
    X(links_max, TOO_MANY_OBJECTS, \
      "the client has as many links as it may have") \
    X(link_unusable, SUCCESS, \
      "the timelines of link %u can't be used: %s") \
    X(rings_unusable, SUCCESS, \
      "the memory of the ring of stream %u can't be used: %s") \
    X(link_no_memory, SERVER_RESOURCES, \
      "no memory for a link") \
    X(worker_memory_unknown, INVALID_HANDLE, \
      "nothing is mapped at 0x%llx with %llu bytes") \
    X(worker_load_unknown, INVALID_HANDLE, \
      "there is no module %u to load") \
    X(worker_module_unknown, INVALID_HANDLE, \
      "there is no module %u") \
    X(worker_no_memory, SERVER_RESOURCES, \
      "no memory for the request") \
    X(partition_none, SUCCESS, \
      "no partition of the multiprocessors could be made for the client: %s") \
    X(streams_max, TOO_MANY_OBJECTS, \
      "the client has as many streams as it may have: destroy one, or raise the server's " \
      "--streams") \
    X(stream_unknown, INVALID_HANDLE, \
      "there is no stream %u") \
    X(events_max, TOO_MANY_OBJECTS, \
      "the client has as many events as it may have") \
    X(event_unknown, INVALID_HANDLE, \
      "there is no event %u") \
    X(event_not_recorded, INVALID_HANDLE, \
      "event %u was never recorded") \
    X(device_arena_place, DEVICE_NOT_READY, \
      "the driver does not give the device arena its place at 0x%llx: give gpushared " \
      "another --device-base and --host-base") \
    X(device_gone, DEVICE_NOT_READY, \
      "the driver does not show the GPU that was there when gpushared started: see nvidia-smi -L, " \
      "and restart gpushared if GPUs or MIG instances have changed") \
    X(device_arena_memory, DEVICE_NOT_READY, \
      "memory at the device arena does not keep what is written to it: the driver or " \
      "the device is faulty") \
    X(device_heap, DEVICE_NOT_READY, \
      "the driver did not make a heap of %s for kernels that allocate: %s (%s); give gpushared a " \
      "smaller --kernel-heap, or free memory of the device") \
    X(device_no_memory_mapping, NOT_SUPPORTED, \
      "the device or its driver lacks virtual memory management, which gpushare needs") \
    X(device_no_memory_descriptors, NOT_SUPPORTED, \
      "the device or its driver lacks memory as file descriptors, which gpushare needs") \
    X(device_no_same_address, NOT_SUPPORTED, \
      "the device or its driver lacks the same address for registered host memory on both " \
      "sides, which gpushare needs") \
    X(device_arena_use, SUCCESS, \
      "memory at the device arena can't be used: %s (%s)") \
    X(device_description, SUCCESS, \
      "the driver could not describe the device: %s (%s)") \
    X(device_search, SUCCESS, \
      "the driver could not list its devices: %s (%s)") \
    X(host_arena_reserved, DEVICE_NOT_READY, \
      "the host arena at 0x%llx, %llu bytes, cannot be reserved: %s; give gpushared " \
      "another --host-base and --device-base, or a smaller --arena") \
    X(completer_thread, SERVER_RESOURCES, \
      "the completer thread could not be started: %s") \
    X(submitter_doorbell, SERVER_RESOURCES, \
      "the submitter's doorbell could not be made: %s") \
    X(submitter_events, SERVER_RESOURCES, \
      "the submitter's events could not be made: %s") \
    X(submitter_thread, SERVER_RESOURCES, \
      "the submitter thread could not be started: %s") \
    X(sm_groups_split, UNKNOWN, \
      "the worker can't use the division of the multiprocessors: %u SM groups of %u and one of %u") \
    X(control_doorbell, SERVER_RESOURCES, \
      "the control thread's doorbell could not be made: %s") \
    X(client_memory_unsealed, SERVER_RESOURCES, \
      "the client's shared memory is not sealed, or too small") \
    X(timelines_register, SUCCESS, \
      "the driver could not register the client's timelines: %s") \
    X(range_taken, INVALID_VALUE, \
      "0x%llx and %llu bytes: the client has something there already") \
    X(device_memory_create, SUCCESS, \
      "the driver could not make %llu bytes of device memory: %s") \
    X(device_memory_clear, SUCCESS, \
      "the driver could not clear %llu bytes of device memory at 0x%llx: %s") \
    X(device_memory_unmap, SUCCESS, \
      "the driver could not unmap the device memory at 0x%llx: %s") \
    X(device_memory_lost, SUCCESS, \
      "client %u: the device memory at 0x%llx stays taken until this worker ends: %s") \
    X(host_buffer_register, SUCCESS, \
      "the driver could not register the host buffer at 0x%llx: %s") \
    X(module_refused, SUCCESS, \
      "the driver can't load the module: %s") \
    X(module_refused_log, SUCCESS, \
      "the driver can't load the module: %s: %s") \
    X(module_given_up, CONNECTION_LOST, \
      "the module was not loaded: its client or the GPU's worker ended before the load began") \
    X(module_left, SUCCESS, \
      "client %u, module %u: its PTX is left to the driver's compiler: %s") \
    X(variable_left, SUCCESS, \
      "client %u, module %u: variable %s stays with the driver: %s") \
    X(variable_is_texture, SUCCESS, \
      "it is a texture, sampler or surface") \
    X(variable_is_extern, SUCCESS, \
      "it is defined in another module") \
    X(variable_is_redeclared, SUCCESS, \
      "it is declared more than once") \
    X(variable_is_managed, SUCCESS, \
      "it is managed memory") \
    X(variable_is_unsized, SUCCESS, \
      "its size is not known") \
    X(variable_is_aligned, SUCCESS, \
      "it needs a larger alignment than client memory has") \
    X(variable_holds_function, SUCCESS, \
      "its initial value holds the address of a function") \
    X(variable_is_debugged, SUCCESS, \
      "debugging information names it") \
    X(variable_stays_beside, SUCCESS, \
      "another variable of its statement stays") \
    X(variable_is_held, SUCCESS, \
      "the initial value of one that stays holds its address") \
    X(variable_holds, SUCCESS, \
      "its initial value holds the address of one that stays") \
    X(variables_write, SUCCESS, \
      "the driver could not write the initial values of the module's variables: %s") \
    X(kernel_exists, INVALID_VALUE, \
      "the kernel's number %u is taken or zero") \
    X(kernel_lookup, SUCCESS, \
      "the driver could not look up the kernel '%.200s': %s") \
    X(kernel_shared_memory, SUCCESS, \
      "the driver does not give kernel %u %u bytes of shared memory: %s") \
    X(kernel_occupancy, SUCCESS, \
      "the driver does not say how many blocks of kernel %u fit: %s") \
    X(variable_lookup, SUCCESS, \
      "the driver could not look up the variable '%.200s': %s") \
    X(stream_exists, INVALID_VALUE, \
      "stream %u is taken, or a higher number than the client may have") \
    X(event_exists, INVALID_VALUE, \
      "the event's number %u is taken or zero") \
    X(event_create, SUCCESS, \
      "the driver could not make an event: %s") \
    X(event_no_memory, SERVER_RESOURCES, \
      "no memory for an event") \
    X(event_elapsed, SUCCESS, \
      "the driver does not say the time between events %u and %u: %s") \
    X(link_exists, INVALID_VALUE, \
      "link %u exists already") \
    X(trace_memory_unusable, SUCCESS, \
      "the memory for a trace can't be used: it is not sealed or too small, or can't be " \
      "mapped") \
    X(trace_memory_foreign, INVALID_VALUE, \
      "the next worker can't go on with it: the last one left no trace that can be read") \
    X(partitions_refused, SUCCESS, \
      "the driver failed dividing the multiprocessors with %s (%d)") \
    X(partitions_green_refused, SUCCESS, \
      "the driver failed making a green context with %s (%d)") \
    X(partitions_driver, SUCCESS, \
      "the driver has no green contexts (CUDA 12.5 and newer do)") \
    X(partitions_device, SUCCESS, \
      "the device can't be divided into groups of multiprocessors") \
    X(partitions_off, SUCCESS, \
      "device %u: limits of multiprocessors are enforced by duty cycle: %s") \
    X(work_queues_refused, SUCCESS, \
      "device %u: partitions share the hardware queues, since the driver refused them queues of " \
      "their own: %s") \
    X(streams_made_openly, SUCCESS, \
      "device %u: the driver made a stream beside a running kernel without waiting for it; streams " \
      "need no quiet window from now on") \
    X(partitions_ended_openly, SUCCESS, \
      "device %u: the driver destroyed a partition beside a running kernel without waiting for it; " \
      "that needs no quiet window from now on") \
    X(partition_later, SUCCESS, \
      "device %u: a client can't be put on other multiprocessors yet: %s") \
    X(local_memory_refused, SUCCESS, \
      "device %u: the driver could not make room for %llu bytes of local memory a thread: %s; " \
      "kernels that need as much fail until there is more memory") \
    X(local_memory_room, SUCCESS, \
      "device %u: there is room for %llu bytes of local memory a thread, which takes up to %llu " \
      "MiB of the device's memory") \
    X(local_memory_unloadable, SUCCESS, \
      "device %u: no kernel could be launched beforehand to make room for local memory: %s; " \
      "a first kernel with much local memory may hold up others") \
    X(sm_groups_driver, SUCCESS, \
      "the driver could not divide the multiprocessors: %s") \
    X(streams_driver, SUCCESS, \
      "the driver could not make the first streams: %s") \
    X(timing_events, SUCCESS, \
      "the driver could not make timing events: %s") \
    X(driver_call, SUCCESS, \
      "the driver's %s failed: %s (%s)") \
    X(context_lost, SUCCESS, \
      "device %u: %s during work on the device (%s)") \
    X(context_lost_entering, SUCCESS, \
      "device %u: %s when a thread entered the context (%s)") \
    X(context_lost_request, SUCCESS, \
      "device %u: %s during a client's request (%s)") \
    X(context_lost_making, SUCCESS, \
      "device %u: %s while partitions or streams were made (%s)") \
    X(context_lost_local_memory, SUCCESS, \
      "device %u: %s while room for local memory was made (%s)") \
    X(context_lost_launch, SUCCESS, \
      "device %u: %s during a launch (%s)") \
    X(context_lost_copy, SUCCESS, \
      "device %u: %s during a copy (%s)") \
    X(context_lost_fill, SUCCESS, \
      "device %u: %s during a fill (%s)") \
    X(context_lost_event, SUCCESS, \
      "device %u: %s while an event was recorded (%s)") \
    X(context_lost_order, SUCCESS, \
      "device %u: %s while two streams were ordered (%s)") \
    X(context_lost_binding, SUCCESS, \
      "device %u: %s while a stream of a partition was looked for (%s)") \
    X(context_lost_completion, SUCCESS, \
      "device %u: %s while a completion was written (%s)") \
    X(supervisor_channel, SUCCESS, \
      "the worker can't speak with its supervisor: %s") \
    X(supervisor_message, PROTOCOL_VIOLATION, \
      "the supervisor sent a message that breaks the protocol: %s") \
    X(client_state_step, SUCCESS, \
      "client %u: from %s to %s is not a step of a client's state: the worker is faulty and ends") \
    X(command_malformed, PROTOCOL_VIOLATION, \
      "%s") \
    X(command_launch_function, INVALID_HANDLE, \
      "launch.function: this client has no kernel %u") \
    X(command_launch_block, INVALID_VALUE, \
      "launch.block: %u threads, but the kernel takes at most %u") \
    X(command_launch_parameter_bytes, INVALID_VALUE, \
      "launch.parameter_bytes: %u, but the kernel takes %u") \
    X(command_launch_parameter_offset, INVALID_VALUE, \
      "launch.parameter_offset: %u and %zu bytes leave the ring's arena") \
    X(command_launch_shared_bytes, INVALID_VALUE, \
      "launch.shared_bytes: %u, but the kernel may have at most %u") \
    X(command_copy_destination, INVALID_HANDLE, \
      "copy.destination: 0x%llx and %llu bytes are not memory of this client") \
    X(command_copy_source, INVALID_HANDLE, \
      "copy.source: 0x%llx and %llu bytes are not memory of this client") \
    X(command_copy_overlap, INVALID_VALUE, \
      "copy: 0x%llx and 0x%llx overlap within %llu bytes") \
    X(command_fill_width, INVALID_VALUE, \
      "fill.width: %u is neither 1, 2 nor 4") \
    X(command_fill_alignment, INVALID_VALUE, \
      "fill.destination: 0x%llx is not a multiple of the width %u") \
    X(command_fill_destination, INVALID_HANDLE, \
      "fill.destination: 0x%llx and %llu elements of %u bytes are not memory of this client") \
    X(command_over_edge, PROTOCOL_VIOLATION, \
      "%s: 0x%llx and %llu bytes cross a multiple of %u bytes") \
    X(command_wait_link, INVALID_HANDLE, \
      "wait.link%u: this client has no link %u") \
    X(command_wait_link_stream, INVALID_HANDLE, \
      "wait.stream%u: link %u has no stream %u") \
    X(command_wait_stream, INVALID_HANDLE, \
      "wait.stream%u: this client has no stream %u") \
    X(command_wait_never, INVALID_HANDLE, \
      "wait.value%u: stream %u is destroyed and will never reach %llu") \
    X(command_wait_itself, DEPENDENCY_CIRCLE, \
      "wait.value%u: the stream waits for its own value %llu") \
    X(command_wait_circle, DEPENDENCY_CIRCLE, \
      "wait: streams %u and %u wait for each other") \
    X(command_event_record, INVALID_HANDLE, \
      "event_record.event: this client has no event %u") \
    X(ring_tail, PROTOCOL_VIOLATION, \
      "client %u, stream %u: ring_header.tail is more than a ring ahead, or went back") \
    X(schedule_range, INVALID_VALUE, \
      "%s is %llu; it must be %llu to %llu") \
    X(time_request_over_limit, INVALID_VALUE, \
      "time request %u.%02u %% is more than the time limit %u.%02u %%") \
    X(threads_range, INVALID_VALUE, \
      "threads: request %u and limit %u (hundredths of a per cent) must be 0 to the limit " \
      "and 1 to %u") \
    X(time_account_overcommitted, NO_ROOM, \
      "time: the requests of other clients of %s come to %s; with the %s of this request that makes " \
      "%s, more than the %s that they have together: ask for less, or an administrator can give " \
      "them more") \
    X(time_overcommitted_account, NO_ROOM, \
      "time: the requests of others on these multiprocessors (%u) are %s; with the %s of %s " \
      "that makes %s, more than 100 %%: wait until one of them has left, or an administrator " \
      "can lower a request") \
    X(time_overcommitted, NO_ROOM, \
      "time: the requests of other clients on these multiprocessors (%u) are %s; with " \
      "the %s of this request that makes %s, more than 100 %%: ask for %s at most, or an " \
      "administrator can lower another request") \
    X(time_overcommitted_whole, NO_ROOM, \
      "time: the requests of other clients on these multiprocessors (%u) are %s; with " \
      "the %s of this request that makes %s, more than 100 %%: nothing is left to ask for " \
      "until one of them has left, or an administrator lowers its request") \
    X(threads_overcommitted, NO_ROOM, \
      "threads: the requests of others (%u) have %u of the device's %u SM groups of %u " \
      "multiprocessors of their own; with the %u of this request that makes %u: ask for %u at " \
      "most, which is %s %%, or an administrator can lower another request") \
    X(threads_overcommitted_whole, NO_ROOM, \
      "threads: the requests of others (%u) have %u of the device's %u SM groups of %u " \
      "multiprocessors of their own; with the %u of this request that makes %u: nothing is left " \
      "to ask for; an administrator can lower another request") \
    X(threads_account_overcommitted, NO_ROOM, \
      "threads: other clients of the account (%u) have %u of its %u SM groups of %u " \
      "multiprocessors of their own; with the %u of this request that makes %u: ask for less, or " \
      "an administrator can lower another request") \
    X(threads_account_too_few, NO_ROOM, \
      "threads: clients of the account (%u) have SM groups of their own (%u, of %u multiprocessors " \
      "each); the account would have %u in total: lower its clients' requests first") \
    X(variable_form, INVALID_ENVIRONMENT, \
      "%s=\"%s\" is not %s") \
    X(variable_list, INVALID_ENVIRONMENT, \
      "%s=\"%s\": at most %d devices may be listed") \
    X(variable_request, INVALID_ENVIRONMENT, \
      "%s requests %s, and %s limits it to %s: lower the request or raise the limit") \
    X(variable_device_twice, INVALID_ENVIRONMENT, \
      "%s names device %d twice: name each device once") \
    X(variable_no_device, INVALID_ENVIRONMENT, \
      "%s limits device %s, which does not exist: this server has %u, numbered from 0") \
    X(variable_device_unclear, INVALID_ENVIRONMENT, \
      "%s limits device %s, which could be one of several: this server has %u, numbered " \
      "from 0") \
    X(variable_limit_twice, INVALID_ENVIRONMENT, \
      "%s limits device %d twice: name each device once")
/* clang-format on */

#define MESSAGE_CONSTANTS(name, error, format)                                                     \
    enum { message_number_##name = PROTO_ERROR_##error };                                          \
    __attribute__((unused)) static const char message_text_##name[] = format;
MESSAGES(MESSAGE_CONSTANTS)
#undef MESSAGE_CONSTANTS

#define MESSAGE(name)      (uint32_t) message_number_##name, message_text_##name
#define MESSAGE_TEXT(name) message_text_##name

struct message {
    const char *name;
    uint32_t number; /* 0: the number depends on the cause */
    const char *format;
};

/* The row with this index, counted from 0; NULL behind the last row. Static, any thread. */
const struct message *messages_at(size_t index);

/* Writes the table to a stream, one message a line: its name, the name of its error number
 * ("any" if that depends on the cause) and its format. Programs call it for --list-messages. */
void messages_print(FILE *to);

#endif
