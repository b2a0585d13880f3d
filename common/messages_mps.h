/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_mps: what gpusharectl mps says. Part of the table in common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_MPS_H
#define GPUSHARE_COMMON_MESSAGES_MPS_H

/* clang-format off */
#define MESSAGES_MPS(X) \
    X(mps_unknown, INVALID_VALUE, \
      "mps has no command \"%s\": gpusharectl mps help shows those that there are") \
    X(mps_misspelt, INVALID_VALUE, \
      "mps has no command \"%s\": perhaps %s was meant") \
    X(mps_words, INVALID_VALUE, \
      "the form of this command is: %s") \
    X(mps_line_words, INVALID_VALUE, \
      "a command has at most %d words") \
    X(mps_input, INVALID_VALUE, \
      "standard input can't be read: %s: commands may be missing") \
    X(mps_nul, INVALID_VALUE, \
      "a line has a byte 0: the commands must be a text") \
    X(mps_json, INVALID_VALUE, \
      "mps prints what nvidia-cuda-mps-control prints: gpusharectl --json status and gpusharectl " \
      "--json clients have it as JSON") \
    X(mps_pid, INVALID_VALUE, \
      "\"%s\" is no process number: get_server_list and ps show those that there are") \
    X(mps_server_unknown, NOT_FOUND, \
      "no server has the process number %s: get_server_list shows those that there are, one for each " \
      "GPU") \
    X(mps_server_client, NOT_FOUND, \
      "%s is a client's process, and not a server's: get_server_list shows the servers; limits of a " \
      "client that runs are changed with gpusharectl set %lld") \
    X(mps_client_unknown, NOT_FOUND, \
      "server %s has no client with the process number %s: ps shows its clients") \
    X(mps_clients_hidden, SUCCESS, \
      "clients whose process numbers the server can't see: %u; gpusharectl clients shows them") \
    X(mps_device, INVALID_VALUE, \
      "\"%s\" is not the number of a GPU, as `gpusharectl status` shows it") \
    X(mps_device_other, INVALID_VALUE, \
      "server %s serves GPU %lld alone, and not GPU %s: each GPU has a server of its own") \
    X(mps_percentage, INVALID_VALUE, \
      "\"%s\" is no percentage: give %s, such as 50") \
    X(mps_priority, INVALID_VALUE, \
      "\"%s\" is no priority: give %s (0 is normal, 1 below normal)") \
    X(mps_memory, INVALID_VALUE, \
      "\"%s\" is no limit of memory: give %s") \
    X(mps_user, INVALID_VALUE, \
      "\"%s\" is no user's number") \
    X(mps_different, NOT_SUPPORTED, \
      "clients to come are limited differently on the GPUs: gpusharectl get gpu 0 shows one GPU") \
    X(mps_unready, NOT_READY, \
      "GPU %lld has no worker yet: gpusharectl status shows why") \
    X(mps_shutdown, NOT_SUPPORTED, \
      "a server of gpushare goes on when its clients have gone: gpusharectl drain --wait waits for " \
      "them, shutdown_server PID -f ends them, and systemctl stop gpushared stops all servers") \
    X(mps_quit, NOT_SUPPORTED, \
      "gpushared is a service, and other users may need it: systemctl stop gpushared stops it") \
    X(mps_partitions, NOT_SUPPORTED, \
      "gpushare has no static partitions: gpusharectl set CLIENT threads.request=25%% gives a client " \
      "multiprocessors of its own, which others may use while it is idle") \
    X(mps_answer, PROTOCOL_VIOLATION, \
      "the server's answer lacks what this command needs: use the gpusharectl of the server's release")
/* clang-format on */

#endif
