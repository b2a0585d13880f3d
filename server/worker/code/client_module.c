/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/client_module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/ipc/timeline.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/state_lost.h"
#include "common/util.h"
#include "common/cuda/ptx.h"
#include "server/worker/image/constants.h"
#include "server/worker/image/cubin.h"
#include "server/worker/code/device_launch.h"
#include "server/worker/image/code_image.h"
#include "server/worker/code/compiler.h"
#include "server/worker/code/kernel.h"
#include "server/worker/code/known_image.h"
#include "server/worker/code/module_constants.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/client/twins.h"
#include "server/worker/code/ptx_link.h"
#include "server/worker/image/rewrite.h"
#include "server/worker/image/symbols.h"

/* Bytes of tree for each byte of an ordinary PTX text. */
#define TREE_ORDINARY 16

struct client_module {
    struct client_module *next;
    struct client *client;
    uint32_t number;
    struct code_image image;
    struct known_images *images;
    struct known_image *known; /* of the images; NULL: nothing is known of its text */
    struct symbols *symbols;   /* NULL: not loaded, or the image is no PTX */
    cuda_module handle;        /* NULL: not loaded */
    cuda_device_ptr base_at;   /* the constant of ours in its code; 0: there is none */
    uint64_t twins, twins_end; /* where its constants' twins may lie */
    struct code_memory *code_memory;
    uint64_t kept; /* bytes charged to code_memory */
    const struct retirement *dying;
    enum proto_unsaved unsaved; /* what another worker can't have of it */
    bool busy, lost;            /* lost: and this is another one */
};

struct client_module *client_module_find(struct client *client, uint32_t number)
{
    struct client_module *module = client->control.modules;
    while (module && module->number != number)
        module = module->next;
    return module;
}

uint32_t client_module_new_lost(struct client *client, uint32_t number, enum proto_unsaved unsaved,
                                struct code_memory *code_memory, struct error *why)
{
    struct client_module *module = NULL;
    uint32_t error = client_module_new(client, number, code_memory, &module, why);
    if (!module)
        return error;
    module->unsaved = unsaved;
    module->lost = true;
    pthread_mutex_lock(&client->lock);
    client->objects.lost_modules++;
    client->objects.lost_reaching += state_lost_reaches(unsaved, PROTO_UNSAVED_NOTHING);
    pthread_mutex_unlock(&client->lock);
    return 0;
}

bool client_module_is_lost(const struct client_module *module)
{
    return module->lost;
}

bool client_module_reaches_lost(const struct client *client, const struct client_module *module)
{
    return client->objects.lost_reaching ||
           (client->objects.lost_modules && module->unsaved != PROTO_UNSAVED_NOTHING);
}

uint32_t client_module_refuse_lost(const struct client_module *module, struct error *why)
{
    return state_lost_refuse(module->number, module->unsaved, why);
}

uint32_t client_module_number(const struct client_module *module)
{
    return module->number;
}

const struct retirement *client_module_dying(const struct client_module *module)
{
    return module->dying;
}

void client_module_mark_dying(struct client *client, struct client_module *module,
                              const struct retirement *request)
{
    module->dying = request;
    for (size_t i = 0; i < client->objects.range_count; i++)
        if (client->objects.ranges[i].kind == RANGE_VARIABLE &&
            client->objects.ranges[i].module == module)
            client->objects.ranges[i].dying = request;
}

static void say_what_stays(const struct client *client, const struct client_module *module,
                           const struct rewrite *rewrite)
{
    const char *stays = rewrite_first_that_stays(rewrite);
    if (rewrite_unread(rewrite))
        log_notice(MESSAGE_TEXT(module_left), client->number, module->number,
                   rewrite_unread(rewrite));
    else if (stays)
        log_notice(MESSAGE_TEXT(variable_left), client->number, module->number, stays,
                   rewrite_why_stays(rewrite, stays));
}

bool client_module_is_busy(const struct client_module *module)
{
    return module->busy;
}

void client_module_set_busy(struct client_module *module, bool busy)
{
    module->busy = busy;
}

bool client_module_is_loadable(const struct client_module *module)
{
    return !module->busy && !module->handle && module->image.kind != CODE_IMAGE_NONE;
}

