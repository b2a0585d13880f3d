/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_recovery: clients that go on with another worker. Part of the table in
 * common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_RECOVERY_H
#define GPUSHARE_COMMON_MESSAGES_RECOVERY_H

/* clang-format off */
#define MESSAGES_RECOVERY(X) \
    X(worker_client_resumed, INVALID_VALUE, \
      "client %u is not being restored") \
    X(device_memory_import, SUCCESS, \
      "the driver could not map %llu bytes of device memory at 0x%llx again: %s") \
    X(session_not_restored, SUCCESS, \
      "%s: the next worker could not be given what the client had on the device: connect again") \
    X(module_state_lost, STATE_LOST, \
      "the state of module %u was lost with the server's worker, since it %s: unload the module " \
      "and load it again") \
    X(module_reaches_lost, STATE_LOST, \
      "the state of module %u was lost with the server's worker, since it %s, and a kernel of " \
      "another module might follow an address of that: unload the lost module and load it again") \
    X(unsaved_variables, SUCCESS, \
      "has variables that stay in the driver's memory") \
    X(unsaved_function_addresses, SUCCESS, \
      "takes or calls addresses of functions, which may lie in memory") \
    X(unsaved_constant_addresses, SUCCESS, \
      "takes generic addresses of constants, which may lie in memory") \
    X(unsaved_device_heap, SUCCESS, \
      "allocates memory in kernels") \
    X(unsaved_no_ptx, SUCCESS, \
      "is no PTX, and the server does not know what it had on the device") \
    X(unsaved_unread, SUCCESS, \
      "is PTX that the server can't read, and it does not know what the module had on the device") \
    X(log_module_lost, SUCCESS, \
      "client %u '%s': %s") \
    X(constants_settle, SUCCESS, \
      "the contents of the module's constants could not be copied: %s") \
    X(stream_drops, DEVICE_NOT_READY, \
      "stream %u still drops what it has lost: wait until its timeline has reached all of it") \
    X(stream_interrupted, INTERRUPTED, \
      "stream %u was interrupted: work of it was lost with the server's worker; " \
      "gpushare_stream_recover lets it go on") \
    X(stream_interrupted_suspect, INTERRUPTED, \
      "stream %u was interrupted: a kernel made the device fail, or its worker crashed, and this " \
      "client is one of several that had work there, and may have made it; " \
      "gpushare_stream_recover lets the stream go on") \
    X(stream_interrupted_victim, INTERRUPTED, \
      "stream %u was interrupted: another client made the device fail; gpushare_stream_recover " \
      "lets the stream go on") \
    X(stream_follows_interrupted, INTERRUPTED, \
      "stream %u would have to wait for work of stream %u, which was interrupted: " \
      "gpushare_stream_recover lets that one go on") \
    X(stream_work_lost, INTERRUPTED, \
      "the work of stream %u that the call waited for was lost with the server's worker; " \
      "gpushare_stream_recover lets the stream go on") \
    X(event_lost, INTERRUPTED, \
      "the work that the event stands for was lost with the server's worker: record the event again") \
    X(event_time_lost, STATE_LOST, \
      "the time of event %u was lost with the server's worker, which alone had it: record the " \
      "event again") \
    X(session_guilty, SUCCESS, \
      "%s: the kernel was this client's, and no other had work on the device (unfinished: %s): the " \
      "connection has ended, and its device memory with it") \
    X(guilty_logged, SUCCESS, \
      "its kernel made device %u fail") \
    X(log_guilty, SUCCESS, \
      "device %u: client %u '%s' (pid %d, uid %u) made it fail: %s; its unfinished kernels: %s") \
    X(log_guilty_left, SUCCESS, \
      "device %u: it failed, and no client that is still connected had work in flight; of those " \
      "that had left: %u") \
    X(log_suspects, SUCCESS, \
      "device %u: these clients had work in flight, and one of them made it fail: %s; of those that " \
      "had left: %u") \
    X(log_isolated, SUCCESS, \
      "device %u: client %u '%s' may have made faults or crashes (%u) as well as others: while it is " \
      "connected, one client is served at a time") \
    X(log_crash_suspects, SUCCESS, \
      "device %u: the worker crashed, and these clients had work or a request under way: %s; of those " \
      "that had left: %u. That is no verdict") \
    X(log_singly, SUCCESS, \
      "device %u: one client is served at a time, to find whose kernels fault: requests and limits " \
      "of time have no effect") \
    X(log_singly_over, SUCCESS, \
      "device %u: its clients are served as its schedule says again") \
    X(log_singly_goes_on, SUCCESS, \
      "device %u: one client is still served at a time: %s") \
    X(offender_waits, DEVICE_NOT_READY, \
      "kernels of uid %u made devices fail %u times: new clients of this user wait for another %s: " \
      "connect again then, or ask the administrator (gpushared --offender-wait)") \
    X(log_clients_held, SUCCESS, \
      "device %u: clients that go on with the next worker: %u; that are ended: %u") \
    X(log_clients_restored, SUCCESS, \
      "device %u: client %u '%s' goes on") \
    X(log_kept_down, SUCCESS, \
      "device %u: kept down after an error of the machine (%s), for which no client is blamed; it is " \
      "tried again in %s") \
    X(log_no_ledger, SUCCESS, \
      "device %u: if this worker ends, counters and debts of its clients begin anew: %s") \
    X(code_store_unusable, SUCCESS, \
      "memory for compiled code that is to outlive this worker can't be used (%s): the next worker " \
      "compiles clients' modules again") \
    X(log_code_memory, SUCCESS, \
      "device %u: no memory for compiled code that outlives a worker (%s): each worker compiles " \
      "clients' modules again") \
    X(log_standby_ready, SUCCESS, \
      "device %u: process %d stands by to become the next worker (standby %s)") \
    X(log_standby_serves, SUCCESS, \
      "device %u: the standby takes over: process %d") \
    X(log_standby_failed, SUCCESS, \
      "device %u: a standby is given up: %s; the next one starts in %s, if the device serves then; " \
      "without one, another worker takes longer to start") \
    X(standby_silent, SUCCESS, \
      "it did not answer for as long as the watchdog_limit allows a worker") \
    X(standby_late, SUCCESS, \
      "it did not get ready within twelve times the watchdog_limit") \
    X(standby_unasked, SUCCESS, \
      "it sent a message that a standby has no reason to send") \
    X(standby_not_serving, WORKER_LOST, \
      "device %u: the standby (process %d) did not answer within %d ms when it was to take over, and " \
      "a new worker is started instead") \
    X(log_device_held, SUCCESS, \
      "device %u: the worker has ended, and a process that it began still has the device: the " \
      "next worker waits for that") \
    X(log_keeping, SUCCESS, \
      "the service manager keeps this server's descriptors: clients go on when another server takes over") \
    X(log_not_keeping, SUCCESS, \
      "no service manager keeps this server's descriptors (FileDescriptorStoreMax= of its unit): its " \
      "clients and workers end with it") \
    X(log_keeping_ends, SUCCESS, \
      "clients will end with this server: %s") \
    X(keeping_fds_max, SERVER_RESOURCES, \
      "it has more than %d descriptors to be kept; --max-clients makes them fewer") \
    X(keeping_refused, SERVER_RESOURCES, \
      "the service manager did not take a descriptor: %s") \
    X(keeping_no_memory, SERVER_RESOURCES, \
      "its state can't be written: %s") \
    X(state_of_other, SUCCESS, \
      "it is of another version") \
    X(state_damaged, SUCCESS, \
      "it is damaged") \
    X(state_strange, SUCCESS, \
      "it is no state of gpushared") \
    X(state_options, SUCCESS, \
      "it was written with other options: --streams was %u") \
    X(log_state_refused, SUCCESS, \
      "the state that the last server left can't be taken over: %s; its clients and workers are ended, " \
      "and this server starts afresh") \
    X(log_taken_over, SUCCESS, \
      "took over from the last server: clients: %u, workers: %u") \
    X(log_schedule_left, SUCCESS, \
      "device %u, left by the last server: %s") \
    X(log_handing_over, SUCCESS, \
      "%s: leaves everything to the next server") \
    X(log_not_handed_over, SUCCESS, \
      "%s: nothing can be left to another server, since no service manager keeps this one's descriptors: " \
      "SIGTERM stops it") \
    X(session_not_taken_over, SERVER_RESOURCES, \
      "what the client had could not be taken over from the last server (%s): connect again") \
    X(device_not_taken_over, SUCCESS, \
      "device %u: its worker can't be taken over: %s") \
    X(log_start_failed_over, SUCCESS, \
      "%s: this server ends, and leaves what the last one left to the next") \
    X(client_not_taken_over, SUCCESS, \
      "client %u can't be taken over: %s") \
    X(orphaned, SUCCESS, \
      "no server has asked for %u s: the worker ends")
/* clang-format on */

#endif
