/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/arrival.h"

#include "tests/support/ok.h"

gpushare_connection *arrival_connect_with(const struct server *server,
                                          struct gpushare_options options)
{
    gpushare_connection *gpu;
    options.size = sizeof options;
    options.socket = server_socket(server);
    OK(gpushare_connect(&options, &gpu));
    return gpu;
}

gpushare_connection *arrival_connect(const struct server *server, double percentage)
{
    return arrival_connect_with(server, (struct gpushare_options){.thread_percentage = percentage});
}

gpushare_function *arrival_load(gpushare_connection *gpu, const char *ptx, const char *kernel)
{
    gpushare_module *module;
    gpushare_function *function;
    OK(gpushare_module_load(gpu, ptx, 0, &module));
    OK(gpushare_module_function(module, kernel, &function));
    return function;
}
