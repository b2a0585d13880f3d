/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Links. */
#include <string.h>
#include <unistd.h>

#include "tests/programs/cudart/image.h"
#include "tests/programs/dropin/dropin.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* Writes 3 * base + 100 * step(thread), where base and step are the other input's; both inputs have
 * a function of their own called scale. */
static const char user_text[] = HEAD
    ".extern .global .align 4 .u32 base;\n"
    ".extern .func (.param .b32 v) step(.param .b32 a);\n"
    ".func (.param .b32 v) scale(.param .b32 a)\n{\n\t.reg .u32 %r<3>;\n"
    "\tld.param.u32 %r1, [a];\n\tmul.lo.u32 %r2, %r1, 3;\n\tst.param.b32 [v], %r2;\n\tret;\n}\n"
    ".visible .entry fill(.param .u64 words)\n{\n\t.reg .u32 %r<9>;\n\t.reg .u64 %d<5>;\n"
    "\tld.param.u64 %d1, [words];\n\tmov.u32 %r1, %tid.x;\n\tmul.wide.u32 %d2, %r1, 4;\n"
    "\tadd.u64 %d3, %d1, %d2;\n\tld.global.u32 %r2, [base];\n"
    "\t{\n\t.param .b32 a;\n\t.param .b32 v;\n\tst.param.b32 [a], %r2;\n"
    "\tcall.uni (v), scale, (a);\n\tld.param.b32 %r3, [v];\n\t}\n"
    "\t{\n\t.param .b32 a;\n\t.param .b32 v;\n\tst.param.b32 [a], %r1;\n"
    "\tcall.uni (v), step, (a);\n\tld.param.b32 %r4, [v];\n\t}\n"
    "\tadd.u32 %r5, %r3, %r4;\n\tst.global.u32 [%d3], %r5;\n\tret;\n}\n";
static const char library_text[] = HEAD
    ".visible .global .align 4 .u32 base = 7;\n"
    ".func (.param .b32 v) scale(.param .b32 a)\n{\n\t.reg .u32 %r<3>;\n"
    "\tld.param.u32 %r1, [a];\n\tmul.lo.u32 %r2, %r1, 100;\n\tst.param.b32 [v], %r2;\n\tret;\n}\n"
    ".visible .func (.param .b32 v) step(.param .b32 a)\n{\n\t.reg .u32 %r<3>;\n"
    "\tld.param.u32 %r1, [a];\n"
    "\t{\n\t.param .b32 b;\n\t.param .b32 w;\n\tst.param.b32 [b], %r1;\n"
    "\tcall.uni (w), scale, (b);\n\tld.param.b32 %r2, [w];\n\t}\n"
    "\tst.param.b32 [v], %r2;\n\tret;\n}\n";

struct log {
    char text[400];
    cuda_jit_option options[2];
    void *values[2];
};

static cuda_link begin_link(struct log *log)
{
    cuda_link link;
    *log =
        (struct log){.options = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
                     .values = {log->text, (void *)(uintptr_t)sizeof log->text}};
    OK(cuLinkCreate_v2(2, log->options, log->values, &link));
    return link;
}

static cuda_result add(cuda_link link, cuda_jit_input type, const void *data, size_t bytes,
                       const char *name)
{
    return cuLinkAddData_v2(link, type, (void *)(uintptr_t)data, bytes, name, 0, NULL, NULL);
}

static cuda_result add_text(cuda_link link, const char *text, const char *name)
{
    return add(link, CUDA_JIT_INPUT_PTX, text, strlen(text) + 1, name);
}

/* Completes the link, and ends it: the words are what both inputs make of them. */
static void demand_filled(cuda_link link, const struct work *work)
{
    cuda_module module;
    cuda_function fill;
    void *image, *again;
    size_t size, same;
    uint32_t found[WORDS];
    void *parameters[] = {(void *)&work->words};
    OK(cuLinkComplete(link, &image, &size));
    OK(cuLinkComplete(link, &again, &same));
    CHECK(image == again && size == same && size > 0);
    EXPECT(CUDA_ERR_INVALID_VALUE, add_text(link, HEAD, "late"));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(link));
    EXPECT(CUDA_ERR_INVALID_HANDLE, cuLinkDestroy(link));
    EXPECT(CUDA_ERR_INVALID_HANDLE, add_text(link, HEAD, "stale"));
    OK(cuModuleGetFunction(&fill, module, "fill"));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
    OK(cuLaunchKernel(fill, 1, 1, 1, WORDS, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(found, work->words, BYTES));
    for (uint32_t i = 0; i < WORDS; i++)
        CHECK(found[i] == 3 * 7 + 100 * i);
    OK(cuModuleUnload(module));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
}

