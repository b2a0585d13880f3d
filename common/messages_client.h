/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_client: what the client library says of its connection and of its environment, and how
 * a message can break the protocol. Part of the table in common/messages.h. */
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
    X(session_closed, CONNECTION_LOST, \
      "the server closed the connection; see whether gpushared is running, and its log") \
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
      "copies of ordinary memory need a staging buffer, for which there is no room") \
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
      "%s limits device %s, which has no effect: this process sees %u of the server's %u devices " \
      "(%s), and they are counted from 0 in that order") \
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
      "a message came with too many file descriptors, or this process has none left")
/* clang-format on */

#endif
