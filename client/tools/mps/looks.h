/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * looks: the commands of MPS that show something, on standard output, in the form of
 * nvidia-cuda-mps-control. words: what stands behind the command's name; count: how many they are,
 * which the caller has checked. After a failure servers->why has the sentence. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_MPS_LOOKS_H
#define GPUSHARE_CLIENT_TOOLS_MPS_LOOKS_H

#include "client/tools/mps/servers.h"

enum admin_outcome looks_server_list(struct servers *servers, int count, char *const words[]);
enum admin_outcome looks_server_status(struct servers *servers, int count, char *const words[]);
enum admin_outcome looks_client_list(struct servers *servers, int count, char *const words[]);
enum admin_outcome looks_device_client_list(struct servers *servers, int count,
                                            char *const words[]);
enum admin_outcome looks_ps(struct servers *servers, int count, char *const words[]);

/* Limits of clients to come: of all GPUs, of a server's GPU, or of a GPU by its number. */
enum admin_outcome looks_default_percentage(struct servers *servers, int count,
                                            char *const words[]);
enum admin_outcome looks_percentage(struct servers *servers, int count, char *const words[]);
enum admin_outcome looks_default_memory(struct servers *servers, int count, char *const words[]);
enum admin_outcome looks_memory(struct servers *servers, int count, char *const words[]);
enum admin_outcome looks_default_priority(struct servers *servers, int count, char *const words[]);

#endif