uint32_t client_module_new(struct client *client, uint32_t number, struct code_memory *code_memory,
                           struct client_module **out, struct error *why)
{
    if (client_module_find(client, number))
        return error_set(why, MESSAGE(module_exists), number);
    struct client_module *module = *out = calloc(1, sizeof *module);
    if (!module)
        return error_set(why, MESSAGE(module_no_memory));
    module->client = client;
    module->number = number;
    module->code_memory = code_memory;
    module->next = client->control.modules;
    client->control.modules = module;
    return 0;
}

/* The reading of an image, and when it has to end. */
struct reading {
    const struct client *client;
    struct client_module *module;
    const struct code_seat *seat;
    uint64_t deadline; /* ns of timeline_now */
};

/* Refuses a text that is not compiled, or not even read to its end. */
static uint32_t refuse_text(const struct client *client, const struct client_module *module,
                            struct error *why)
{
    error_prefix(why, "module %u: ", module->number);
    log_notice(MESSAGE_TEXT(compiler_refused), client->number, why->text);
    return why->number;
}

static uint32_t ask_reading(void *context, struct error *why)
{
    const struct reading *reading = context;
    if (atomic_load_explicit(reading->seat->gone, memory_order_relaxed))
        error_set(why, MESSAGE(module_given_up));
    else if (timeline_now() >= reading->deadline)
        compiler_refuse_time(reading->seat->compiler, why);
    else
        return 0;
    return refuse_text(reading->client, reading->module, why);
}

/* Unpacks the image, within the memory and the time that one load may have. The caller ends with
 * end_reading. */
static uint32_t begin_image(struct reading *reading, struct error *why)
{
    struct client_module *module = reading->module;
    const struct proto_device_info *info = &reading->client->gpu->info;
    reading->deadline = compiler_deadline(reading->seat->compiler);
    return code_image_unpack(&module->image, info->compute_major * 10 + info->compute_minor,
                             module->code_memory->load, why);
}

/* If it is PTX, reads its text. *reading must live as long as *rewrite. */
static uint32_t begin_text(struct reading *reading, struct rewrite **rewrite, struct error *why)
{
    const struct client_module *module = reading->module;
    size_t max = module->code_memory->load;
    *rewrite = NULL;
    if (module->image.kind != CODE_IMAGE_PTX)
        return 0;
    const struct ptx_limits limits = {
        .bytes = max - code_image_memory(&module->image), .ask = ask_reading, .context = reading};
    return rewrite_open(rewrite, (const char *)module->image.bytes, module->image.count, &limits,
                        why);
}

static uint32_t begin_reading(struct reading *reading, struct rewrite **rewrite, struct error *why)
{
    *rewrite = NULL;
    uint32_t error = begin_image(reading, why);
    return error ? error : begin_text(reading, rewrite, why);
}

static void end_reading(struct client_module *module, struct rewrite *rewrite)
{
    rewrite_close(rewrite);
    code_image_pack(&module->image);
}

/* Whether this text was read before, for any client. Then its needs are known, and the module is
 * inspected. */
static bool find_known(const struct code_seat *seat, struct client_module *module,
                       struct proto_worker_module_needs *needs)
{
    module->images = seat->known;
    if (module->image.kind == CODE_IMAGE_PTX)
        module->known =
            known_image_find(seat->known, module->image.bytes, module->image.count, needs);
    if (module->known)
        code_image_pack(&module->image);
    return module->known != NULL;
}

uint32_t client_module_inspect(const struct client *client, struct client_module *module,
                               const struct code_seat *seat, int fd, uint64_t count,
                               struct proto_worker_module_needs *needs, struct error *why)
{
    struct reading reading = {.client = client, .module = module, .seat = seat};
    struct rewrite *rewrite;
    *needs = (struct proto_worker_module_needs){0};
    uint32_t error = code_image_open(&module->image, fd, count, why);
    if (!error)
        error = begin_image(&reading, why);
    if (error || find_known(seat, module, needs))
        return error;
    error = begin_text(&reading, &rewrite, why);
    if (!error)
        error = device_launch_check(&module->image, client->gpu, why);
    needs->unsaved = rewrite ? rewrite_unsaved(rewrite) : PROTO_UNSAVED_NO_PTX;
    if (!error && rewrite) {
        needs->global_bytes = rewrite_global_bytes(rewrite);
        needs->resident_bytes = rewrite_resident_bytes(rewrite);
        say_what_stays(client, module, rewrite);
        module->known =
            known_image_add(seat->known, module->image.bytes, module->image.count, rewrite, needs);
    } else if (!error) {
        needs->resident_bytes = cubin_variable_bytes(module->image.bytes, module->image.count);
    }
    module->unsaved = needs->unsaved;
    end_reading(module, rewrite);
    return error;
}

