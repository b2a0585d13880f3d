/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: jansson writes each event; only the brackets and commas between events are written
 * here. A trace has up to a million events, which as one JSON document would take a gigabyte
 * before the first byte is written. */
#include "client/tools/trace/perfetto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

/* Numbers of processes and tracks; a client's streams are its tracks 1 to PROTO_STREAMS_MAX. */
enum {
    PROCESS_GPU = 1,
    TRACK_LEASES = 1,
    TRACK_SM_GROUPS = 1001,
    TRACK_HELD = 10001,
    TRACK_RECOVERY = 20001,
};
enum { NAMES_SHOWN = 6, SM_GROUP_WORDS = 4 };

struct owner {
    uint32_t number;
    const json_t *row; /* of the answer, or NULL */
    uint32_t spans;    /* in a sweep: how many are under way */
    uint32_t at;       /* in a sweep: its index in writer->active */
};

/* Spans that ran on one set of SM groups. */
struct group {
    uint64_t sm_groups[SM_GROUP_WORDS];
};

struct edge {
    uint64_t at;
    uint32_t owner;
    bool begins;
};

struct writer {
    FILE *file;
    const struct recording *recording;
    struct owner *owners;
    uint32_t owner_count;
    struct group *groups;
    uint32_t group_count, group_room;
    struct edge *edges; /* two for each span */
    uint32_t *active;   /* in a sweep: the owners with spans under way */
    uint32_t active_count;
    bool any;    /* an event was written */
    bool failed; /* memory was short: an event is missing */
};

/* ---- JSON ---- */

/* The most digits of a double that come out as they went in. Times have 12 at most: a trace lasts
 * 600 s, in microseconds with three decimals. */
enum { JSON_DIGITS = 15 };

/* event: taken over; NULL where memory was short. */
static void write_event(struct writer *writer, json_t *event)
{
    if (event) {
        fputs(writer->any ? ",\n" : "\n", writer->file);
        json_dumpf(event, writer->file, JSON_COMPACT | JSON_REAL_PRECISION(JSON_DIGITS));
        writer->any = true;
    } else {
        writer->failed = true;
    }
    json_decref(event);
}

/* name: taken over; NULL where memory was short. Returns the caller's, or NULL. */
static json_t *new_event(const char *phase, uint32_t process, uint32_t track, json_t *name)
{
    return json_pack("{s:s, s:I, s:I, s:o}", "ph", phase, "pid", (json_int_t)process, "tid",
                     (json_int_t)track, "name", name);
}

/* value: taken over. */
static void set_member(struct writer *writer, json_t *event, const char *name, json_t *value)
{
    if (json_object_set_new(event, name, value) < 0)
        writer->failed = true;
}

static json_t *json_microseconds(uint64_t ns)
{
    return json_real((double)ns / 1e3);
}

/* Nanoseconds since the trace began. */
static uint64_t time_since_start(const struct writer *writer, uint64_t at)
{
    return at - writer->recording->header.started;
}

/* A stretch of time in a track. */
struct slice {
    uint32_t process, track;
    uint64_t from, to;
    const char *category;
    json_t *name, *args; /* write_slice takes them over; args: NULL for none */
};

static void write_slice(struct writer *writer, const struct slice *slice)
{
    json_t *event = new_event("X", slice->process, slice->track, slice->name);
    set_member(writer, event, "cat", json_string(slice->category));
    set_member(writer, event, "ts", json_microseconds(time_since_start(writer, slice->from)));
    set_member(writer, event, "dur", json_microseconds(slice->to - slice->from));
    if (slice->args)
        set_member(writer, event, "args", slice->args);
    write_event(writer, event);
}

/* A point in time. scope: "p" of the process, "g" of all. */
static void write_instant(struct writer *writer, uint32_t process, const char *category,
                          const char *scope, json_t *name, uint64_t at)
{
    json_t *event = new_event("i", process, 0, name);
    set_member(writer, event, "cat", json_string(category));
    set_member(writer, event, "s", json_string(scope));
    set_member(writer, event, "ts", json_microseconds(time_since_start(writer, at)));
    write_event(writer, event);
}

