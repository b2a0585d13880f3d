/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The order in which clients' modules are loaded, and the cost of a compiler that never ends. */
#include "tests/unit/worker/harness.h"

#define SLOW_PTX "// WAIT FOR ME\n"

static void wait_until_compiling(int count)
{
    pthread_mutex_lock(&fake.lock);
    while (fake.compiling != count)
        pthread_cond_wait(&fake.compiles, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
}

static void let_compilers_end(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.compiled = true;
    pthread_cond_broadcast(&fake.compiles);
    pthread_mutex_unlock(&fake.lock);
}

static void ask_to_load(struct peer *peer, uint32_t module)
{
    char text[1024];
    snprintf(text, sizeof text, SLOW_PTX "%s", harness_ptx);
    peer_send_text(peer, module, text);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    struct proto_worker_module_load load = {.module = module};
    harness_send(PROTO_WORKER_MODULE_LOAD, peer->number, &load, NULL, 0, NULL, 0);
}

static void a_compiler_that_never_ends_leaves_others_a_thread(void **state)
{
    (void)state;
    struct peer *culprit = peer_attach(1), *other = peer_attach(2);
    ask_to_load(culprit, 1);
    wait_until_compiling(1);
    /* More of the same wait for the first. */
    peer_send_text(culprit, 2, harness_ptx);
    peer_send_text(culprit, 3, harness_ptx);
    for (uint32_t i = 1; i <= 20; i++)
        peer_load_text(other, i, harness_ptx, 0);
    assert_int_equal(fake.compiling, 1);
    let_compilers_end();
    assert_int_equal(harness_receive(), PROTO_MODULE_LOADED);
    assert_int_equal(harness.message.header.client, 1);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    peer_detach(culprit);
    peer_detach(other);
}

static void modules_of_a_leaving_client_end_with_their_loads(void **state)
{
    (void)state;
    struct peer *culprit = peer_attach(1);
    ask_to_load(culprit, 1);
    wait_until_compiling(1);
    peer_send_text(culprit, 2, harness_ptx);
    harness_send(PROTO_WORKER_DETACH, 1, NULL, NULL, 0, NULL, 0);
    struct peer *other = peer_attach(2);
    peer_load_text(other, 1, harness_ptx, 0);
    let_compilers_end();
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(harness.message.header.client, 1);
    peer_detach(other);
    peer_free(culprit);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_stop)
    const struct CMUnitTest tests[] = {
        T(a_compiler_that_never_ends_leaves_others_a_thread),
        T(modules_of_a_leaving_client_end_with_their_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