/* The compiler's log on one line, without blanks around it. */
static void make_one_line(char *log)
{
    size_t used = 0;
    for (const char *from = log + strspn(log, "\n "); *from; from++)
        log[used++] = *from == '\n' || *from == '\t' ? ' ' : *from;
    while (used && log[used - 1] == ' ')
        used--;
    log[used] = 0;
}

/* ---- loading ---- */

/* A module on its way to the driver, and what the driver said. */
struct code_load {
    struct quiet_call call;
    struct client *client;
    struct client_module *module;
    const void *code;
    const char *constant; /* of the code, which gets the base; NULL: none */
    uint64_t base;
    cuda_result result;
    char log[PTX_LINK_LOG];
};

/* After the window, which others wait for the end of; before anybody can launch a kernel of the
 * module, since the load is not answered yet. */
static cuda_result write_base(struct code_load *load, struct quiet_calls *calls)
{
    const struct gpu *gpu = load->client->gpu;
    const struct cuda_driver *cuda = gpu->cuda;
    cuda_device_ptr at = 0;
    size_t bytes = 0;
    cuda_result result = cuda->cuModuleGetGlobal(&at, &bytes, load->module->handle, load->constant);
    if (result == CUDA_OK)
        result = clearing_write(&gpu->clearing, calls, at, &load->base, sizeof load->base);
    if (result == CUDA_OK)
        load->module->base_at = at;
    return result;
}

static void make_load(struct quiet_call *call)
{
    struct code_load *load = container_of(call, struct code_load, call);
    const struct cuda_driver *cuda = load->client->gpu->cuda;
    cuda_jit_option options[] = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {load->log, (void *)(uintptr_t)sizeof load->log};
    load->result = cuda->cuModuleLoadDataEx(&load->module->handle, load->code, 2, options, values);
    if (load->result != CUDA_OK)
        load->module->handle = NULL;
    else
        kernel_raise_all(load->client->gpu, load->module->handle);
}

static void make_unload(struct quiet_call *call)
{
    struct code_load *load = container_of(call, struct code_load, call);
    client_module_unload(load->client, load->module);
}

/* Code on its way from PTX to the driver: at most one of the two holds it. */
struct made_code {
    struct compiled *compiled;
    struct ptx_link link;
    struct code_name text; /* of compiled */
};

static void release_made(struct made_code *made)
{
    compiled_release(made->compiled);
    ptx_link_close(&made->link);
}

/* In this thread, where nothing bounds it. */
static void compile_here(const struct cuda_driver *cuda, const char *text, struct made_code *made,
                         struct code_load *load)
{
    size_t bytes = 0;
    load->result = ptx_link_open(&made->link, cuda);
    if (load->result == CUDA_OK)
        load->result = ptx_link_text(&made->link, text, &load->code, &bytes);
    memcpy(load->log, made->link.log, sizeof load->log);
}

/* In a process apart; *absent: there is none. */
static uint32_t compile_apart(const struct code_seat *seat, const char *text,
                              struct made_code *made, struct code_load *load, bool *absent,
                              struct error *why)
{
    struct code_memory *code_memory = load->module->code_memory;
    struct compiler_result result;
    uint64_t begun = timeline_now();
    uint32_t error = compiler_make(
        seat->compiler, (struct compiler_caller){seat->caller->owner, seat->caller->client}, text,
        code_memory->load, code_memory_room(code_memory), &result, why);
    if (error)
        return refuse_text(load->client, load->module, why);
    if (result.busy) {
        *seat->awaited = result.text;
        return CLIENT_MODULE_LATER;
    }
    *absent = result.absent;
    load->result = result.result;
    memcpy(load->log, result.log, sizeof load->log);
    made->compiled = result.compiled;
    made->text = result.text;
    if (made->compiled)
        load->code = compiled_code(made->compiled);
    if (made->compiled && !result.found)
        log_info(MESSAGE_TEXT(compiler_done), load->client->number, load->module->number,
                 strlen(text), (unsigned long long)((timeline_now() - begun) / 1000000));
    return 0;
}