static void write_counter(struct writer *writer, uint32_t process, const char *name, uint64_t at,
                          uint32_t value)
{
    json_t *event = new_event("C", process, 0, json_string(name));
    set_member(writer, event, "ts", json_microseconds(time_since_start(writer, at)));
    set_member(writer, event, "args", json_pack("{s:I}", "value", (json_int_t)value));
    write_event(writer, event);
}

/* Writes the name and the place in the order of a process or a track. name: taken over. */
static void write_label(struct writer *writer, uint32_t process, uint32_t track, json_t *name)
{
    const char *what = track ? "thread_name" : "process_name";
    const char *order = track ? "thread_sort_index" : "process_sort_index";
    json_t *event = new_event("M", process, track, json_string(what));
    set_member(writer, event, "args", json_pack("{s:o}", "name", name));
    write_event(writer, event);
    event = new_event("M", process, track, json_string(order));
    set_member(writer, event, "args",
               json_pack("{s:I}", "sort_index", (json_int_t)(track ? track : process)));
    write_event(writer, event);
}

/* ---- SM groups ---- */

static bool has_sm_group(const uint64_t sm_groups[SM_GROUP_WORDS], uint32_t sm_group)
{
    return sm_groups[sm_group / 64] >> (sm_group % 64) & 1;
}

/* "0-3, 7". The longest text has ranges of two with one left out between: 86 of them, of at most
 * nine characters. */
enum { SM_GROUPS_TEXT = 86 * 9 + 1 };
static void sm_groups_text(const uint64_t sm_groups[SM_GROUP_WORDS], char text[SM_GROUPS_TEXT])
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t sm_group = 0; sm_group < 64 * SM_GROUP_WORDS && used < SM_GROUPS_TEXT;
         sm_group++) {
        if (!has_sm_group(sm_groups, sm_group))
            continue;
        uint32_t last = sm_group;
        while (last + 1 < 64 * SM_GROUP_WORDS && has_sm_group(sm_groups, last + 1))
            last++;
        const char *comma = used ? ", " : "";
        char *at = text + used;
        size_t room = SM_GROUPS_TEXT - used;
        int length = last > sm_group ? snprintf(at, room, "%s%u-%u", comma, sm_group, last)
                                     : snprintf(at, room, "%s%u", comma, sm_group);
        used += length > 0 ? (size_t)length : 0;
        sm_group = last;
    }
}

static uint32_t count_multiprocessors(const struct recording *recording,
                                      const uint64_t sm_groups[SM_GROUP_WORDS])
{
    const struct proto_trace_header *header = &recording->header;
    uint32_t sum = 0;
    for (uint32_t sm_group = 0; sm_group < header->sm_groups && sm_group < 64 * SM_GROUP_WORDS;
         sm_group++)
        if (has_sm_group(sm_groups, sm_group))
            sum += header->remainder && sm_group + 1 == header->sm_groups
                       ? header->remainder
                       : header->sm_group_multiprocessors;
    return sum;
}

static int add_group(struct writer *writer, const uint64_t sm_groups[SM_GROUP_WORDS])
{
    for (uint32_t i = 0; i < writer->group_count; i++)
        if (memcmp(writer->groups[i].sm_groups, sm_groups, sizeof writer->groups[i].sm_groups) == 0)
            return 0;
    int result = array_reserve(writer->groups, writer->group_room, writer->group_count + 1);
    if (result < 0)
        return result;
    memcpy(writer->groups[writer->group_count++].sm_groups, sm_groups,
           sizeof writer->groups->sm_groups);
    return 0;
}

/* ---- clients ---- */

static int by_number(const void *a, const void *b)
{
    const struct owner *one = a, *other = b;
    return one->number < other->number ? -1 : one->number > other->number;
}

/* Every client that a record names has an owner. */
static struct owner *owner_of(const struct writer *writer, uint32_t number)
{
    struct owner wanted = {.number = number};
    struct owner *found =
        bsearch(&wanted, writer->owners, writer->owner_count, sizeof wanted, by_number);
    return found ? found : writer->owners;
}

