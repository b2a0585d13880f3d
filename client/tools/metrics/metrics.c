/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/metrics/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/id_name.h"

#define GAUGE     EXPOSITION_GAUGE
#define COUNTER   EXPOSITION_COUNTER
#define INFO      EXPOSITION_INFO
#define HISTOGRAM EXPOSITION_HISTOGRAM

json_t *metrics_request(uint32_t clients)
{
    return json_pack("{s:s, s:i}", "request", "metrics", "clients", (int)clients);
}

/* ---- the families of rows that are objects with a member for each metric ---- */

struct column {
    struct exposition_family family;
    const char *member;
    double scale; /* by which the member is multiplied; 0: it stays as it is */
};

static const struct column of_server[] = {
    {{"gpushare_uptime_seconds", GAUGE, "seconds",
      "Time since the server started, or the first one that clients have gone on from."},
     "uptime_seconds",
     0},
    {{"gpushare_process_uptime_seconds", GAUGE, "seconds",
      "Time since the server's process started."},
     "process_uptime_seconds",
     0},
    {{"gpushare_clients", GAUGE, NULL, "Connections of every state."}, "clients", 0},
    {{"gpushare_clients_limit", GAUGE, NULL, "Most connections that are served at a time."},
     "clients_max",
     0},
    {{"gpushare_clients_served", COUNTER, NULL, "Clients that attached."}, "clients_served", 0},
    {{"gpushare_clients_refused", COUNTER, NULL,
      "Connections that were one too many, or that could not attach."},
     "clients_refused",
     0},
    {{"gpushare_groups_left_out", GAUGE, NULL, "Groups without series of their own."},
     "groups_left_out",
     0},
    {{"gpushare_clients_left_out", GAUGE, NULL, "Clients without series of their own."},
     "clients_left_out",
     0},
    {{"gpushare_host_memory_used_bytes", GAUGE, "bytes", "Pinned host memory of all clients."},
     "host_memory_used_bytes",
     0},
    {{"gpushare_host_memory_limit_bytes", GAUGE, "bytes",
      "Most pinned host memory of all clients together."},
     "host_memory_limit_bytes",
     0},
    {{"gpushare_descriptors", GAUGE, NULL, "File descriptors that the server holds for clients."},
     "descriptors",
     0},
    {{"gpushare_descriptors_limit", GAUGE, NULL, "Most file descriptors for clients."},
     "descriptors_limit",
     0},
    {{"gpushare_images_cached", GAUGE, NULL, "Module images that are kept."}, "images_cached", 0},
    {{"gpushare_images_cached_bytes", GAUGE, "bytes", "Bytes of the module images that are kept."},
     "images_cached_bytes",
     0},
    {{"gpushare_configuration_refused", GAUGE, NULL,
      "1 while the configuration file is refused, and what was in force before goes on."},
     "configuration_refused",
     0},
    {{"gpushare_options_refused", GAUGE, NULL,
      "1 while an option or variable of the service is refused, and those of the server before go "
      "on."},
     "options_refused",
     0},
    {{"gpushare_configuration_not_copied", GAUGE, NULL,
      "1 while a server that takes over would find no copy of the configuration in force."},
     "configuration_not_copied",
     0},
    {{"gpushare_accounting_not_written", GAUGE, NULL,
      "1 while lines of the accounting wait, for its file can't be written."},
     "accounting_not_written",
     0},
    {{"gpushare_saved_not_kept", GAUGE, NULL,
      "1 while what is set with --save does not outlive the server."},
     "saved_not_kept",
     0},
};