/* Compiled before the load: that may take minutes, and a quiet window must not. A driver without a
 * linker compiles while it loads. Returns an error number with a sentence in why, or 0 with the
 * driver's refusal, if there is one, in load. */
static uint32_t compile_before(const struct code_seat *seat, const char *text,
                               struct made_code *made, struct code_load *load, struct error *why)
{
    const struct cuda_driver *cuda = load->client->gpu->cuda;
    bool absent = true;
    if (!ptx_link_offered(cuda))
        return 0;
    if (compiler_is_open(seat->compiler)) {
        uint32_t error = compile_apart(seat, text, made, load, &absent, why);
        if (error)
            return error;
    }
    if (absent)
        compile_here(cuda, text, made, load);
    return 0;
}

static uint32_t refuse_load(struct code_load *load, struct error *why)
{
    load->log[sizeof load->log - 1] = 0;
    make_one_line(load->log);
    uint32_t error = error_from_cuda((int)load->result);
    return load->log[0] ? error_set(why, error, MESSAGE_TEXT(module_refused_log),
                                    cuda_driver_error_sentence(load->result), load->log)
                        : error_set(why, error, MESSAGE_TEXT(module_refused),
                                    cuda_driver_error_sentence(load->result));
}

/* To the driver. */
static uint32_t pass_on(struct code_load *load, const struct code_seat *seat, struct error *why)
{
    if (load->result == CUDA_OK && !quiet_calls_make(seat->calls, &load->call))
        return error_set(why, MESSAGE(module_given_up));
    if (load->result == CUDA_OK && load->constant)
        load->result = write_base(load, seat->calls);
    return load->result == CUDA_OK ? 0 : refuse_load(load, why);
}

static uint32_t load_code(struct client *client, struct client_module *module,
                          const struct code_seat *seat, const void *code,
                          const struct rewrite *rewrite, struct error *why)
{
    struct made_code made = {.compiled = NULL, .link = {.handle = NULL}};
    struct code_load load = {.call = {.make = make_load, .caller = *seat->caller},
                             .client = client,
                             .module = module,
                             .code = code,
                             .constant = rewrite ? rewrite_constant(rewrite) : NULL,
                             .base = rewrite ? rewrite_base(rewrite) : 0,
                             .result = CUDA_OK};
    uint32_t error = rewrite ? compile_before(seat, code, &made, &load, why) : 0;
    if (!error)
        error = pass_on(&load, seat, why);
    if (!error && made.compiled)
        known_image_loaded(seat->known, module->known, &made.text, rewrite, module->symbols);
    release_made(&made);
    return error;
}

/* Clears the memory that the variables have moved to, and writes their initial values. */
static cuda_result write_variables(const struct clearing *clearing, struct quiet_calls *calls,
                                   const struct rewrite *rewrite, uint64_t base)
{
    cuda_result result = clearing_zero(clearing, calls, base, rewrite_global_bytes(rewrite));
    uint32_t next = 0;
    uint64_t address;
    uint8_t *values;
    size_t count;
    while (result == CUDA_OK && rewrite_initial(rewrite, &next, &address, &values, &count)) {
        result = values ? clearing_write(clearing, calls, address, values, count)
                        : CUDA_ERR_OUT_OF_MEMORY;
        free(values);
    }
    return result;
}

static bool is_place(struct client *client, uint64_t base, uint64_t bytes)
{
    if (bytes == 0)
        return true;
    pthread_mutex_lock(&client->lock);
    const struct range *range = client_memory_range_find(client, base, bytes);
    bool ours = range && range->kind == RANGE_DEVICE && !range->dying;
    pthread_mutex_unlock(&client->lock);
    return ours && base % REWRITE_ALIGN == 0;
}

