/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_server: gpushared's start, its command line, its devices, and what its log says of
 * clients. Part of the table in common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_SERVER_H
#define GPUSHARE_COMMON_MESSAGES_SERVER_H

/* clang-format off */
#define MESSAGES_SERVER(X) \
    X(hello_late, CONNECTION_LOST, \
      "the client connected and sent nothing: --hello-timeout says how long it may take") \
    X(attach_late, CONNECTION_LOST, \
      "the client said hello and did not attach: --hello-timeout says how long it may take") \
    X(memory_over_limit, OUT_OF_MEMORY, \
      "%s: %s of %s are in use or guaranteed to clients and %s more were asked for: free some, or " \
      "wait until other clients have") \
    X(memory_pooled, OUT_OF_MEMORY, \
      "%s: %s of %s are in use or guaranteed to clients, %s of it kept for the next clients of its " \
      "users, and %s more were asked for: memory that is kept is given back when no kernel runs; " \
      "try again then, or give gpushared a smaller --pinned-pool") \
    X(log_account_refused, SUCCESS, \
      "GPU %u: the worker refuses the requests of %s, so nothing is guaranteed to it: %s") \
    X(log_account_unlimited, SUCCESS, \
      "GPU %u: the worker could not be told the limits of %s, so they do not hold there") \
    X(log_accounts_left_out, SUCCESS, \
      "client %u (%s) counts in the %u accounts with the lowest limits; others that fit it have no " \
      "effect: %u") \
    X(memory_over_total, OUT_OF_MEMORY, \
      "%s: %s of %s are in use or guaranteed to clients and %s more were asked for: free some, " \
      "wait until other clients have, or ask the administrator for a higher total (it comes from " \
      "%s)") \
    X(limit_by_client, OUT_OF_MEMORY, \
      "%s: %s of %s are in use and %s more were asked for: free some, or ask for a higher limit " \
      "(it comes from %s)") \
    X(limit_by_administrator, OUT_OF_MEMORY, \
      "%s: %s of %s are in use and %s more were asked for: free some, or ask the administrator " \
      "for a higher limit (it comes from %s)") \
    X(limit_by_default, OUT_OF_MEMORY, \
      "%s: %s of %s are in use and %s more were asked for: free some, or ask the administrator " \
      "for a higher limit") \
    X(limit_whole, OUT_OF_MEMORY, \
      "%s: %s of %s are in use and %s more were asked for: free some: there is no more") \
    X(source_options, SUCCESS, \
      "an option of the program") \
    X(source_client, SUCCESS, \
      "the client") \
    X(source_server, SUCCESS, \
      "%s of gpushared") \
    X(source_server_options, SUCCESS, \
      "an option of gpushared") \
    X(source_file, SUCCESS, \
      "%.200s:%u") \
    X(source_admin, SUCCESS, \
      "gpusharectl set") \
    X(source_unknown, SUCCESS, \
      "its grant") \
    X(own_request_lowered, SUCCESS, \
      "the request of %s is %s now, of %s asked for: others are there, and a client may reserve " \
      "for itself an equal part; it rises again when they leave") \
    X(log_own_requests_lowered, SUCCESS, \
      "what clients request for themselves is lowered to equal parts from now on: client %u '%s' " \
      "has for %s %s, of %s asked for; a request in a rule or profile is not lowered") \
    X(log_own_requests_whole, SUCCESS, \
      "what clients request for themselves is theirs again, as they asked for it") \
    X(log_own_request_stays, SUCCESS, \
      "client %u: what it requests for itself stays: %s") \
    X(guarantee_total, NO_ROOM, \
      "a request of %s of %s does not fit: %s: of %s others hold %s, in use or guaranteed: ask " \
      "for less (the request comes from %s, and the total from %s), or wait until they have freed " \
      "some") \
    X(guarantee_never, NO_ROOM, \
      "a request of %s of %s does not fit: %s are guaranteed to other clients, together %s, " \
      "and there are %s: ask for less (the request comes from %s)") \
    X(guarantee_not_now, NO_ROOM, \
      "a request of %s of %s does not fit now: of %s other clients have %s guaranteed and use %s " \
      "beyond that: ask for less (the request comes from %s), or wait until they have freed some") \
    X(peer_unknown, CONNECTION_LOST, \
      "the kernel does not say which process connected: %s") \
    X(memory_descriptors, SERVER_RESOURCES, \
      "%s: %llu of %llu are in use: free some, allocate fewer and larger " \
      "pieces, or raise the server's LimitNOFILE") \
    X(module_variables, SUCCESS, \
      "memory for the module's variables: %s") \
    X(trace_no_room, SERVER_RESOURCES, \
      "the server has no memory left for a trace: try again later") \
    X(trace_worker_stuck, DEVICE_NOT_READY, \
      "the worker takes no requests: try again when it has ended") \
    X(status_devices, SUCCESS, \
      "devices ready: %u of %u") \
    X(status_devices_trouble, SUCCESS, \
      "devices ready: %u of %u; %s") \
    X(socket_passed, SUCCESS, \
      "the clients' socket that was passed to the server can't be used: %s") \
    X(server_ended, CONNECTION_LOST, \
      "the server is stopping: connect again when it has started") \
    X(server_cannot_start, CONNECTION_LOST, \
      "the server can't start: its log says why ('journalctl -u gpushared', 'gpushare doctor')") \
    X(server_cannot_start_why, CONNECTION_LOST, \
      "the server can't start: %s: mend that, and ask again ('gpushare doctor' says more)") \
    X(client_killed, KILLED, \
      "an administrator ended the connection: %s: ask that user why, and connect again") \
    X(message_serial, PROTOCOL_VIOLATION, \
      "%s came with the serial %llu, which is not greater than %llu, that of the request " \
      "before it") \
    X(message_number, INVALID_VALUE, \
      "%s came with the number %u: the server chooses it, a client sends 0") \
    X(object_unknown, INVALID_HANDLE, \
      "there is no %s %u") \
    X(device_memory_not_begun, INVALID_HANDLE, \
      "no device memory of this client begins at 0x%llx") \
    X(share_exists, INVALID_HANDLE, \
      "the buffer at 0x%llx is shared with this connection already") \
    X(share_buffer_unknown, INVALID_HANDLE, \
      "no host buffer of that connection begins at 0x%llx") \
    X(host_buffer_not_begun, INVALID_HANDLE, \
      "no host buffer of this client begins at 0x%llx") \
    X(host_descriptors, SERVER_RESOURCES, \
      "%s: %llu of %llu are in use: allocate fewer, larger buffers") \
    X(rings_need, SUCCESS, \
      "streams need %s of pinned host memory for what is launched into them: ") \
    X(rings_memory, SERVER_RESOURCES, \
      "the server has no memory or file descriptors for another stream: %s") \
    X(ring_unknown, INVALID_VALUE, \
      "there is no ring of stream %u: the number of a client's streams is %u") \
    X(host_no_descriptor, SERVER_RESOURCES, \
      "the server has no file descriptor for another buffer: free some, or raise its limit " \
      "(LimitNOFILE)") \
    X(host_no_memory, SERVER_RESOURCES, \
      "this machine has no memory for the buffer") \
    X(module_descriptors, SERVER_RESOURCES, \
      "%s: %llu of %llu are in use: unload modules or free memory") \
    X(worker_described_twice, WORKER_LOST, \
      "the worker described its device twice") \
    X(device_unusable, WORKER_LOST, \
      "the driver reports a device without memory, or with a granularity that gpushare " \
      "can't use") \
    X(worker_ended_how, WORKER_LOST, \
      "the worker of device %u ended before it was ready: %s") \
    X(worker_ended_why, WORKER_LOST, \
      "the worker of device %u ended: %s") \
    X(worker_trouble, DEVICE_NOT_READY, \
      "the worker ended: %s") \
    X(worker_trouble_early, DEVICE_NOT_READY, \
      "the worker ended before it was ready: %s") \
    X(worker_hung_up, WORKER_LOST, \
      "it closed its connection") \
    X(process_killed, SUCCESS, \
      "killed by signal %d (%s)") \
    X(process_unexecuted, SUCCESS, \
      "its program could not be executed") \
    X(process_exited, SUCCESS, \
      "exit status %d") \
    X(worker_not_started, DEVICE_NOT_READY, \
      "the worker could not be started: %s") \
    X(worker_link_stuck, WORKER_LOST, \
      "it no longer takes requests") \
    X(worker_link_lost, WORKER_LOST, \
      "the worker ended before it had answered: connect again") \
    X(worker_link_client_ended, CONNECTION_LOST, \
      "the client ended before the worker answered") \
    X(worker_link_unasked, WORKER_LOST, \
      "it answered a request that it was not sent") \
    X(worker_link_wrong_answer, UNKNOWN, \
      "the worker answered with %s, which is no answer to %s") \
    X(trace_hurried, SUCCESS, \
      "it was ended early, after %.3f of %.3f s") \
    X(trace_worker_ended, SUCCESS, \
      "the worker ended before it could end the trace: the last records may be missing") \
    X(trace_no_worker, SUCCESS, \
      "the worker ended after %.3f of %.3f s, and no other served before the trace was over") \
    X(trace_start_late, DEVICE_NOT_READY, \
      "the worker has not answered for 5 s: try again, and look at the server's log") \
    X(trace_stop_late, SUCCESS, \
      "the worker has not answered for 5 s: its last records may be missing") \
    X(trace_never_begun, DEVICE_NOT_READY, \
      "the worker ended before the trace had begun: try again") \
    X(descriptors_for_clients, SERVER_RESOURCES, \
      "--max-clients %u needs more than the %u file descriptors that this process may have: " \
      "name %u at most, or raise the limit (ulimit -n, LimitNOFILE)") \
    X(descriptors_too_few, SERVER_RESOURCES, \
      "the %u file descriptors that this process may have are too few for one client: raise the " \
      "limit (ulimit -n, LimitNOFILE)") \
    X(descriptors_unknown, SERVER_RESOURCES, \
      "the limit of file descriptors can't be read: %s") \
    X(socket_make, SUCCESS, \
      "the clients' socket %s can't be made: %s") \
    X(socket_taken, SUCCESS, \
      "the clients' socket %s can't be made: another server listens there, or the file is " \
      "no socket: name another with --socket") \
    X(socket_folder, SUCCESS, \
      "the clients' socket %s can't be made: %s: start as root, or set XDG_RUNTIME_DIR to a folder " \
      "of your own, for clients and gpusharectl too, or name another socket with --socket") \
    X(listen_not_socket, INVALID_VALUE, \
      "LISTEN_FDS: descriptor %d is not a socket") \
    X(listen_not_open, INVALID_VALUE, \
      "LISTEN_FDS: descriptor %d is not open") \
    X(listen_name, INVALID_VALUE, \
      "LISTEN_FDNAMES: \"%s\" is neither \"client\" nor \"admin\": set FileDescriptorName= " \
      "in the socket unit") \
    X(listen_type, INVALID_VALUE, \
      "LISTEN_FDS: descriptor %d (\"client\") is not a listening Unix socket of type " \
      "SOCK_SEQPACKET: use ListenSequentialPacket= in the socket unit") \
    X(listen_type_admin, INVALID_VALUE, \
      "LISTEN_FDS: descriptor %d (\"admin\") is not a listening Unix socket of type " \
      "SOCK_STREAM: use ListenStream= in the socket unit") \
    X(listen_twice, INVALID_VALUE, \
      "LISTEN_FDS: two sockets are named \"%s\": leave one out") \
    X(listen_pid, INVALID_VALUE, \
      "LISTEN_PID=\"%.40s\" is not a process number") \
    X(listen_count, INVALID_VALUE, \
      "LISTEN_FDS=\"%.40s\" is not a number from 0 to 65536") \
    X(watchdog_time, INVALID_VALUE, \
      "WATCHDOG_USEC=\"%.40s\" is not a number of microseconds above 0: leave it to systemd to set it") \
    X(watchdog_pid, INVALID_VALUE, \
      "WATCHDOG_PID=\"%.40s\" is not a process number: leave it to systemd to set it") \
    X(listen_names_few, INVALID_VALUE, \
      "LISTEN_FDNAMES has fewer names than LISTEN_FDS says") \
    X(option_value, INVALID_VALUE, \
      "%s %s: must be %s") \
    X(option_admins_max, INVALID_VALUE, \
      "--admin-uid can be given %d times") \
    X(option_arena, INVALID_VALUE, \
      "--device-base, --host-base, --arena: the bases must differ in one bit and be " \
      "multiples of the arena's size, a power of two of at least %llu MiB") \
    X(option_max_window, INVALID_VALUE, \
      "--max-window: must be a power of two from %llu MiB to the arena's size") \
    X(option_argument, INVALID_VALUE, \
      "%s: gpushared takes options only; see --help") \
    X(log_connection_refused, SUCCESS, \
      "the server could not serve a new connection: %s") \
    X(log_connections_shed, SUCCESS, \
      "the server closes new connections: %s; raise the limit of file descriptors " \
      "(LimitNOFILE)") \
    X(log_close_slow, SUCCESS, \
      "closing a descriptor that client %u had sent took %.1f s; the server did not wait for it") \
    X(log_close_hangs, SUCCESS, \
      "closing a descriptor that client %u had sent has taken %.0f s so far; it keeps a thread of " \
      "the server") \
    X(log_closes_wait, SUCCESS, \
      "descriptors that clients had sent and that wait to be closed: %u; client %u, which sent the " \
      "last one, is ended") \
    X(log_connection_gone, SUCCESS, \
      "connection %u (pid %d, uid %u) is gone before it became a client: %s") \
    X(log_client_refused, SUCCESS, \
      "client %u '%s' (pid %d, uid %u) is refused: %s: %s") \
    X(log_client_gone, SUCCESS, \
      "client %u '%s' (pid %d, uid %u) is gone: %s") \
    X(log_left_out, SUCCESS, \
      "client %u (uid %u): %u more messages about it were left out: at most %d in %d s are logged") \
    X(log_left_out_user, SUCCESS, \
      "uid %u: %u more messages about its clients were left out: at most %d in %d s are logged") \
    X(log_client_ended, SUCCESS, \
      "client %u '%s' (pid %d, uid %u) is disconnected: %s: %s") \
    X(partition_awaited, SUCCESS, \
      "the client's work is held, for the driver makes no set of multiprocessors for it: %s; that " \
      "is tried again every second") \
    X(load_waits_own, SUCCESS, \
      "a module load waits until kernels of its own client (%u) have ended: load modules before " \
      "launching, or wait for the kernels first") \
    X(load_waits_same_user, SUCCESS, \
      "module loads wait until kernels of client %u ('%s', process %d) have ended: end that " \
      "program, or ask an administrator (gpusharectl kill %u, and if the kernel still does not " \
      "end, kill --force %u)") \
    X(load_waits_other, SUCCESS, \
      "module loads wait until kernels of client %u, which is another user's, have ended: ask an " \
      "administrator, who can see whose (gpusharectl clients) and end it (gpusharectl kill %u, " \
      "and if the kernel still does not end, kill --force %u)") \
    X(load_waits_left_same_user, SUCCESS, \
      "module loads wait until kernels of client %u ('%s'), which has left, have ended: if they " \
      "never end, only a new worker ends them, which interrupts what others have in flight: ask an " \
      "administrator (gpusharectl kill %u says whom, kill --force %u does it)") \
    X(load_waits_left_other, SUCCESS, \
      "module loads wait until kernels of client %u, which is another user's and has left, have " \
      "ended: if they never end, only a new worker ends them, which interrupts what others have in " \
      "flight: ask an administrator (gpusharectl kill %u says whom, kill --force %u does it)") \
    X(log_client_used, SUCCESS, \
      "client %u '%s' (pid %d, uid %u) used %.6f GPU seconds; launches: %llu, copies: %llu, " \
      "of %s") \
    X(log_object_not_destroyed, SUCCESS, \
      "client %u: the worker sent %s of %u, which was not destroyed") \
    X(log_unmap_refused, SUCCESS, \
      "client %u: %s of %s can't be unmapped: %.300s") \
    X(log_host_not_emptied, SUCCESS, \
      "client %u: %s of %s stay in use as long as the client keeps the descriptor: %s") \
    X(log_quiesce_refused, SUCCESS, \
      "client %u: memory that it freed is given to nobody until its session ends, since its worker " \
      "can't say when its work has ended: %.300s") \
    X(log_descriptors, SUCCESS, \
      "clients that may connect: %u, of one user: %u; of %u file descriptors %u are for memory " \
      "handles and host buffers, %u of these for one user and %u for one client") \
    X(log_much_pinned, SUCCESS, \
      "--host-memory-total: clients may pin %s of host memory, more than a quarter of the %s that " \
      "this machine has; what is pinned can't be swapped out") \
    X(log_device_trouble, SUCCESS, \
      "device %u: %s") \
    X(log_device_ready, SUCCESS, \
      "device %u: %s, %u multiprocessors, %llu MiB, is ready") \
    X(log_worker_lost, SUCCESS, \
      "device %u: the worker is lost: %s: %s") \
    X(log_worker_ended, SUCCESS, \
      "device %u: the worker ended: %s") \
    X(log_worker_unasked, SUCCESS, \
      "device %u: the worker sent %s without being asked") \
    X(log_schedule_set, SUCCESS, \
      "device %u, set by %s: %s") \
    X(log_schedule_refused, SUCCESS, \
      "device %u can't be shared by %s: %s") \
    X(log_trace, SUCCESS, \
      "device %u: a trace of %.3f s for %s") \
    X(log_trace_over, SUCCESS, \
      "device %u: the trace for %s is over: %s") \
    X(log_ready, SUCCESS, \
      "ready: clients connect to %s") \
    X(log_no_device, SUCCESS, \
      "no device can be served with the driver %s: %s; no other driver is tried") \
    X(log_no_device_nvidia, SUCCESS, \
      "no device can be served with the driver %s: %s; no other driver is tried; without a GPU, " \
      "--driver softgpu runs kernels on the CPU") \
    X(log_stopping, SUCCESS, \
      "stopping: %s") \
    X(log_stopped, SUCCESS, \
      "stopped") \
    X(log_setup_failed, SUCCESS, \
      "the supervisor could not be set up: %s") \
    X(log_handles_left, SUCCESS, \
      "handles of the event loop were left open") \
    X(log_notify_socket, SUCCESS, \
      "NOTIFY_SOCKET=%s can't be used: %s") \
    X(log_client_attached, SUCCESS, \
      "client %u '%s' (pid %d, uid %u) has device %u: %u multiprocessors, %s of device memory, " \
      "%s of pinned host memory") \
    X(log_client_attached_duty, SUCCESS, \
      "client %u '%s' (pid %d, uid %u) has device %u: %u multiprocessors by duty cycle, %s of " \
      "device memory, %s of pinned host memory") \
    X(log_client_changed, SUCCESS, \
      "client %u '%s' was given by %s: %s; at most %u multiprocessors; %s") \
    X(log_guarantee_lost, SUCCESS, \
      "client %u: its guarantee of before can't be restored: other clients have the memory") \
    X(log_client_over, SUCCESS, \
      "all that client %u had has come back") \
    X(change_client_left, NOT_FOUND, \
      "the client left before the change was made") \
    X(trace_no_descriptor, SERVER_RESOURCES, \
      "the server has no descriptor left for the trace") \
    X(compiler_unopened, SERVER_RESOURCES, \
      "the compiler could not be set up: %s") \
    X(compiler_absent, SUCCESS, \
      "device %d: no process that compiles PTX can start (%s), so the worker compiles by itself, " \
      "where nothing bounds what a module takes") \
    X(compiler_lacking, SUCCESS, \
      "device %u: the driver has no linker, so PTX is compiled while it is loaded, and everybody " \
      "waits for that") \
    X(compiler_done, SUCCESS, \
      "client %u, module %u: %zu bytes of PTX were compiled in %llu ms") \
    X(compiler_refused, SUCCESS, \
      "client %u: refused: %s") \
    X(compiler_time, SERVER_RESOURCES, \
      "its PTX was not compiled within %u s, so the compiler was ended: split the module, " \
      "compile it to a cubin, or give gpushared a longer --compile-time") \
    X(compiler_memory, SERVER_RESOURCES, \
      "compiling its PTX takes more than the %s of memory that it may take: split the module, " \
      "compile it to a cubin, or give gpushared a larger --compile-memory") \
    X(compiler_crashed, SERVER_RESOURCES, \
      "the driver's compiler crashed on its PTX (signal %d), perhaps for want of more than the %s of " \
      "memory that it may take: compile the module to a cubin, or give gpushared a larger " \
      "--compile-memory") \
    X(compiler_exited, SERVER_RESOURCES, \
      "the driver's compiler ended on its PTX (exit status %d), perhaps for want of more than the " \
      "%s of memory that it may take: compile the module to a cubin, or give gpushared a larger " \
      "--compile-memory") \
    X(compiler_code_max, SERVER_RESOURCES, \
      "its PTX was compiled to %llu bytes, more than one load may have: split the module, or give " \
      "gpushared a larger --image-memory")
/* clang-format on */

#endif