static const struct column of_gpu[] = {
    {{"gpushare_gpu_clients", GAUGE, NULL, "Clients of the GPU."}, "clients", 0},
    {{"gpushare_gpu_multiprocessors", GAUGE, NULL, "Multiprocessors of the GPU."},
     "multiprocessors",
     0},
    {{"gpushare_gpu_memory_bytes", GAUGE, "bytes", "Memory of the GPU."}, "memory_bytes", 0},
    {{"gpushare_gpu_memory_used_bytes", GAUGE, "bytes",
      "Device memory that clients have allocated."},
     "memory_used_bytes",
     0},
    {{"gpushare_gpu_worker_starts", COUNTER, NULL,
      "Workers that were started for the GPU, the first one included."},
     "worker_starts",
     0},
    {{"gpushare_gpu_one_client_at_a_time", GAUGE, NULL,
      "1 while the GPU serves one client at a time, after a fault."},
     "one_client_at_a_time",
     0},
    {{"gpushare_gpu_one_client_at_a_time_seconds", COUNTER, "seconds",
      "Time for which the GPU served one client at a time."},
     "one_client_at_a_time_seconds",
     0},
    {{"gpushare_gpu_quiet_windows", COUNTER, NULL,
      "Times that the GPU was idle for calls of the driver that need it so."},
     "quiet_windows",
     0},
    {{"gpushare_gpu_quiet_window_seconds", COUNTER, "seconds",
      "Time that the GPU was idle for calls of the driver that need it so."},
     "quiet_seconds",
     0},
};

static const struct column of_user[] = {
    {{"gpushare_user_clients", GAUGE, NULL, "Clients of the user on the GPU."}, "clients", 0},
    {{"gpushare_user_memory_used_bytes", GAUGE, "bytes",
      "Device memory that clients of the user have allocated."},
     "memory_used_bytes",
     0},
    {{"gpushare_user_memory_limit_bytes", GAUGE, "bytes",
      "Limit of the device memory of all clients of the user together."},
     "memory_limit_bytes",
     0},
    {{"gpushare_user_threads_limit_ratio", GAUGE, "ratio",
      "Limit of the multiprocessors of all clients of the user together."},
     "threads_limit_percent",
     0.01},
    {{"gpushare_user_time_limit_ratio", GAUGE, "ratio",
      "Limit of the GPU's time of all clients of the user together."},
     "time_limit_percent",
     0.01},
    {{"gpushare_user_gpu_seconds", COUNTER, "seconds", "Time that the GPU worked for the user."},
     "gpu_time_seconds",
     0},
    {{"gpushare_user_charged_seconds", COUNTER, "seconds",
      "Time of the GPU that leases and turns charged to the user."},
     "charged_seconds",
     0},
    {{"gpushare_user_launches", COUNTER, NULL, "Kernels that the user launched."}, "launches", 0},
    {{"gpushare_user_copies", COUNTER, NULL, "Copies and fills of the user."}, "copies", 0},
    {{"gpushare_user_copied_bytes", COUNTER, "bytes", "Bytes that the user copied and filled."},
     "copied_bytes",
     0},
};

static const struct column of_group[] = {
    {{"gpushare_group_clients", GAUGE, NULL, "Clients of the group's members on the GPU."},
     "clients",
     0},
    {{"gpushare_group_memory_held_bytes", GAUGE, "bytes",
      "Device memory that counts in the group's total: allocated or guaranteed, whichever is "
      "more."},
     "memory_held_bytes",
     0},
    {{"gpushare_group_memory_limit_bytes", GAUGE, "bytes",
      "Limit of the device memory of all clients of the group together."},
     "memory_limit_bytes",
     0},
    {{"gpushare_group_threads_limit_ratio", GAUGE, "ratio",
      "Limit of the multiprocessors of all clients of the group together."},
     "threads_limit_percent",
     0.01},
    {{"gpushare_group_time_limit_ratio", GAUGE, "ratio",
      "Limit of the GPU's time of all clients of the group together."},
     "time_limit_percent",
     0.01},
};