/* One input is linked; its errors come when it is added. */
static void check_one(const struct work *work)
{
    cuda_link link;
    cuda_module module;
    cuda_function function;
    void *image;
    size_t size, count;
    char log[400] = "", wrong[] = ".version 7.0\n.target sm_70\nnonsense\n";
    cuda_jit_option options[] = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    OK(cuLinkCreate_v2(2, options, values, &link));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLinkComplete(link, &image, &size));
    EXPECT(CUDA_ERR_INVALID_PTX,
           cuLinkAddData_v2(link, CUDA_JIT_INPUT_PTX, wrong, sizeof wrong, "wrong", 0, NULL, NULL));
    CHECK(*log);
    EXPECT(CUDA_ERR_FILE_NOT_FOUND,
           cuLinkAddFile_v2(link, CUDA_JIT_INPUT_PTX, "/nonexistent/image", 0, NULL, NULL));
    OK(cuLinkAddData_v2(link, CUDA_JIT_INPUT_PTX, (void *)dropin_kernels,
                        strlen(dropin_kernels) + 1, "kernels", 0, NULL, NULL));
    EXPECT(CUDA_ERR_INVALID_SOURCE,
           cuLinkAddData_v2(link, CUDA_JIT_INPUT_PTX, (void *)dropin_kernels,
                            strlen(dropin_kernels) + 1, "more", 0, NULL, NULL));
    CHECK(strstr(log, "'count'") || strstr(log, "'sum'"));
    CHECK(strstr(log, "'kernels'") && strstr(log, "'more'"));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&function, module, "count"));
    OK(cuFuncGetParamCount(function, &count));
    CHECK(count == 2);
    OK(cuFuncSetCacheConfig(function, 1));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuFuncSetCacheConfig(function, 9));
    uint32_t times = 1;
    void *parameters[] = {(void *)&work->words, &times};
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
    OK(cuLaunchKernel(function, 1, 1, 1, WORDS, 1, 1, 0, NULL, parameters, NULL));
    demand(work, 8);
    OK(cuModuleUnload(module));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
}

static void check_texts(const struct work *work)
{
    struct log log;
    cuda_link link = begin_link(&log);
    OK(add_text(link, user_text, "user"));
    OK(add_text(link, library_text, "library"));
    demand_filled(link, work);
    link = begin_link(&log);
    OK(add_text(link, library_text, "library"));
    OK(add_text(link, user_text, "user"));
    demand_filled(link, work);
}

/* A text in a file, and one in a fatbin, with nvcc's struct around it and without. */
static void check_containers(const struct work *work)
{
    static struct image fatbin;
    struct log log;
    char path[] = "/tmp/gpushare-link-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && write(file, library_text, sizeof library_text - 1) > 0);
    CHECK(close(file) == 0);
    cuda_link link = begin_link(&log);
    OK(add_text(link, user_text, "user"));
    OK(cuLinkAddFile_v2(link, CUDA_JIT_INPUT_PTX, path, 0, NULL, NULL));
    CHECK(unlink(path) == 0);
    demand_filled(link, work);
    image_make(&fatbin, library_text, 70);
    link = begin_link(&log);
    OK(add_text(link, user_text, "user"));
    OK(add(link, CUDA_JIT_INPUT_FATBINARY, &fatbin.fatbin, sizeof fatbin.fatbin, "fatbin"));
    demand_filled(link, work);
    link = begin_link(&log);
    OK(add(link, CUDA_JIT_INPUT_FATBINARY, &fatbin.wrapper, sizeof fatbin.wrapper, "wrapper"));
    OK(add_text(link, user_text, "user"));
    demand_filled(link, work);
    image_make(&fatbin, library_text, 999);
    link = begin_link(&log);
    OK(add_text(link, user_text, "user"));
    EXPECT(CUDA_ERR_NO_BINARY_FOR_GPU,
           add(link, CUDA_JIT_INPUT_FATBINARY, &fatbin.fatbin, sizeof fatbin.fatbin, "fatbin"));
    CHECK(strstr(log.text, "'fatbin'"));
    EXPECT(CUDA_ERR_INVALID_IMAGE,
           add(link, CUDA_JIT_INPUT_FATBINARY, &fatbin.fatbin, 40, "short"));
    OK(cuLinkDestroy(link));
}