static uint32_t process_of(const struct owner *owner)
{
    /* With 1 added, the greatest number of all would wrap to 0. */
    return owner->number + 1 > owner->number ? owner->number + 1 : owner->number;
}

static uint32_t process_of_recovery(const struct writer *writer,
                                    const struct proto_trace_record *record)
{
    return record->client ? process_of(owner_of(writer, record->client)) : PROCESS_GPU;
}

/* The client's name, or "client" and its number. number: room for the latter. */
enum { NUMBER_NAME = 24 };
static const char *owner_name(const struct owner *owner, char number[NUMBER_NAME])
{
    const char *name = owner->row ? json_string_value(json_object_get(owner->row, "name")) : NULL;
    if (name && *name)
        return name;
    snprintf(number, NUMBER_NAME, "client %" PRIu32, owner->number);
    return number;
}

/* Of one track that all clients share, where several may have the same name. */
static json_t *owner_numbered(const struct owner *owner)
{
    char number[NUMBER_NAME];
    const char *name = owner_name(owner, number);
    return name == number ? json_string(name)
                          : json_sprintf("%s (client %" PRIu32 ")", name, owner->number);
}

static json_t *owner_label(const struct owner *owner)
{
    char number[NUMBER_NAME];
    const char *name = owner_name(owner, number);
    if (!owner->row)
        return json_string(name);
    return json_sprintf("%s (client %" PRIu32 ", pid %lld, uid %lld)", name, owner->number,
                        (long long)json_integer_value(json_object_get(owner->row, "pid")),
                        (long long)json_integer_value(json_object_get(owner->row, "uid")));
}

static int collect_owners(struct writer *writer, const json_t *rows)
{
    const struct recording *recording = writer->recording;
    size_t listed = json_array_size(rows), room = listed;
    uint32_t latest = 0;
    /* Records of one client mostly follow each other, so counting changes bounds the number of
     * clients that the answer does not name. */
    for (size_t i = 0; i < recording->count; i++)
        room += recording->records[i].client != latest && (latest = recording->records[i].client);
    writer->owners = calloc(room + 1, sizeof *writer->owners);
    if (!writer->owners)
        return -ENOMEM;
    size_t count = 0;
    for (size_t i = 0; i < listed; i++) {
        const json_t *row = json_array_get(rows, i);
        json_int_t number = json_integer_value(json_object_get(row, "client"));
        if (number > 0 && number <= UINT32_MAX)
            writer->owners[count++] = (struct owner){.number = (uint32_t)number, .row = row};
    }
    latest = 0;
    for (size_t i = 0; i < recording->count; i++)
        if (recording->records[i].client != latest && (latest = recording->records[i].client))
            writer->owners[count++] = (struct owner){.number = latest};
    qsort(writer->owners, count, sizeof *writer->owners, by_number);
    for (size_t i = 0; i < count; i++) {
        struct owner *last = writer->owner_count ? &writer->owners[writer->owner_count - 1] : NULL;
        if (!last || last->number != writer->owners[i].number)
            writer->owners[writer->owner_count++] = writer->owners[i];
        else if (!last->row)
            last->row = writer->owners[i].row;
    }
    return 0;
}

/* ---- sweeps over the spans ---- */

static int by_edge(const void *a, const void *b)
{
    const struct edge *one = a, *other = b;
    if (one->at != other->at)
        return one->at < other->at ? -1 : 1;
    /* Ends first: a span that ends as another begins did not run beside it. */
    return (int)one->begins - (int)other->begins;
}

/* The spans of a group, or of all (NULL), as sorted edges. */
static size_t collect_edges(struct writer *writer, const struct group *group)
{
    const struct recording *recording = writer->recording;
    size_t count = 0;
    for (size_t i = 0; i < recording->count; i++) {
        const struct proto_trace_record *record = &recording->records[i];
        if (record->kind != RECORDING_SPAN || record->to == record->from ||
            (group && memcmp(group->sm_groups, record->sm_groups, sizeof group->sm_groups) != 0))
            continue;
        uint32_t owner = (uint32_t)(owner_of(writer, record->client) - writer->owners);
        writer->edges[count++] = (struct edge){record->from, owner, true};
        writer->edges[count++] = (struct edge){record->to, owner, false};
    }
    qsort(writer->edges, count, sizeof *writer->edges, by_edge);
    writer->active_count = 0;
    for (uint32_t i = 0; i < writer->owner_count; i++)
        writer->owners[i].spans = 0;
    return count;
}

