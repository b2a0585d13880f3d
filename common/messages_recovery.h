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
    X(session_variables_lost, WORKER_LOST, \
      "%s: module %u has variables that only the lost worker knew: connect again") \
    X(stream_drops, DEVICE_NOT_READY, \
      "stream %u still drops what it has lost: wait until its timeline has reached all of it") \
    X(stream_interrupted, INTERRUPTED, \
      "stream %u was interrupted: work of it was lost with the server's worker; " \
      "gpushare_stream_recover lets it go on") \
    X(stream_follows_interrupted, INTERRUPTED, \
      "stream %u would have to wait for work of stream %u, which was interrupted: " \
      "gpushare_stream_recover lets that one go on") \
    X(stream_work_lost, INTERRUPTED, \
      "the work of stream %u that the call waited for was lost with the server's worker; " \
      "gpushare_stream_recover lets the stream go on") \
    X(event_lost, INTERRUPTED, \
      "the work that the event stands for was lost with the server's worker: record the event again") \
    X(session_guilty, SUCCESS, \
      "%s: the kernel was this client's, and no other had work on the device (unfinished: %s): the " \
      "connection has ended, and its device memory with it") \
    X(log_guilty, SUCCESS, \
      "device %u: client %u '%s' (pid %d, uid %u) made it fail: %s; its unfinished kernels: %s") \
    X(log_guilty_left, SUCCESS, \
      "device %u: it failed, and no client that is still connected had work in flight; of those " \
      "that had left: %u") \
    X(log_suspects, SUCCESS, \
      "device %u: these clients had work in flight, and one of them made it fail: %s; of those that " \
      "had left: %u") \
    X(log_isolated, SUCCESS, \
      "device %u: client %u '%s' had work in flight at %u faults, and faulted alone at none: while " \
      "it is connected, one client is served at a time") \
    X(log_singly, SUCCESS, \
      "device %u: one client is served at a time, to find whose kernels fault: requests and limits " \
      "of time have no effect") \
    X(log_singly_over, SUCCESS, \
      "device %u: its clients are served as its schedule says again") \
    X(log_singly_goes_on, SUCCESS, \
      "device %u: one client is still served at a time: %s") \
    X(offender_waits, DEVICE_NOT_READY, \
      "kernels of uid %u made devices fail %u times: new clients of this user wait for another %s; " \
      "--offender-wait says how long") \
    X(log_clients_held, SUCCESS, \
      "device %u: clients that go on with the next worker: %u; that are ended: %u") \
    X(log_clients_restored, SUCCESS, \
      "device %u: client %u '%s' goes on") \
    X(log_device_held, SUCCESS, \
      "device %u: the worker has ended, and a process that it began still has the device: the " \
      "next worker waits for that")
/* clang-format on */

#endif