/* A link's image is an input of the next. */
static void check_made(const struct work *work)
{
    struct log log;
    void *image;
    size_t size;
    cuda_link first = begin_link(&log), link;
    OK(add_text(first, library_text, "library"));
    OK(add_text(first, HEAD ".visible .func nothing()\n{\n\tret;\n}\n", "nothing"));
    OK(cuLinkComplete(first, &image, &size));
    struct log other;
    link = begin_link(&other);
    OK(add_text(link, user_text, "user"));
    OK(add(link, CUDA_JIT_INPUT_CUBIN, image, size, "made"));
    OK(cuLinkDestroy(first));
    demand_filled(link, work);
}

/* Four blocks meet twice: each writes a word, and then reads another one's. Handle 0, outside of
 * such a grid, has the calls return 1. */
#define MEET(name, to, from, with)                                                                 \
    "\tcall.uni (v), " name ", (h, f);\n\tld.param.b32 %r3, [v];\n\t}\n"                           \
    "\tadd.u32 %r4, %r1, " with ";\n\tand.b32 %r4, %r4, 3;\n\tmul.wide.u32 %d4, %r4, 4;\n"         \
    "\tadd.u64 %d4, %d1, %d4;\n\tld.global.u32 %r5, [%d4+" from "];\n"                             \
    "\tmad.lo.u32 %r5, %r3, 100, %r5;\n\t@%p1 st.global.u32 [%d3+" to "], %r5;\n"
#define CALL_WITH_HANDLE                                                                           \
    "\t{\n\t.param .b64 h;\n\t.param .b32 f;\n\t.param .b32 v;\n\tst.param.b64 [h], %d2;\n"        \
    "\tst.param.b32 [f], 0;\n"
static const char meeting_text[] =
    HEAD ".extern .func (.param .b64 h) cudaCGGetIntrinsicHandle(.param .b32 s);\n"
         ".extern .func (.param .b32 v) cudaCGSynchronize(.param .b64 h, .param .b32 f);\n"
         ".extern .func (.param .b32 v) cudaCGSynchronizeGrid(.param .b64 h, .param .b32 f);\n"
         ".visible .entry meet(.param .u64 words)\n{\n\t.reg .pred %p<2>;\n\t.reg .u32 %r<6>;\n"
         "\t.reg .u64 %d<5>;\n\tld.param.u64 %d1, [words];\n\tmov.u32 %r1, %ctaid.x;\n"
         "\tmov.u32 %r2, %tid.x;\n\tsetp.eq.u32 %p1, %r2, 0;\n\tmul.wide.u32 %d3, %r1, 4;\n"
         "\tadd.u64 %d3, %d1, %d3;\n\tadd.u32 %r2, %r1, 1;\n\t@%p1 st.global.u32 [%d3], %r2;\n"
         "\t{\n\t.param .b32 s;\n\t.param .b64 h;\n\tst.param.b32 [s], 1;\n"
         "\tcall.uni (h), cudaCGGetIntrinsicHandle, (s);\n\tld.param.b64 %d2, "
         "[h];\n\t}\n" CALL_WITH_HANDLE MEET("cudaCGSynchronize", "64", "0", "1")
             CALL_WITH_HANDLE MEET("cudaCGSynchronizeGrid", "128", "64", "2") "\tret;\n}\n";

/* By a name of its object; libcudadevrt.a of CUDA 13.0 begins so. */
static const char runtime_library[] =
    "!<arch>\n/               0           0     0     0       83        `\n\0\0\0\1\0\0\0\224"
    "__fatbinwrap_f4510a67_22_cuda_device_runtime_cu_3ecce0c0_2317245\0";

static void check_meeting(const struct work *work)
{
    struct log log;
    cuda_module module;
    cuda_function meet;
    uint32_t found[WORDS];
    void *image, *parameters[] = {(void *)&work->words};
    size_t size;
    cuda_link link = begin_link(&log);
    OK(add(link, CUDA_JIT_INPUT_LIBRARY, runtime_library, sizeof runtime_library, "runtime"));
    OK(add_text(link, meeting_text, "meeting"));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&meet, module, "meet"));
    for (int times = 0; times < 3; times++) {
        OK(cuMemsetD32_v2(work->words, 7, WORDS));
        OK(cuLaunchCooperativeKernel(meet, 4, 1, 1, 64, 1, 1, 0, NULL, parameters));
        OK(cuMemcpyDtoH_v2(found, work->words, BYTES));
        for (uint32_t i = 0; i < 4; i++)
            CHECK(found[i] == i + 1 && found[16 + i] == (i + 1) % 4 + 1 &&
                  found[32 + i] == (i + 3) % 4 + 1);
    }
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
    OK(cuLaunchKernel(meet, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(found, work->words, BYTES));
    CHECK(found[16] == 107 && found[32] == 107);
    OK(cuModuleUnload(module));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
    /* The library is none of the inputs that a link needs, and brings no other function. */
    link = begin_link(&log);
    OK(add(link, CUDA_JIT_INPUT_LIBRARY, runtime_library, sizeof runtime_library, "runtime"));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLinkComplete(link, &image, &size));
    OK(add_text(link, user_text, "user"));
    EXPECT(CUDA_ERR_INVALID_SOURCE, cuLinkComplete(link, &image, &size));
    CHECK(strstr(log.text, "in 'user': if it is of NVIDIA's device runtime ('runtime')"));
    OK(cuLinkDestroy(link));
}