static const struct column of_client[] = {
    {{"gpushare_client_memory_used_bytes", GAUGE, "bytes",
      "Device memory that the client has allocated."},
     "memory_used_bytes",
     0},
    {{"gpushare_client_memory_limit_bytes", GAUGE, "bytes", "Most device memory of the client."},
     "memory_limit_bytes",
     0},
    {{"gpushare_client_host_memory_used_bytes", GAUGE, "bytes",
      "Pinned host memory of the client."},
     "host_memory_used_bytes",
     0},
    {{"gpushare_client_host_memory_limit_bytes", GAUGE, "bytes",
      "Most pinned host memory of the client."},
     "host_memory_limit_bytes",
     0},
    {{"gpushare_client_threads_limit_ratio", GAUGE, "ratio",
      "Most of the multiprocessors that the client may have."},
     "threads_limit_percent",
     0.01},
    {{"gpushare_client_time_limit_ratio", GAUGE, "ratio",
      "Most of the GPU's time that the client may have."},
     "time_limit_percent",
     0.01},
    {{"gpushare_client_gpu_seconds", COUNTER, "seconds",
      "Time that the GPU worked for the client."},
     "gpu_time_seconds",
     0},
    {{"gpushare_client_charged_seconds", COUNTER, "seconds",
      "Time of the GPU that leases and turns charged to the client."},
     "charged_seconds",
     0},
    {{"gpushare_client_launches", COUNTER, NULL, "Kernels that the client launched."},
     "launches",
     0},
    {{"gpushare_client_copies", COUNTER, NULL, "Copies and fills of the client."}, "copies", 0},
    {{"gpushare_client_copied_bytes", COUNTER, "bytes", "Bytes that the client copied and filled."},
     "copied_bytes",
     0},
};

/* ---- what all of a text needs ---- */

struct writing {
    struct exposition text;
    const json_t *answer;
    json_t *names; /* of users, by uid; NULL: each is looked up */
};

/* The labels of one sample, with the memory of those that are numbers. */
struct naming {
    struct exposition_labels labels;
    char gpu[24], client[24], uid[24], gid[24];
};

static const char *text_of(const json_t *row, const char *member)
{
    const char *text = json_string_value(json_object_get(row, member));
    return text ? text : "";
}

static const json_t *rows_of(const struct writing *writing, const char *member)
{
    return json_object_get(writing->answer, member);
}