/*
 * The memory of this process that a loaded module takes. The driver does not say how much it takes
 * itself. For PTX the software GPU keeps a tree like ours and the code that it made from it; for a
 * cubin any driver keeps about a copy. For a text that was not understood we count the size of an
 * ordinary tree.
 */
static uint64_t kept_bytes(const struct client *client, const struct client_module *module,
                           const struct rewrite *rewrite)
{
    if (!rewrite)
        return module->image.count +
               (client->gpu->cuda->cuFuncGetParamInfo ? 0 : code_image_memory(&module->image));
    uint64_t tree = rewrite_tree_bytes(rewrite);
    return symbols_bytes(module->symbols) + 2 * (tree ? tree : TREE_ORDINARY * module->image.count);
}

static uint32_t charge_bytes(struct client *client, struct client_module *module, uint64_t kept,
                             struct error *why)
{
    uint32_t error = code_memory_charge(module->code_memory, &client->kept_bytes, kept, why);
    if (!error)
        module->kept = kept;
    return error;
}

static uint32_t charge_kept(struct client *client, struct client_module *module,
                            const struct rewrite *rewrite, struct error *why)
{
    return charge_bytes(client, module, kept_bytes(client, module, rewrite), why);
}

static uint32_t load_rewritten(struct client *client, struct client_module *module,
                               struct rewrite *rewrite, const struct code_seat *seat, uint64_t base,
                               bool again, struct error *why)
{
    uint64_t bytes = rewrite_global_bytes(rewrite);
    if (!is_place(client, base, bytes))
        return error_set(why, MESSAGE(variables_place), (unsigned long long)base,
                         (unsigned long long)bytes);
    char *text = NULL;
    uint32_t error = rewrite_place(rewrite, base, &text, why);
    if (error)
        return error;
    module->twins = rewrite_constants(rewrite).end;
    module->twins_end = base + bytes;
    module->symbols = rewrite_symbols(rewrite);
    error = module->symbols ? charge_kept(client, module, rewrite, why)
                            : error_set(why, MESSAGE(module_no_memory));
    if (!error)
        error = load_code(client, module, seat, text, rewrite, why);
    compiler_trim(seat->compiler, code_memory_room(module->code_memory));
    free(text);
    if (error)
        return error;
    /* Variables live on in the client's memory, with the values that they have. */
    cuda_result written =
        again ? CUDA_OK : write_variables(&client->gpu->clearing, seat->calls, rewrite, base);
    if (written != CUDA_OK)
        return error_set(why, error_from_cuda((int)written), MESSAGE_TEXT(variables_write),
                         cuda_driver_error_sentence(written));
    written = module_constants_settle(client, module, module->handle, rewrite, seat->calls, again);
    if (written != CUDA_OK)
        return error_set(why, error_from_cuda((int)written), MESSAGE_TEXT(constants_settle),
                         cuda_driver_error_sentence(written));
    return 0;
}

void client_module_unload(struct client *client, struct client_module *module)
{
    if (module->handle)
        client->gpu->cuda->cuModuleUnload(module->handle);
    module->handle = NULL;
    module->base_at = 0;
}

void client_module_unload_all(struct client *client)
{
    for (struct client_module *at = client->control.modules; at; at = at->next)
        client_module_unload(client, at);
}

static void release_code(struct client *client, struct client_module *module)
{
    pthread_mutex_lock(&client->lock);
    twins_remove(client, module);
    pthread_mutex_unlock(&client->lock);
    symbols_free(module->symbols);
    module->symbols = NULL;
    code_memory_refund(module->code_memory, &client->kept_bytes, module->kept);
    module->kept = 0;
}

/* Returns error. */
static uint32_t undo_load(struct client *client, struct client_module *module,
                          const struct code_seat *seat, uint32_t error)
{
    struct code_load gone = {
        .call = {.make = make_unload, .caller = *seat->caller}, .client = client, .module = module};
    /* Of a client that leaves meanwhile it goes with the rest. */
    if (module->handle)
        quiet_calls_make(seat->calls, &gone.call);
    release_code(client, module);
    return error;
}

