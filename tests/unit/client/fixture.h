/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* fixture: what the client's tests begin with: a fake server and a connection to it. */
#ifndef GPUSHARE_TESTS_UNIT_CLIENT_FIXTURE_H
#define GPUSHARE_TESTS_UNIT_CLIENT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "client/gpushare.h"
#include "tests/support/fake_server.h"

struct fixture {
    struct fake_server *server;
    gpushare_connection *gpu;
    gpushare_module *module;
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        gpushare_error got_ = (call);                                                              \
        if (got_)                                                                                  \
            print_error("%s: %s: %s\n", #call, gpushare_error_name(got_), gpushare_error_text());  \
        assert_int_equal(got_, GPUSHARE_SUCCESS);                                                  \
    } while (0)

static const struct gpushare_dim one = {1, 1, 1};

static inline gpushare_connection *fixture_connect(const struct fixture *f, uint32_t device)
{
    struct gpushare_options options = {
        .size = sizeof options, .device = device, .socket = fake_socket(f->server)};
    gpushare_connection *gpu;
    OK(gpushare_connect(&options, &gpu));
    return gpu;
}

static inline void fixture_start(struct fixture *f, const struct fake_options *options)
{
    f->server = fake_start(options);
    f->gpu = fixture_connect(f, 0);
    OK(gpushare_module_load(f->gpu, "ptx text", 0, &f->module));
}

static inline void fixture_stop(struct fixture *f)
{
    gpushare_close(&f->gpu);
    fake_stop(f->server);
}

/* The fake's kernels take what their names say: "k_8_4". */
static inline gpushare_function *fixture_kernel(const struct fixture *f, const char *name)
{
    gpushare_function *kernel;
    OK(gpushare_module_function(f->module, name, &kernel));
    return kernel;
}

/* A launch of a kernel without parameters. */
static inline void fixture_launch(const struct fixture *f, gpushare_stream *stream)
{
    OK(gpushare_launch(fixture_kernel(f, "k"), one, one, 0, stream, NULL));
}

/* The next command in a ring, by name; "" if there is none. Consumes it. */
static inline const char *fixture_next(const struct fixture *f, uint32_t stream,
                                       struct ring_descriptor *descriptor)
{
    uint16_t opcode;
    if (!fake_peek(f->server, 0, stream, descriptor))
        return "";
    memcpy(&opcode, descriptor->bytes, sizeof opcode);
    return proto_command_name(opcode);
}

#endif