static const char *number_text(char text[24], const json_t *number)
{
    snprintf(text, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
    return text;
}

/* UUID is spelt as dcgm-exporter spells it, so that one can be joined with the other. */
static void name_gpu(struct naming *naming, const struct writing *writing, const json_t *device)
{
    const json_t *row =
        json_array_get(rows_of(writing, "devices"), (size_t)json_integer_value(device));
    exposition_label(&naming->labels, "gpu", number_text(naming->gpu, device));
    exposition_label(&naming->labels, "UUID", text_of(row, "uuid"));
}

/* others: the value where there is no uid. */
static void name_uid(struct naming *naming, const json_t *uid, const char *others)
{
    exposition_label(&naming->labels, "uid",
                     json_is_integer(uid) ? number_text(naming->uid, uid) : others);
}

typedef void name_row(struct naming *naming, const struct writing *writing, const json_t *row);

static void name_device_row(struct naming *naming, const struct writing *writing, const json_t *row)
{
    name_gpu(naming, writing, json_object_get(row, "device"));
}

static void name_user_row(struct naming *naming, const struct writing *writing, const json_t *row)
{
    name_gpu(naming, writing, json_object_get(row, "device"));
    name_uid(naming, json_object_get(row, "uid"), "others");
}

static void name_group_row(struct naming *naming, const struct writing *writing, const json_t *row)
{
    name_gpu(naming, writing, json_object_get(row, "device"));
    exposition_label(&naming->labels, "gid", number_text(naming->gid, json_object_get(row, "gid")));
}

static void name_client_row(struct naming *naming, const struct writing *writing, const json_t *row)
{
    name_gpu(naming, writing, json_object_get(row, "device"));
    name_uid(naming, json_object_get(row, "uid"), "others");
    exposition_label(&naming->labels, "client",
                     number_text(naming->client, json_object_get(row, "client")));
    exposition_label(&naming->labels, "name", text_of(row, "name"));
}

/* A value that is not known has no sample. */
static void put_member(struct writing *writing, const struct exposition_labels *labels,
                       const json_t *value, double scale)
{
    if (json_is_boolean(value))
        exposition_sample(&writing->text, labels, json_is_true(value));
    else if (json_is_number(value))
        exposition_sample(&writing->text, labels,
                          json_number_value(value) * (scale > 0 ? scale : 1));
}

static void put_columns(struct writing *writing, const char *rows, name_row *name,
                        const struct column *columns, size_t count)
{
    const json_t *list = rows_of(writing, rows), *row;
    for (size_t c = 0; c < count; c++) {
        exposition_begin(&writing->text, &columns[c].family);
        for (size_t i = 0; (row = json_array_get(list, i)); i++) {
            struct naming naming = {.labels = {.count = 0}};
            name(&naming, writing, row);
            put_member(writing, &naming.labels, json_object_get(row, columns[c].member),
                       columns[c].scale);
        }
    }
}
#define PUT_COLUMNS(writing, rows, name, columns)                                                  \
    put_columns(writing, rows, name, columns, sizeof(columns) / sizeof((columns)[0]))

/* ---- families of another form ---- */

static void put_build(struct writing *writing)
{
    static const struct exposition_family family = {"gpushare_build", INFO, NULL,
                                                    "Versions of the server."};
    struct exposition_labels labels = {.count = 0};
    exposition_label(&labels, "version", text_of(writing->answer, "server_version"));
    exposition_label(&labels, "protocol", text_of(writing->answer, "protocol_version"));
    exposition_begin(&writing->text, &family);
    exposition_sample(&writing->text, &labels, 1);
}

static void put_server(struct writing *writing)
{
    put_build(writing);
    for (size_t i = 0; i < sizeof of_server / sizeof of_server[0]; i++) {
        exposition_begin(&writing->text, &of_server[i].family);
        put_member(writing, NULL, json_object_get(writing->answer, of_server[i].member), 0);
    }
}

static void put_gpu_info(struct writing *writing)
{
    static const struct exposition_family info = {"gpushare_gpu", INFO, NULL,
                                                  "The GPU's address on the bus, and its model."};
    static const struct exposition_family ready = {"gpushare_gpu_ready", GAUGE, NULL,
                                                   "1 while the GPU serves clients."};
    const json_t *list = rows_of(writing, "devices"), *row;
    exposition_begin(&writing->text, &info);
    for (size_t i = 0; (row = json_array_get(list, i)); i++) {
        struct naming naming = {.labels = {.count = 0}};
        name_device_row(&naming, writing, row);
        exposition_label(&naming.labels, "pci_bus_id", text_of(row, "pci"));
        exposition_label(&naming.labels, "model", text_of(row, "name"));
        exposition_sample(&writing->text, &naming.labels, 1);
    }
    exposition_begin(&writing->text, &ready);
    for (size_t i = 0; (row = json_array_get(list, i)); i++) {
        struct naming naming = {.labels = {.count = 0}};
        name_device_row(&naming, writing, row);
        exposition_sample(&writing->text, &naming.labels,
                          strcmp(text_of(row, "state"), "ready") == 0);
    }
}

static void put_faults(struct writing *writing)
{
    static const struct exposition_family family = {
        "gpushare_gpu_faults", COUNTER, NULL,
        "Faults of kernels, clients and workers, by error and by the author's user."};
    const json_t *list = rows_of(writing, "faults"), *row;
    exposition_begin(&writing->text, &family);
    for (size_t i = 0; (row = json_array_get(list, i)); i++) {
        struct naming naming = {.labels = {.count = 0}};
        name_gpu(&naming, writing, json_object_get(row, "device"));
        exposition_label(&naming.labels, "kind", text_of(row, "kind"));
        name_uid(&naming, json_object_get(row, "uid"), "unknown");
        put_member(writing, &naming.labels, json_object_get(row, "count"), 0);
    }
}

static void put_throttled(struct writing *writing, const char *rows, name_row *name,
                          const struct exposition_family *family)
{
    const json_t *list = rows_of(writing, rows), *row;
    exposition_begin(&writing->text, family);
    for (size_t i = 0; (row = json_array_get(list, i)); i++) {
        json_t *throttled = json_object_get(row, "throttled_seconds");
        for (void *at = json_object_iter(throttled); at;
             at = json_object_iter_next(throttled, at)) {
            struct naming naming = {.labels = {.count = 0}};
            name(&naming, writing, row);
            exposition_label(&naming.labels, "reason", json_object_iter_key(at));
            put_member(writing, &naming.labels, json_object_iter_value(at), 0);
        }
    }
}

/* sum: the member with the sum in seconds, or NULL. */
static void put_histogram(struct writing *writing, const char *rows, const char *member,
                          const char *sum, const struct exposition_family *family)
{
    const json_t *list = rows_of(writing, rows), *row;
    exposition_begin(&writing->text, family);
    for (size_t i = 0; (row = json_array_get(list, i)); i++) {
        const json_t *buckets = json_object_get(row, member);
        uint64_t counts[EXPOSITION_BUCKETS];
        struct naming naming = {.labels = {.count = 0}};
        for (size_t b = 0; b < EXPOSITION_BUCKETS; b++)
            counts[b] = (uint64_t)json_integer_value(json_array_get(buckets, b));
        if (json_object_get(row, "uid"))
            name_user_row(&naming, writing, row);
        else
            name_device_row(&naming, writing, row);
        exposition_histogram(&writing->text, &naming.labels, counts,
                             sum ? json_number_value(json_object_get(row, sum)) : -1);
    }
}

/* ---- parts ---- */

static void put_gpus(struct writing *writing)
{
    static const struct exposition_family recovery = {
        "gpushare_gpu_recovery_seconds", HISTOGRAM, "seconds",
        "Time from the loss of the GPU's worker until the next one served."};
    put_gpu_info(writing);
    PUT_COLUMNS(writing, "devices", name_device_row, of_gpu);
    put_faults(writing);
    put_histogram(writing, "devices", "recoveries", "recovery_seconds", &recovery);
}

/* The name of a user in this system's directory, malloc'ed; NULL: none, or no memory. */
static char *user_name(struct writing *writing, const char *uid, uint32_t number)
{
    const char *known = json_string_value(json_object_get(writing->names, uid));
    if (known)
        return strdup(known);
    char *name = id_name_of(ID_NAME_USER, number);
    if (writing->names)
        json_object_set_new(writing->names, uid, json_string(name ? name : ""));
    return name;
}

/* A user has a row for each GPU, and one name. */
static void put_user_names(struct writing *writing)
{
    static const struct exposition_family family = {"gpushare_user", INFO, NULL,
                                                    "The name of the user."};
    const json_t *list = rows_of(writing, "users"), *row;
    exposition_begin(&writing->text, &family);
    for (size_t i = 0; (row = json_array_get(list, i)); i++) {
        const json_t *uid = json_object_get(row, "uid");
        bool known = !json_is_integer(uid);
        for (size_t before = 0; !known && before < i; before++)
            known = json_equal(json_object_get(json_array_get(list, before), "uid"), uid);
        if (known)
            continue;
        struct naming naming = {.labels = {.count = 0}};
        name_uid(&naming, uid, "others");
        char *name = user_name(writing, naming.uid, (uint32_t)json_integer_value(uid));
        exposition_label(&naming.labels, "user", name ? name : "");
        exposition_sample(&writing->text, &naming.labels, 1);
        free(name);
    }
}

static void put_users(struct writing *writing)
{
    static const struct exposition_family throttled = {
        "gpushare_user_throttled_seconds", COUNTER, "seconds",
        "Time that clients of the user had work that was held back, by reason."};
    static const struct exposition_family wait = {
        "gpushare_queue_wait_seconds", HISTOGRAM, "seconds",
        "Time that commands waited in a ring; the sum is estimated from the buckets."};
    static const struct exposition_family latency = {
        "gpushare_launch_latency_seconds", HISTOGRAM, "seconds",
        "Time from the hand-over of a batch of commands to the driver until the GPU had done it, "
        "of measured batches; the sum is estimated from the buckets."};
    put_user_names(writing);
    PUT_COLUMNS(writing, "users", name_user_row, of_user);
    put_throttled(writing, "users", name_user_row, &throttled);
    put_histogram(writing, "users", "waits", NULL, &wait);
    put_histogram(writing, "users", "latencies", NULL, &latency);
}

/* A group has a row for each GPU, in their order, and one name. */
static void put_group_names(struct writing *writing)
{
    static const struct exposition_family family = {"gpushare_group", INFO, NULL,
                                                    "The name of the group."};
    const json_t *list = rows_of(writing, "groups"), *row;
    exposition_begin(&writing->text, &family);
    for (size_t i = 0; (row = json_array_get(list, i)); i++) {
        const json_t *gid = json_object_get(row, "gid");
        if (i && json_equal(json_object_get(json_array_get(list, i - 1), "gid"), gid))
            continue;
        struct naming naming = {.labels = {.count = 0}};
        char *name = id_name_of(ID_NAME_GROUP, (uint32_t)json_integer_value(gid));
        exposition_label(&naming.labels, "gid", number_text(naming.gid, gid));
        exposition_label(&naming.labels, "group", name ? name : "");
        exposition_sample(&writing->text, &naming.labels, 1);
        free(name);
    }
}

static void put_groups(struct writing *writing)
{
    put_group_names(writing);
    PUT_COLUMNS(writing, "groups", name_group_row, of_group);
}

static void put_clients(struct writing *writing)
{
    static const struct exposition_family throttled = {
        "gpushare_client_throttled_seconds", COUNTER, "seconds",
        "Time that the client had work that was held back, by reason."};
    PUT_COLUMNS(writing, "client_rows", name_client_row, of_client);
    put_throttled(writing, "client_rows", name_client_row, &throttled);
}

static void put_asking(struct writing *writing, const struct metrics_asking *asking)
{
    static const struct exposition_family seconds = {
        "gpushare_exporter_question_seconds", GAUGE, "seconds",
        "Time that the server took for the latest answer."};
    static const struct exposition_family failures = {"gpushare_exporter_failures", COUNTER, NULL,
                                                      "Questions that the server did not answer."};
    exposition_begin(&writing->text, &seconds);
    exposition_sample(&writing->text, NULL, asking->seconds);
    exposition_begin(&writing->text, &failures);
    exposition_sample(&writing->text, NULL, (double)asking->failures);
}

void metrics_write(FILE *out, enum exposition_form form, const json_t *answer,
                   const struct metrics_asking *asking)
{
    static const struct exposition_family up = {
        "gpushare_up", GAUGE, NULL, "1 if the server answered, else 0; then the rest is missing."};
    struct writing writing = {.text = {.out = out, .form = form},
                              .answer = answer,
                              .names = asking ? asking->names : NULL};
    exposition_begin(&writing.text, &up);
    exposition_sample(&writing.text, NULL, answer != NULL);
    if (asking)
        put_asking(&writing, asking);
    if (answer) {
        put_server(&writing);
        put_gpus(&writing);
        put_users(&writing);
        put_groups(&writing);
        put_clients(&writing);
    }
    exposition_end(&writing.text);
}