static uint32_t load_read(struct client *client, struct client_module *module,
                          struct rewrite *rewrite, const struct code_seat *seat,
                          uint64_t global_base, bool again, struct error *why)
{
    uint32_t error;
    if (rewrite)
        error = load_rewritten(client, module, rewrite, seat, global_base, again, why);
    else if (!(error = charge_kept(client, module, NULL, why)))
        error = load_code(client, module, seat, module->image.bytes, NULL, why);
    return error ? undo_load(client, module, seat, error) : 0;
}

/* A module that an earlier worker had, of a text that was read and compiled before. Returns whether
 * that is so; then *error is the load's. */
static bool load_known(struct client *client, struct client_module *module,
                       const struct code_seat *seat, uint64_t base, uint32_t *error,
                       struct error *why)
{
    struct known_code known;
    if (!known_image_code(seat->known, module->known, base, &known))
        return false;
    struct compiled *compiled =
        compiler_find(seat->compiler, &known.text, code_memory_room(module->code_memory));
    if (!compiled) {
        symbols_free(known.symbols);
        return false;
    }
    struct code_load load = {.call = {.make = make_load, .caller = *seat->caller},
                             .client = client,
                             .module = module,
                             .code = compiled_code(compiled),
                             .constant = known.constant,
                             .base = base,
                             .result = CUDA_OK};
    module->symbols = known.symbols;
    *error =
        is_place(client, base, known.global_bytes)
            ? charge_bytes(client, module, symbols_bytes(known.symbols) + 2 * known.tree_bytes, why)
            : error_set(why, MESSAGE(variables_place), (unsigned long long)base,
                        (unsigned long long)known.global_bytes);
    if (!*error)
        *error = pass_on(&load, seat, why);
    compiled_release(compiled);
    if (*error)
        undo_load(client, module, seat, *error);
    return true;
}

uint32_t client_module_load(struct client *client, struct client_module *module,
                            const struct code_seat *seat, uint64_t global_base, bool again,
                            uint32_t *functions, struct error *why)
{
    const struct cuda_driver *cuda = client->gpu->cuda;
    struct reading reading = {.client = client, .module = module, .seat = seat};
    struct rewrite *rewrite = NULL;
    uint32_t error = 0;
    bool known = again && load_known(client, module, seat, global_base, &error, why);
    if (!known)
        error = begin_reading(&reading, &rewrite, why);
    if (!known && !error)
        error = load_read(client, module, rewrite, seat, global_base, again, why);
    /* If the driver can't say the layout of parameters, the cubin has to: its bytes are kept. */
    bool wanted = !error && !known && !rewrite && !cuda->cuFuncGetParamInfo;
    if (!wanted)
        end_reading(module, rewrite);
    if (error)
        return error;
    if (!wanted)
        code_image_release(&module->image);
    unsigned count = 0;
    if (!cuda->cuModuleGetFunctionCount ||
        cuda->cuModuleGetFunctionCount(&count, module->handle) != CUDA_OK)
        count = module->symbols ? symbols_kernel_count(module->symbols) : 0;
    *functions = count;
    return 0;
}

static void forget_names(struct client *client, struct client_module *module)
{
    for (uint32_t i = 0; i < client->objects.function_count; i++)
        if (client->objects.functions[i].module == module)
            client->objects.functions[i] = (struct function){.module = NULL};
    for (size_t i = client->objects.range_count; i-- > 0;)
        if (client->objects.ranges[i].kind == RANGE_VARIABLE &&
            client->objects.ranges[i].module == module)
            client_memory_range_remove(client, &client->objects.ranges[i]);
}

static void forget_lost(struct client *client, const struct client_module *module)
{
    pthread_mutex_lock(&client->lock);
    client->objects.lost_modules--;
    client->objects.lost_reaching -= state_lost_reaches(module->unsaved, PROTO_UNSAVED_NOTHING);
    pthread_mutex_unlock(&client->lock);
}

void client_module_destroy(struct client *client, struct client_module *module)
{
    pthread_mutex_lock(&client->lock);
    forget_names(client, module);
    pthread_mutex_unlock(&client->lock);
    struct client_module **link = &client->control.modules;
    while (*link != module)
        link = &(*link)->next;
    *link = module->next;
    if (client_module_is_lost(module))
        forget_lost(client, module);
    client_module_unload(client, module);
    release_code(client, module);
    code_image_release(&module->image);
    known_image_release(module->images, module->known);
    free(module);
}