/* Is the set of active clients another after this edge? */
static bool edge_changes(const struct writer *writer, const struct edge *edge)
{
    return writer->owners[edge->owner].spans == (edge->begins ? 0 : 1);
}

/* Takes the edge into account. Returns whether the set of active clients changed. */
static bool cross_edge(struct writer *writer, const struct edge *edge)
{
    struct owner *owner = &writer->owners[edge->owner];
    bool changed = edge_changes(writer, edge);
    owner->spans += edge->begins ? 1 : -1u;
    if (changed && edge->begins) {
        owner->at = writer->active_count;
        writer->active[writer->active_count++] = edge->owner;
    } else if (changed) {
        uint32_t last = writer->active[--writer->active_count];
        writer->active[owner->at] = last;
        writer->owners[last].at = owner->at;
    }
    return changed;
}

static int by_index(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return one < other ? -1 : one > other;
}

/* "a + b". NULL where memory was short. */
static json_t *name_active(const struct writer *writer)
{
    uint32_t shown[NAMES_SHOWN], count = writer->active_count;
    if (count > NAMES_SHOWN)
        return json_sprintf("%" PRIu32 " clients", count);
    memcpy(shown, writer->active, count * sizeof *shown);
    qsort(shown, count, sizeof *shown, by_index);
    json_t *text = json_string("");
    for (uint32_t i = 0; i < count && text; i++) {
        char number[NUMBER_NAME];
        json_t *longer = json_sprintf("%s%s%s", json_string_value(text), i ? " + " : "",
                                      owner_name(&writer->owners[shown[i]], number));
        json_decref(text);
        text = longer;
    }
    return text;
}

static void write_group(struct writer *writer, uint32_t index)
{
    const struct group group = writer->groups[index];
    char sm_groups[SM_GROUPS_TEXT];
    uint32_t track = TRACK_SM_GROUPS + index;
    sm_groups_text(group.sm_groups, sm_groups);
    write_label(writer, PROCESS_GPU, track,
                json_sprintf("SM groups %s (%" PRIu32 " multiprocessors)", sm_groups,
                             count_multiprocessors(writer->recording, group.sm_groups)));
    size_t count = collect_edges(writer, &group);
    uint64_t from = 0;
    for (size_t i = 0; i < count; i++) {
        const struct edge *edge = &writer->edges[i];
        if (writer->active_count && edge->at > from && edge_changes(writer, edge))
            write_slice(writer, &(struct slice){.process = PROCESS_GPU,
                                                .track = track,
                                                .from = from,
                                                .to = edge->at,
                                                .category = "sm_groups",
                                                .name = name_active(writer)});
        if (cross_edge(writer, edge))
            from = edge->at;
    }
}

static void write_in_flight(struct writer *writer)
{
    size_t count = collect_edges(writer, NULL);
    uint32_t last = 0;
    write_counter(writer, PROCESS_GPU, "clients in flight", writer->recording->header.started, 0);
    for (size_t i = 0; i < count; i++) {
        cross_edge(writer, &writer->edges[i]);
        bool more = i + 1 < count && writer->edges[i + 1].at == writer->edges[i].at;
        if (more || writer->active_count == last)
            continue;
        last = writer->active_count;
        write_counter(writer, PROCESS_GPU, "clients in flight", writer->edges[i].at, last);
    }
}

/* ---- records ---- */

static void write_span(struct writer *writer, const struct proto_trace_record *record)
{
    char sm_groups[SM_GROUPS_TEXT];
    sm_groups_text(record->sm_groups, sm_groups);
    uint32_t count = count_multiprocessors(writer->recording, record->sm_groups);
    /* "atoms" is what SM groups were called when the first readers of traces were written. */
    json_t *args =
        json_pack("{s:I, s:s, s:s, s:I}", "commands", (json_int_t)record->value, "sm_groups",
                  sm_groups, "atoms", sm_groups, "multiprocessors", (json_int_t)count);
    write_slice(writer, &(struct slice){.process = process_of(owner_of(writer, record->client)),
                                        .track = record->stream + 1,
                                        .from = record->from,
                                        .to = record->to,
                                        .category = "batch",
                                        .name = json_string("batch"),
                                        .args = args});
}

