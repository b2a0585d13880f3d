/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Memory that a worker does not take back: it stays charged, and its addresses stay taken. A worker
 * that can't be asked to take it is given up. */
#include "tests/unit/supervisor/fake.h"

#include <sys/syscall.h>

static struct fake fake;
static uint16_t unsendable; /* the kernel refuses messages of this opcode; 0: none */
static int refusal = EPERM; /* with this error */
static bool dry;            /* there is no memory */

/* A sanitizer allocates before it can be called. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NO_DROUGHT skip()
#else
#define NO_DROUGHT (void)0

void *malloc(size_t bytes)
{
    /* The compiler would make a call of malloc out of realloc. */
    if (!dry)
        return aligned_alloc(16, bytes ? bytes : 1);
    errno = ENOMEM;
    return NULL;
}
#endif

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct proto_message_header header;
    memcpy(&header, message->msg_iov[0].iov_base, sizeof header);
    if (unsendable && header.opcode == unsendable) {
        errno = refusal;
        return -1;
    }
    return syscall(SYS_sendmsg, fd, message, flags);
}

static void device_memory_that_stays_mapped_stays_charged(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, NULL);
    fake.worker[0].refuse_unmap = true;
    fake_free(&fake, fd, fake_alloc(&fake, fd, 16 * MIB));
    fake_settle(&fake);
    assert_int_equal(fake_usage(&fake, fd).used, 16 * MIB);
    fake_alloc_refused(&fake, fd, MIB, PROTO_ERROR_OUT_OF_MEMORY, "16 MiB of 16 MiB are in use");
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* Nobody knows when the work that uses it ends, so nobody gets it. */
static void memory_in_use_is_given_to_nobody(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, NULL);
    uint64_t freed[8], address;
    for (int i = 0; i < 8; i++)
        freed[i] = fake_alloc(&fake, fd, 4096);
    /* One block of the slab stays in use, so the slab itself stays. */
    fake_alloc(&fake, fd, 4096);
    fake.worker[0].refuse_unmap = true;
    for (int i = 0; i < 8; i++)
        fake_free(&fake, fd, freed[i]);
    fake_settle(&fake);
    for (int n = 0; n < 600; n++) {
        address = fake_alloc(&fake, fd, 4096);
        for (int i = 0; i < 8; i++)
            assert_int_not_equal(address, freed[i]);
    }
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_buffer_that_stays_pinned_stays_charged(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    struct proto_host_alloc more = {.count = MIB};
    fake.worker[0].refuse_unmap = fake.worker[0].hold_frees = true;
    fake_host_free(&fake, fd, fake_host_alloc(&fake, fd, 16 * MIB, NULL));
    /* A request waits for the buffer, and learns that there is nothing to wait for. */
    fake_send(&fake, fd, PROTO_HOST_ALLOC, &more);
    fake_settle(&fake);
    assert_int_equal(fake_take(&fake, fd), CHANNEL_EMPTY);
    fake_release(&fake.worker[0]);
    fake_expect_failed(&fake, fd, PROTO_ERROR_OUT_OF_MEMORY, "16 MiB of 16 MiB");
    assert_int_equal(fake_usage(&fake, fd).host_used, 16 * MIB);
    fake_host_refused(&fake, fd, MIB, PROTO_ERROR_OUT_OF_MEMORY, "16 MiB of 16 MiB");
    assert_int_equal(fake.worker[0].host_mapped, 16 * MIB);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* The owner's addresses must not be given to others while another worker has them mapped. */
static void a_share_that_stays_pinned_stays_charged(void **state)
{
    (void)state;
    struct proto_attached a;
    fake_open(&fake, 2, 256 * MIB);
    int one = fake_attach(&fake, 0, 0, NULL, &a);
    int two = fake_attach(&fake, 1, 0, a.group, NULL);
    struct proto_host_import share = {.client = a.client,
                                      .address = fake_host_alloc(&fake, one, MIB, NULL)};
    fake_send(&fake, two, PROTO_HOST_IMPORT, &share);
    fake_expect(&fake, two, PROTO_DONE);
    fake.worker[1].refuse_unmap = true;
    fake_host_free(&fake, two, share.address);
    fake_settle(&fake);
    assert_int_equal(fake_usage(&fake, two).host_used, MIB);
    fake_host_free(&fake, one, share.address);
    FAKE_WAIT(&fake, fake.worker[0].host_mapped == 0);
    fake_settle(&fake);
    assert_int_equal(fake_usage(&fake, one).host_used, MIB);
    close(one);
    fake_settle(&fake);
    assert_int_equal(fake.supervisor->server.sessions, 2);
    close(two);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* Everything that a client gives back, and the request by which the worker learns it. */
static void a_worker_that_cannot_be_asked_is_given_up(void **state)
{
    (void)state;
    static const struct {
        uint64_t device, host; /* bytes of what is given back */
        bool shared;
        uint16_t opcode;
    } rows[] = {
        {.device = 4 * MIB, .opcode = PROTO_WORKER_UNMAP},
        {.device = 4096, .opcode = PROTO_WORKER_QUIESCE},
        {.host = MIB, .opcode = PROTO_WORKER_HOST_UNMAP},
        {.host = MIB, .shared = true, .opcode = PROTO_WORKER_HOST_UNMAP},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct proto_attached a;
        fake_open(&fake, 2, 256 * MIB);
        int owner = fake_attach(&fake, 0, 0, NULL, &a);
        int user = fake_attach(&fake, 1, 0, a.group, NULL);
        int fd = rows[i].shared ? owner : user;
        uint64_t address = rows[i].device ? fake_alloc(&fake, fd, rows[i].device)
                                          : fake_host_alloc(&fake, fd, rows[i].host, NULL);
        struct proto_host_import share = {.client = a.client, .address = address};
        if (rows[i].shared) {
            fake_send(&fake, user, PROTO_HOST_IMPORT, &share);
            fake_expect(&fake, user, PROTO_DONE);
        }
        fake_doom_clients(&fake);
        unsendable = rows[i].opcode;
        if (rows[i].device)
            fake_free(&fake, user, address);
        else
            fake_host_free(&fake, user, address);
        fake_expect_ended(&fake, user, PROTO_ERROR_WORKER_LOST, "worker of device 1");
        unsendable = 0;
        assert_int_equal(fake_usage(&fake, owner).host_used, rows[i].shared ? MIB : 0);
        close(owner);
        fake_expect_nothing_left(&fake);
        fake_close(&fake);
    }
}

static void a_worker_that_keeps_a_module_that_did_not_load_is_given_up(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake.worker[0].refuse_load = true;
    fake_doom_clients(&fake);
    unsendable = PROTO_MODULE_UNLOAD;
    fake_send_image(&fake, fd, "text", 4);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_PTX, "line 3");
    fake_expect_ended(&fake, fd, PROTO_ERROR_WORKER_LOST, "worker of device 0");
    unsendable = 0;
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* The worker's socket is full, and there is no memory to keep the message in. */
static void a_client_whose_end_waits_for_memory_costs_no_other(void **state)
{
    (void)state;
    NO_DROUGHT;
    fake_open(&fake, 1, 256 * MIB);
    int stays = fake_attach(&fake, 0, 0, NULL, NULL);
    int leaves = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, leaves, MIB);
    const struct session *session = fake_session(&fake, 1);
    unsendable = PROTO_WORKER_DETACH;
    refusal = EAGAIN;
    dry = true;
    close(leaves);
    FAKE_WAIT(&fake, session->down);
    assert_true(session->at_worker);
    dry = false;
    unsendable = 0;
    refusal = EPERM;
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == 1);
    fake_free(&fake, stays, fake_alloc(&fake, stays, MIB));
    close(stays);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_memory_that_stays_mapped_stays_charged),
        cmocka_unit_test(memory_in_use_is_given_to_nobody),
        cmocka_unit_test(a_buffer_that_stays_pinned_stays_charged),
        cmocka_unit_test(a_share_that_stays_pinned_stays_charged),
        cmocka_unit_test(a_worker_that_cannot_be_asked_is_given_up),
        cmocka_unit_test(a_worker_that_keeps_a_module_that_did_not_load_is_given_up),
        cmocka_unit_test(a_client_whose_end_waits_for_memory_costs_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