void client_module_destroy_all(struct client *client)
{
    while (client->control.modules)
        client_module_destroy(client, client->control.modules);
}

cuda_module client_module_handle(const struct client_module *module)
{
    return module->handle;
}

bool client_module_layout(const struct client_module *module, const char *name, uint32_t *layout,
                          uint32_t *count, uint64_t *end)
{
    if (module->symbols)
        return symbols_kernel(module->symbols, name, layout, count, end);
    return cubin_layout(module->image.bytes, module->image.count, name, layout, count, end) == 0;
}

/* ---- questions to the driver ---- */

/* Finds a module that is loaded and is not being unloaded. */
static uint32_t find_usable(struct client *client, uint32_t number, struct client_module **module,
                            struct error *why)
{
    *module = client_module_find(client, number);
    if (*module && client_module_is_lost(*module))
        return client_module_refuse_lost(*module, why);
    if (!*module || (*module)->busy || !(*module)->handle || (*module)->dying)
        return error_set(why, MESSAGE(module_unknown), number);
    return 0;
}

/* The name comes from a client, so it must hold no NUL and leave room for one. */
static uint32_t copy_name(char *to, size_t size, const char *name, size_t length, struct error *why)
{
    if (length == 0 || length >= size || memchr(name, 0, length))
        return error_set(why, MESSAGE(name_length), size - 1);
    memcpy(to, name, length);
    to[length] = 0;
    return 0;
}

uint32_t client_module_lookup(struct client *client, uint32_t number, const char *name,
                              size_t length, struct client_module_lookup *lookup, struct error *why)
{
    struct client_module *module;
    uint32_t error = find_usable(client, number, &module, why);
    if (!error)
        error = copy_name(lookup->name, sizeof lookup->name, name, length, why);
    lookup->module = module;
    lookup->function = (struct function){.module = module};
    return error;
}

/* ---- variables ---- */

/* A constant that the driver left out has no twin: it is not found then, as if there were none. */
static bool lacks_twin(const struct client_module_lookup *lookup)
{
    const struct client_module *module = lookup->module;
    struct client *client = module->client;
    struct twin twin;
    if (lookup->address < module->twins || lookup->address >= module->twins_end)
        return false;
    pthread_mutex_lock(&client->lock);
    size_t found = twins_find(client, lookup->address, lookup->count, &twin, 1);
    pthread_mutex_unlock(&client->lock);
    return found == 0;
}

bool client_module_knows_global(struct client_module_lookup *lookup)
{
    return lookup->module->symbols &&
           symbols_variable(lookup->module->symbols, lookup->name, &lookup->address,
                            &lookup->count) &&
           !lacks_twin(lookup);
}

uint32_t client_module_ask_global(const struct client *client, struct client_module_lookup *lookup,
                                  struct error *why)
{
    cuda_device_ptr there = 0;
    size_t bytes = 0;
    cuda_result result =
        client->gpu->cuda->cuModuleGetGlobal(&there, &bytes, lookup->module->handle, lookup->name);
    /* A constant of ours is no variable of the client's. */
    if (result == CUDA_ERR_NOT_FOUND ||
        (result == CUDA_OK && there == lookup->module->base_at && there))
        return error_set(why, MESSAGE(variable_not_found), lookup->module->number, lookup->name);
    if (result != CUDA_OK)
        return error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(variable_lookup),
                         lookup->name, cuda_driver_error_sentence(result));
    lookup->address = there;
    lookup->count = bytes;
    return 0;
}

uint32_t client_module_enter_global(struct client *client,
                                    const struct client_module_lookup *lookup, struct error *why)
{
    uint64_t address = lookup->address, count = lookup->count;
    pthread_mutex_lock(&client->lock);
    int added =
        client_memory_range_find(client, address, count) || count == 0
            ? 0
            : client_memory_range_add(client, address, count, RANGE_VARIABLE, lookup->module);
    pthread_mutex_unlock(&client->lock);
    if (added < 0)
        return error_set(why, error_from_errno(added), MESSAGE_TEXT(variable_unusable),
                         strerror(-added));
    return 0;
}