static void write_sm_groups(struct writer *writer, const struct proto_trace_record *record)
{
    char sm_groups[SM_GROUPS_TEXT];
    uint32_t process = process_of(owner_of(writer, record->client));
    sm_groups_text(record->sm_groups, sm_groups);
    write_instant(writer, process, "share", "p",
                  json_sprintf("SM groups %s", sm_groups[0] ? sm_groups : "none"), record->from);
    write_counter(writer, process, "multiprocessors", record->from, record->value);
}

static void write_lease(struct writer *writer, const struct proto_trace_record *record)
{
    write_slice(writer,
                &(struct slice){.process = PROCESS_GPU,
                                .track = TRACK_LEASES + record->value,
                                .from = record->from,
                                .to = record->to,
                                .category = "lease",
                                .name = owner_numbered(owner_of(writer, record->client)),
                                .args = json_pack("{s:I}", "client", (json_int_t)record->client)});
}

static void write_hold(struct writer *writer, const struct proto_trace_record *record)
{
    write_slice(writer, &(struct slice){.process = process_of(owner_of(writer, record->client)),
                                        .track = TRACK_HELD + record->value,
                                        .from = record->from,
                                        .to = record->to,
                                        .category = "held",
                                        .name = json_string(recording_hold_name(record->value))});
}

static void write_recovery(struct writer *writer, const struct proto_trace_record *record)
{
    write_slice(writer, &(struct slice){.process = process_of_recovery(writer, record),
                                        .track = TRACK_RECOVERY,
                                        .from = record->from,
                                        .to = record->to,
                                        .category = "recovery",
                                        .name = json_string("recovers")});
}

static void write_record(struct writer *writer, const struct proto_trace_record *record)
{
    switch (record->kind) {
    case RECORDING_SPAN:
        write_span(writer, record);
        break;
    case RECORDING_LEASE:
        write_lease(writer, record);
        break;
    case RECORDING_HOLD:
        write_hold(writer, record);
        break;
    case RECORDING_SM_GROUPS:
        write_sm_groups(writer, record);
        break;
    case RECORDING_MODE:
        write_instant(writer, PROCESS_GPU, "mode", "g",
                      json_sprintf("mode %s", recording_mode_name(record->value)), record->from);
        break;
    case RECORDING_RECOVERY:
        write_recovery(writer, record);
        break;
    }
}

struct track {
    uint32_t process, number, kind;
};

static int by_track(const void *a, const void *b)
{
    const struct track *one = a, *other = b;
    if (one->process != other->process)
        return one->process < other->process ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

static void write_track(struct writer *writer, const struct track *track)
{
    json_t *name;
    if (track->kind == RECORDING_SPAN)
        name = json_sprintf("stream %" PRIu32, track->number - 1);
    else if (track->kind == RECORDING_HOLD)
        name = json_sprintf("held: %s", recording_hold_name(track->number - TRACK_HELD));
    else if (track->kind == RECORDING_RECOVERY)
        name = json_string("recovery");
    else
        name = json_sprintf("leases, lease group %" PRIu32, track->number - TRACK_LEASES);
    write_label(writer, track->process, track->number, name);
}

static int write_tracks(struct writer *writer)
{
    const struct recording *recording = writer->recording;
    struct track *tracks = calloc(recording->count + 1, sizeof *tracks);
    size_t count = 0;
    if (!tracks)
        return -ENOMEM;
    for (size_t i = 0; i < recording->count; i++) {
        const struct proto_trace_record *record = &recording->records[i];
        struct track track = {.kind = record->kind};
        if (record->kind == RECORDING_LEASE) {
            track.process = PROCESS_GPU;
            track.number = TRACK_LEASES + record->value;
        } else if (record->kind == RECORDING_SPAN || record->kind == RECORDING_HOLD) {
            track.process = process_of(owner_of(writer, record->client));
            track.number =
                record->kind == RECORDING_SPAN ? record->stream + 1 : TRACK_HELD + record->value;
        } else if (record->kind == RECORDING_RECOVERY) {
            track.process = process_of_recovery(writer, record);
            track.number = TRACK_RECOVERY;
        } else {
            continue;
        }
        if (!count || by_track(&tracks[count - 1], &track) != 0)
            tracks[count++] = track;
    }
    qsort(tracks, count, sizeof *tracks, by_track);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || by_track(&tracks[i - 1], &tracks[i]) != 0)
            write_track(writer, &tracks[i]);
    free(tracks);
    return 0;
}

