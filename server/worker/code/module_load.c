/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/module_load.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/cuda/ptx.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/code/client_module_private.h"
#include "server/worker/code/compiler.h"
#include "server/worker/code/device_launch.h"
#include "server/worker/code/kernel.h"
#include "server/worker/code/cache/known_image.h"
#include "server/worker/code/module_constants.h"
#include "server/worker/code/ptx_link.h"
#include "server/worker/image/constants.h"
#include "server/worker/image/cubin.h"
#include "server/worker/image/cubin_state.h"
#include "server/worker/image/rewrite.h"
#include "server/worker/image/symbols.h"

/* Bytes of tree for each byte of an ordinary PTX text. */
#define TREE_ORDINARY 16

/* The reading of an image, and when it has to end. */
struct reading {
    const struct module_load_target *target;
    uint64_t deadline; /* ns of clock_now */
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
    const struct module_load_target *target = reading->target;
    if (atomic_load_explicit(target->seat->gone, memory_order_relaxed))
        error_set(why, MESSAGE(module_given_up));
    else if (clock_now() >= reading->deadline)
        compiler_refuse_time(target->seat->compiler, why);
    else
        return 0;
    return refuse_text(target->client, target->module, why);
}

/* Unpacks the image, within the memory and the time that one load may have. The caller ends with
 * end_reading. */
static uint32_t begin_image(struct reading *reading, struct error *why)
{
    struct client_module *module = reading->target->module;
    const struct proto_device_info *info = &reading->target->client->gpu->info;
    reading->deadline = compiler_deadline(reading->target->seat->compiler);
    return code_image_unpack(&module->image, info->compute_major * 10 + info->compute_minor,
                             module->code_memory->load, why);
}

/* If it is PTX, reads its text. *reading must live as long as *rewrite. */
static uint32_t begin_text(struct reading *reading, struct rewrite **rewrite, struct error *why)
{
    const struct client_module *module = reading->target->module;
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
                       struct code_name *name, struct proto_worker_module_needs *needs)
{
    module->images = seat->known;
    if (module->image.kind == CODE_IMAGE_PTX) {
        *name = known_image_name(seat->known, module->image.bytes, module->image.count);
        module->known = known_image_find(seat->known, name, needs);
    }
    if (module->known)
        code_image_pack(&module->image);
    return module->known != NULL;
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

uint32_t module_load_inspect(const struct module_load_target *target, int fd, uint64_t count,
                             struct proto_worker_module_needs *needs, struct error *why)
{
    const struct client *client = target->client;
    struct client_module *module = target->module;
    const struct code_seat *seat = target->seat;
    struct reading reading = {.target = target};
    struct rewrite *rewrite;
    struct code_name name = {0};
    *needs = (struct proto_worker_module_needs){0};
    uint32_t error = code_image_open(&module->image, fd, count, why);
    if (!error)
        error = begin_image(&reading, why);
    if (error || find_known(seat, module, &name, needs))
        return error;
    error = begin_text(&reading, &rewrite, why);
    if (!error)
        error = device_launch_check(&module->image, client->gpu, why);
    if (!error && rewrite) {
        needs->unsaved = rewrite_unsaved(rewrite);
        needs->global_bytes = rewrite_global_bytes(rewrite);
        needs->resident_bytes = rewrite_resident_bytes(rewrite);
        say_what_stays(client, module, rewrite);
        module->known = known_image_add(seat->known, &name, rewrite, needs);
    } else if (!error) {
        needs->unsaved = cubin_state_unsaved(module->image.bytes, module->image.count);
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
    uint64_t begun = clock_now();
    uint32_t error = compiler_make(
        seat->compiler, (struct compiler_caller){seat->caller->owner, seat->caller->client}, text,
        code_memory->load, code_memory_room(code_memory), &result, why);
    if (error)
        return refuse_text(load->client, load->module, why);
    if (result.busy) {
        *seat->awaited = result.text;
        return MODULE_LOAD_LATER;
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
                 strlen(text), (unsigned long long)((clock_now() - begun) / UNITS_MS));
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

static uint32_t load_code(const struct module_load_target *target, const void *code,
                          const struct rewrite *rewrite, struct error *why)
{
    const struct code_seat *seat = target->seat;
    struct made_code made = {.compiled = NULL, .link = {.handle = NULL}};
    struct code_load load = {.call = {.make = make_load, .caller = *seat->caller},
                             .client = target->client,
                             .module = target->module,
                             .code = code,
                             .constant = rewrite ? rewrite_constant(rewrite) : NULL,
                             .base = rewrite ? rewrite_base(rewrite) : 0,
                             .result = CUDA_OK};
    uint32_t error = rewrite ? compile_before(seat, code, &made, &load, why) : 0;
    if (!error)
        error = pass_on(&load, seat, why);
    if (!error && made.compiled)
        known_image_loaded(seat->known, target->module->known, &made.text, rewrite,
                           target->module->symbols);
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
    client_lock(client);
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

static uint32_t load_rewritten(const struct module_load_target *target, struct rewrite *rewrite,
                               struct error *why)
{
    struct client *client = target->client;
    struct client_module *module = target->module;
    const struct code_seat *seat = target->seat;
    const uint64_t base = target->global_base;
    const bool again = target->again;
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
        error = load_code(target, text, rewrite, why);
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

/* Returns error. */
static uint32_t undo_load(const struct module_load_target *target, uint32_t error)
{
    struct code_load gone = {.call = {.make = make_unload, .caller = *target->seat->caller},
                             .client = target->client,
                             .module = target->module};
    /* Of a client that leaves meanwhile it goes with the rest. */
    if (target->module->handle)
        quiet_calls_make(target->seat->calls, &gone.call);
    client_module_release_code(target->client, target->module);
    return error;
}

static uint32_t load_read(const struct module_load_target *target, struct rewrite *rewrite,
                          struct error *why)
{
    uint32_t error;
    if (rewrite)
        error = load_rewritten(target, rewrite, why);
    else if (!(error = charge_kept(target->client, target->module, NULL, why)))
        error = load_code(target, target->module->image.bytes, NULL, why);
    return error ? undo_load(target, error) : 0;
}

/* A module that an earlier worker had, of a text that was read and compiled before. Returns whether
 * that is so; then *error is the load's. */
static bool load_known(const struct module_load_target *target, uint32_t *error, struct error *why)
{
    struct client *client = target->client;
    struct client_module *module = target->module;
    const struct code_seat *seat = target->seat;
    const uint64_t base = target->global_base;
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
        undo_load(target, *error);
    return true;
}

uint32_t module_load_make(const struct module_load_target *target, uint32_t *functions,
                          struct error *why)
{
    struct client_module *module = target->module;
    const struct cuda_driver *cuda = target->client->gpu->cuda;
    struct reading reading = {.target = target};
    struct rewrite *rewrite = NULL;
    uint32_t error = 0;
    bool known = target->again && load_known(target, &error, why);
    if (!known)
        error = begin_reading(&reading, &rewrite, why);
    if (!known && !error)
        error = load_read(target, rewrite, why);
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
