/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/perfetto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Processes and tracks are numbers; a client's streams are the tracks 1 to PROTO_STREAMS_MAX. */
enum { PROCESS_GPU = 1, TRACK_LEASES = 1, TRACK_ATOMS = 1001, TRACK_HELD = 10001 };
enum { NAMES_SHOWN = 6, ATOM_WORDS = 4 };

struct owner {
    uint32_t number;
    const json_t *row; /* of the answer, or NULL */
    uint32_t spans;    /* under way, in a sweep */
    uint32_t at;       /* where it stands among the active, in a sweep */
};

/* Spans that ran on one set of atoms. */
struct group {
    uint64_t atoms[ATOM_WORDS];
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
    struct edge *edges; /* two a span */
    uint32_t *active;   /* owners with spans under way, in a sweep */
    uint32_t active_count;
    bool any; /* an event stands before */
};

/* ---- JSON ---- */

static void write_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            fprintf(file, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            fprintf(file, "\\u%04x", byte);
        else
            fputc(byte, file);
    }
    fputc('"', file);
}

static void write_us(FILE *file, uint64_t ns)
{
    fprintf(file, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

static uint64_t since(const struct writer *writer, uint64_t at)
{
    return at - writer->recording->header.started;
}

/* What every event begins with; the caller goes on with further members and "}". */
static void begin_event(struct writer *writer, char phase, uint32_t process, uint32_t track,
                        const char *name)
{
    fprintf(writer->file, "%s\n{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":",
            writer->any ? "," : "", phase, process, track);
    write_text(writer->file, name);
    writer->any = true;
}

static void write_times(struct writer *writer, const char *category, uint64_t from, uint64_t to)
{
    fprintf(writer->file, ",\"cat\":\"%s\",\"ts\":", category);
    write_us(writer->file, since(writer, from));
    fputs(",\"dur\":", writer->file);
    write_us(writer->file, to - from);
}

static void write_name(struct writer *writer, const char *what, uint32_t process, uint32_t track,
                       const char *name)
{
    begin_event(writer, 'M', process, track, what);
    fputs(",\"args\":{\"name\":", writer->file);
    write_text(writer->file, name);
    fputs("}}", writer->file);
}

/* The order in which a viewer shows processes and tracks. */
static void write_order(struct writer *writer, const char *what, uint32_t process, uint32_t track)
{
    begin_event(writer, 'M', process, track, what);
    fprintf(writer->file, ",\"args\":{\"sort_index\":%" PRIu32 "}}",
            what[0] == 'p' ? process : track);
}

static void write_track(struct writer *writer, uint32_t process, uint32_t track, const char *name)
{
    write_name(writer, "thread_name", process, track, name);
    write_order(writer, "thread_sort_index", process, track);
}

static void write_counter(struct writer *writer, uint32_t process, const char *name, uint64_t at,
                          uint32_t value)
{
    begin_event(writer, 'C', process, 0, name);
    fputs(",\"ts\":", writer->file);
    write_us(writer->file, since(writer, at));
    fprintf(writer->file, ",\"args\":{\"value\":%" PRIu32 "}}", value);
}

/* ---- atoms ---- */

static bool has_atom(const uint64_t atoms[ATOM_WORDS], uint32_t atom)
{
    return atoms[atom / 64] >> (atom % 64) & 1;
}

/* "0-3, 7". */
static void atoms_text(const uint64_t atoms[ATOM_WORDS], char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t atom = 0; atom < 64 * ATOM_WORDS && used < bytes; atom++) {
        if (!has_atom(atoms, atom))
            continue;
        uint32_t last = atom;
        while (last + 1 < 64 * ATOM_WORDS && has_atom(atoms, last + 1))
            last++;
        const char *comma = used ? ", " : "";
        int length = last > atom ? snprintf(text + used, bytes - used, "%s%u-%u", comma, atom, last)
                                 : snprintf(text + used, bytes - used, "%s%u", comma, atom);
        used += length > 0 ? (size_t)length : 0;
        atom = last;
    }
}

static uint32_t multiprocessors(const struct recording *recording, const uint64_t atoms[ATOM_WORDS])
{
    const struct proto_trace_header *header = &recording->header;
    uint32_t sum = 0;
    for (uint32_t atom = 0; atom < header->atoms && atom < 64 * ATOM_WORDS; atom++)
        if (has_atom(atoms, atom))
            sum += header->remainder && atom + 1 == header->atoms ? header->remainder
                                                                  : header->atom_multiprocessors;
    return sum;
}

static int add_group(struct writer *writer, const uint64_t atoms[ATOM_WORDS])
{
    for (uint32_t i = 0; i < writer->group_count; i++)
        if (memcmp(writer->groups[i].atoms, atoms, sizeof writer->groups[i].atoms) == 0)
            return 0;
    if (writer->group_count == writer->group_room) {
        uint32_t room = writer->group_room ? writer->group_room * 2 : 16;
        struct group *groups = realloc(writer->groups, room * sizeof *groups);
        if (!groups)
            return -ENOMEM;
        writer->groups = groups;
        writer->group_room = room;
    }
    memcpy(writer->groups[writer->group_count++].atoms, atoms, sizeof writer->groups->atoms);
    return 0;
}

/* ---- clients ---- */

static int by_number(const void *a, const void *b)
{
    const struct owner *one = a, *other = b;
    return one->number < other->number ? -1 : one->number > other->number;
}

/* Everybody that a record names is there. */
static struct owner *owner_of(const struct writer *writer, uint32_t number)
{
    struct owner wanted = {.number = number};
    struct owner *found =
        bsearch(&wanted, writer->owners, writer->owner_count, sizeof wanted, by_number);
    return found ? found : writer->owners;
}

static uint32_t process_of(const struct owner *owner)
{
    /* A client with the greatest number of all would be the GPU. */
    return owner->number + 1 > owner->number ? owner->number + 1 : owner->number;
}

static void short_name(const struct owner *owner, char *text, size_t bytes)
{
    const char *name = owner->row ? json_string_value(json_object_get(owner->row, "name")) : NULL;
    if (name && *name)
        snprintf(text, bytes, "%s", name);
    else
        snprintf(text, bytes, "client %" PRIu32, owner->number);
}

static int collect_owners(struct writer *writer, const json_t *rows)
{
    const struct recording *recording = writer->recording;
    size_t listed = json_array_size(rows), room = listed;
    uint32_t latest = 0;
    /* Records of one client mostly stand together: so many at most are none of the answer's. */
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

static void write_owner(struct writer *writer, const struct owner *owner)
{
    char name[200], text[360];
    short_name(owner, name, sizeof name);
    json_int_t pid = json_integer_value(json_object_get(owner->row, "pid"));
    if (owner->row)
        snprintf(text, sizeof text, "%s (client %" PRIu32 ", pid %lld, uid %lld)", name,
                 owner->number, (long long)pid,
                 (long long)json_integer_value(json_object_get(owner->row, "uid")));
    else
        snprintf(text, sizeof text, "%s", name);
    write_name(writer, "process_name", process_of(owner), 0, text);
    write_order(writer, "process_sort_index", process_of(owner), 0);
}

/* ---- sweeps over the spans ---- */

static int by_edge(const void *a, const void *b)
{
    const struct edge *one = a, *other = b;
    if (one->at != other->at)
        return one->at < other->at ? -1 : 1;
    /* Ends first: who ends as another begins did not run beside it. */
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
            (group && memcmp(group->atoms, record->atoms, sizeof group->atoms) != 0))
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

/* Whether the set of active clients is another behind it. */
static bool changes(const struct writer *writer, const struct edge *edge)
{
    return writer->owners[edge->owner].spans == (edge->begins ? 0 : 1);
}

/* Returns whether it did. */
static bool cross(struct writer *writer, const struct edge *edge)
{
    struct owner *owner = &writer->owners[edge->owner];
    bool changed = changes(writer, edge);
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

/* "a + b". */
static void name_active(const struct writer *writer, char *text, size_t bytes)
{
    uint32_t shown[NAMES_SHOWN], count = writer->active_count;
    if (count > NAMES_SHOWN) {
        snprintf(text, bytes, "%" PRIu32 " clients", count);
        return;
    }
    memcpy(shown, writer->active, count * sizeof *shown);
    qsort(shown, count, sizeof *shown, by_index);
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < bytes; i++) {
        char name[200];
        short_name(&writer->owners[shown[i]], name, sizeof name);
        int length = snprintf(text + used, bytes - used, "%s%s", i ? " + " : "", name);
        used += length > 0 ? (size_t)length : 0;
    }
}

static void write_group(struct writer *writer, uint32_t index)
{
    const struct group group = writer->groups[index];
    char atoms[600], name[NAMES_SHOWN * 204];
    uint32_t track = TRACK_ATOMS + index;
    atoms_text(group.atoms, atoms, sizeof atoms);
    snprintf(name, sizeof name, "atoms %s (%" PRIu32 " multiprocessors)", atoms,
             multiprocessors(writer->recording, group.atoms));
    write_track(writer, PROCESS_GPU, track, name);
    size_t count = collect_edges(writer, &group);
    uint64_t from = 0;
    for (size_t i = 0; i < count; i++) {
        const struct edge *edge = &writer->edges[i];
        if (writer->active_count && edge->at > from && changes(writer, edge)) {
            name_active(writer, name, sizeof name);
            begin_event(writer, 'X', PROCESS_GPU, track, name);
            write_times(writer, "atoms", from, edge->at);
            fputc('}', writer->file);
        }
        if (cross(writer, edge))
            from = edge->at;
    }
}

static void write_in_flight(struct writer *writer)
{
    size_t count = collect_edges(writer, NULL);
    uint32_t last = 0;
    write_counter(writer, PROCESS_GPU, "clients in flight", writer->recording->header.started, 0);
    for (size_t i = 0; i < count; i++) {
        cross(writer, &writer->edges[i]);
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
    char atoms[600];
    const struct owner *owner = owner_of(writer, record->client);
    atoms_text(record->atoms, atoms, sizeof atoms);
    begin_event(writer, 'X', process_of(owner), record->stream + 1, "batch");
    write_times(writer, "batch", record->from, record->to);
    fprintf(writer->file,
            ",\"args\":{\"commands\":%" PRIu32 ",\"atoms\":\"%s\",\"multiprocessors\":%" PRIu32
            "}}",
            record->value, atoms, multiprocessors(writer->recording, record->atoms));
}

static void write_share(struct writer *writer, const struct proto_trace_record *record)
{
    char atoms[600], name[660];
    const struct owner *owner = owner_of(writer, record->client);
    atoms_text(record->atoms, atoms, sizeof atoms);
    snprintf(name, sizeof name, "atoms %s", atoms[0] ? atoms : "none");
    begin_event(writer, 'i', process_of(owner), 0, name);
    fputs(",\"cat\":\"share\",\"s\":\"p\",\"ts\":", writer->file);
    write_us(writer->file, since(writer, record->from));
    fputc('}', writer->file);
    write_counter(writer, process_of(owner), "multiprocessors", record->from, record->value);
}

static void write_record(struct writer *writer, const struct proto_trace_record *record)
{
    char name[220];
    const struct owner *owner = owner_of(writer, record->client);
    switch (record->kind) {
    case RECORDING_SPAN:
        write_span(writer, record);
        break;
    case RECORDING_LEASE:
        short_name(owner, name, sizeof name);
        begin_event(writer, 'X', PROCESS_GPU, TRACK_LEASES + record->value, name);
        write_times(writer, "lease", record->from, record->to);
        fprintf(writer->file, ",\"args\":{\"client\":%" PRIu32 "}}", record->client);
        break;
    case RECORDING_HOLD:
        begin_event(writer, 'X', process_of(owner), TRACK_HELD + record->value,
                    recording_hold_name(record->value));
        write_times(writer, "held", record->from, record->to);
        fputc('}', writer->file);
        break;
    case RECORDING_SHARE:
        write_share(writer, record);
        break;
    case RECORDING_MODE:
        snprintf(name, sizeof name, "mode %s", recording_mode_name(record->value));
        begin_event(writer, 'i', PROCESS_GPU, 0, name);
        fputs(",\"cat\":\"mode\",\"s\":\"g\",\"ts\":", writer->file);
        write_us(writer->file, since(writer, record->from));
        fputc('}', writer->file);
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

static void name_track(struct writer *writer, const struct track *track)
{
    char name[80];
    if (track->kind == RECORDING_SPAN)
        snprintf(name, sizeof name, "stream %" PRIu32, track->number - 1);
    else if (track->kind == RECORDING_HOLD)
        snprintf(name, sizeof name, "held: %s", recording_hold_name(track->number - TRACK_HELD));
    else
        snprintf(name, sizeof name, "leases, lane %" PRIu32, track->number - TRACK_LEASES);
    write_track(writer, track->process, track->number, name);
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
        } else {
            continue;
        }
        if (!count || by_track(&tracks[count - 1], &track) != 0)
            tracks[count++] = track;
    }
    qsort(tracks, count, sizeof *tracks, by_track);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || by_track(&tracks[i - 1], &tracks[i]) != 0)
            name_track(writer, &tracks[i]);
    free(tracks);
    return 0;
}

/* ---- the whole ---- */

static void write_head(struct writer *writer, const json_t *answer)
{
    const struct recording *recording = writer->recording;
    const char *gpu = json_string_value(json_object_get(answer, "name"));
    const char *trouble = json_string_value(json_object_get(answer, "trouble"));
    FILE *file = writer->file;
    fputs("{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"made_by\":\"gpusharectl trace\"", file);
    fprintf(file, ",\"version\":\"%s\",\"gpu\":%lld,\"gpu_name\":", GPUSHARE_VERSION,
            (long long)json_integer_value(json_object_get(answer, "gpu")));
    write_text(file, gpu ? gpu : "");
    fprintf(file, ",\"mode\":\"%s\",\"seconds\":%.9f", recording_mode_name(recording->header.mode),
            (double)since(writer, recording->ended) / 1e9);
    fprintf(file, ",\"started_monotonic_ns\":%" PRIu64 ",\"records\":%zu",
            recording->header.started, recording->count);
    fprintf(file, ",\"records_lost\":%" PRIu64 ",\"records_damaged\":%" PRIu64 ",\"trouble\":",
            recording->lost, recording->damaged);
    if (trouble)
        write_text(file, trouble);
    else
        fputs("null", file);
    fputs("},\n\"traceEvents\":[", file);
}

static void write_gpu(struct writer *writer, const json_t *answer)
{
    char name[400];
    const char *gpu = json_string_value(json_object_get(answer, "name"));
    snprintf(name, sizeof name, "GPU %lld: %s",
             (long long)json_integer_value(json_object_get(answer, "gpu")), gpu ? gpu : "");
    write_name(writer, "process_name", PROCESS_GPU, 0, name);
    write_order(writer, "process_sort_index", PROCESS_GPU, 0);
}

static int prepare(struct writer *writer, const json_t *answer)
{
    const struct recording *recording = writer->recording;
    size_t spans = 0;
    if (collect_owners(writer, json_object_get(answer, "clients")) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < recording->count; i++) {
        if (recording->records[i].kind != RECORDING_SPAN)
            continue;
        if (add_group(writer, recording->records[i].atoms) < 0)
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
    int result = prepare(&writer, answer);
    if (result == 0) {
        write_head(&writer, answer);
        write_gpu(&writer, answer);
        for (uint32_t i = 0; i < writer.owner_count; i++)
            write_owner(&writer, &writer.owners[i]);
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
    }
    free(writer.owners);
    free(writer.groups);
    free(writer.edges);
    free(writer.active);
    return result;
}