/* ---- the whole ---- */

static void write_head(struct writer *writer, const json_t *answer)
{
    const struct recording *recording = writer->recording;
    const char *gpu = json_string_value(json_object_get(answer, "name"));
    const char *trouble = json_string_value(json_object_get(answer, "trouble"));
    json_t *other = json_pack(
        "{s:s, s:s, s:I, s:s, s:s, s:f, s:I, s:I, s:I, s:I, s:s?}", "made_by", "gpusharectl trace",
        "version", GPUSHARE_VERSION, "gpu", json_integer_value(json_object_get(answer, "gpu")),
        "gpu_name", gpu ? gpu : "", "mode", recording_mode_name(recording->header.mode), "seconds",
        (double)time_since_start(writer, recording->ended) / 1e9, "started_monotonic_ns",
        (json_int_t)recording->header.started, "records", (json_int_t)recording->count,
        "records_lost", (json_int_t)recording->lost, "records_damaged",
        (json_int_t)recording->damaged, "trouble", trouble);
    writer->failed |= !other;
    fputs("{\"displayTimeUnit\":\"ns\",\n\"otherData\":", writer->file);
    json_dumpf(other, writer->file, JSON_COMPACT | JSON_REAL_PRECISION(JSON_DIGITS));
    fputs(",\n\"traceEvents\":[", writer->file);
    json_decref(other);
}

static json_t *gpu_label(const json_t *answer)
{
    const char *gpu = json_string_value(json_object_get(answer, "name"));
    return json_sprintf("GPU %lld: %s",
                        (long long)json_integer_value(json_object_get(answer, "gpu")),
                        gpu ? gpu : "");
}

static int collect_all(struct writer *writer, const json_t *answer)
{
    const struct recording *recording = writer->recording;
    size_t spans = 0;
    if (collect_owners(writer, json_object_get(answer, "clients")) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < recording->count; i++) {
        if (recording->records[i].kind != RECORDING_SPAN)
            continue;
        if (add_group(writer, recording->records[i].sm_groups) < 0)
            return -ENOMEM;
        spans++;
    }
    writer->edges = malloc((2 * spans + 1) * sizeof *writer->edges);
    writer->active = calloc((size_t)writer->owner_count + 1, sizeof *writer->active);
    return writer->edges && writer->active ? 0 : -ENOMEM;
}

int perfetto_write(FILE *file, const struct recording *recording, const json_t *answer)
{
    struct writer writer = {.file = file, .recording = recording};
    int result = collect_all(&writer, answer);
    if (result == 0) {
        write_head(&writer, answer);
        write_label(&writer, PROCESS_GPU, 0, gpu_label(answer));
        for (uint32_t i = 0; i < writer.owner_count; i++)
            write_label(&writer, process_of(&writer.owners[i]), 0, owner_label(&writer.owners[i]));
        result = write_tracks(&writer);
    }
    if (result == 0) {
        for (size_t i = 0; i < recording->count; i++)
            write_record(&writer, &recording->records[i]);
        for (uint32_t i = 0; i < writer.group_count; i++)
            write_group(&writer, i);
        write_in_flight(&writer);
        fputs("\n]}\n", file);
        if (fflush(file) != 0 || ferror(file))
            result = -EIO;
        else if (writer.failed)
            result = -ENOMEM;
    }
    free(writer.owners);
    free(writer.groups);
    free(writer.edges);
    free(writer.active);
    return result;
}