static void check_refusals(void)
{
    struct log log;
    void *image;
    size_t size;
    cuda_link link = begin_link(&log);
    OK(add_text(link, user_text, "user"));
    EXPECT(CUDA_ERR_INVALID_SOURCE, cuLinkComplete(link, &image, &size));
    CHECK(strstr(log.text, "undefined reference to 'base' in 'user'") ||
          strstr(log.text, "undefined reference to 'step' in 'user'"));
    OK(cuLinkDestroy(link));
    /* Each call may use the whole buffer. */
    link = begin_link(&log);
    OK(add_text(link, library_text, "library"));
    EXPECT(CUDA_ERR_INVALID_SOURCE, add_text(link, library_text, "twice"));
    CHECK(strstr(log.text, "multiple definition of") && strstr(log.text, "'library'") &&
          strstr(log.text, "'twice'"));
    static const cuda_jit_input others[] = {CUDA_JIT_INPUT_OBJECT, CUDA_JIT_INPUT_LIBRARY,
                                            CUDA_JIT_INPUT_NVVM};
    for (int i = 0; i < 3; i++) {
        EXPECT(CUDA_ERR_NOT_SUPPORTED, add(link, others[i], "x", 1, "other"));
        CHECK(strstr(log.text, "'other'") && strstr(log.text, "nvcc -rdc=true -ptx"));
        CHECK(!strstr(log.text, "LTO-IR") == (others[i] != CUDA_JIT_INPUT_NVVM));
    }
    EXPECT(CUDA_ERR_INVALID_VALUE, add(link, (cuda_jit_input)77, "x", 1, "unknown"));
    char cubin[400] = "\177ELF";
    EXPECT(CUDA_ERR_NOT_SUPPORTED, add(link, CUDA_JIT_INPUT_CUBIN, cubin, sizeof cubin, "cubin"));
    CHECK(strstr(log.text, "'cubin'"));
    EXPECT(CUDA_ERR_INVALID_SOURCE,
           add_text(link,
                    HEAD ".extern .func (.param .b64 v) step(.param .b32 a);\n"
                         ".visible .func u()\n{\n\t.param .b32 a;\n\t.param .b64 v;\n"
                         "\tcall (v), step, (a);\n\tret;\n}\n",
                    NULL));
    CHECK(strstr(log.text, "'step' in 'input 2'"));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuLinkDestroy(link));
}

void check_link(const struct work *work)
{
    check_one(work);
    check_texts(work);
    check_containers(work);
    check_made(work);
    check_meeting(work);
    check_refusals();
}

/* The image, which is the link's. */
static void *link_files(cuda_link *link, int count, char **paths)
{
    struct log log;
    void *image;
    size_t size;
    *link = begin_link(&log);
    cuda_result result = CUDA_OK;
    for (int i = 0; i < count && result == CUDA_OK; i++)
        result = cuLinkAddFile_v2(*link, CUDA_JIT_INPUT_PTX, paths[i], 0, NULL, NULL);
    if (result == CUDA_OK)
        result = cuLinkComplete(*link, &image, &size);
    if (result == CUDA_OK)
        return image;
    fprintf(stderr, "refused: %s\n", log.text);
    exit(3);
}

void print_linked(int count, char **paths)
{
    struct work work;
    cuda_link link;
    begin(&work);
    printf("%s", (const char *)link_files(&link, count, paths));
    OK(cuLinkDestroy(link));
}

void run_linked(int count, char **paths)
{
    struct work work;
    cuda_link link;
    cuda_module module;
    cuda_function function;
    uint32_t found[WORDS];
    void *parameters[] = {&work.words};
    begin(&work);
    OK(cuModuleLoadData(&module, link_files(&link, count, paths)));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&function, module, "k"));
    OK(cuLaunchKernel(function, 1, 1, 1, WORDS, 1, 1, BYTES, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(found, work.words, BYTES));
    for (int i = 0; i < WORDS; i++)
        printf("%u\n", found[i]);
}
