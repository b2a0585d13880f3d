/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/link/device_runtime.h"

#include <stdlib.h>
#include <string.h>

#include "common/cuda/fatbin.h"

/* A variable that the device runtime of CUDA 13.0 defines, and that no program's own code names. */
#define VARIABLE "__CNPRT_VERSION_NUMBER__"
/* The middle of names in its object; nvcc makes them of the name of NVIDIA's source. */
#define SOURCE "_cuda_device_runtime_cu_"

static bool has_word(const void *data, size_t bytes, const char *word)
{
    return memmem(data, bytes, word, strlen(word)) != NULL;
}

static bool has_variable(const struct fatbin_entry *entry)
{
    char *payload = NULL;
    size_t bytes;
    bool found = fatbin_payload(entry, &payload, &bytes) == 0 && has_word(payload, bytes, VARIABLE);
    free(payload);
    return found;
}

/* All entries are of one source, so the first is as good as any. */
bool device_runtime_is_fatbin(const void *data, size_t bytes)
{
    struct fatbin fatbin;
    struct fatbin_entry entry;
    return fatbin_open(&fatbin, data, bytes) == 0 && fatbin_next(&fatbin, &entry) == 1 &&
           (entry.kind == FATBIN_PTX || entry.kind == FATBIN_CUBIN) && has_variable(&entry);
}

bool device_runtime_is_library(const void *data, size_t bytes)
{
    static const char archive[] = "!<arch>\n", elf[] = "\177ELF";
    bool known = bytes > sizeof archive && (memcmp(data, archive, sizeof archive - 1) == 0 ||
                                            memcmp(data, elf, sizeof elf - 1) == 0);
    return known && has_word(data, bytes, SOURCE);
}

/*
 * The driver gives a grid whose blocks may wait for each other a place in memory, whose address is
 * in %envreg1 and %envreg2: the second word counts arrivals, and its highest bit changes when all
 * blocks have come. The toolkit's cooperative_groups.h uses it in the same way, so a kernel may use
 * both. The results are cudaSuccess, and cudaErrorInvalidValue outside of such a grid.
 */
#define SYNCHRONIZE(name)                                                                          \
    ".weak .func (.param .b32 result) " name "(.param .b64 handle, .param .b32 flags)\n"           \
    "{\n"                                                                                          \
    "\t.reg .pred %p<5>;\n\t.reg .b32 %r<13>;\n\t.reg .b64 %d<3>;\n"                               \
    "\tld.param.u64 %d1, [handle];\n"                                                              \
    "\tmov.u32 %r1, 1;\n"                                                                          \
    "\tsetp.eq.u64 %p1, %d1, 0;\n"                                                                 \
    "\t@%p1 bra $end;\n"                                                                           \
    "\tbar.sync 0;\n"                                                                              \
    "\tmov.u32 %r2, %tid.x;\n\tmov.u32 %r3, %tid.y;\n\tmov.u32 %r4, %tid.z;\n"                     \
    "\tor.b32 %r2, %r2, %r3;\n\tor.b32 %r2, %r2, %r4;\n"                                           \
    "\tsetp.ne.u32 %p2, %r2, 0;\n"                                                                 \
    "\t@%p2 bra $all;\n"                                                                           \
    "\tmov.u32 %r5, %nctaid.x;\n\tmov.u32 %r6, %nctaid.y;\n\tmov.u32 %r7, %nctaid.z;\n"            \
    "\tmul.lo.u32 %r5, %r5, %r6;\n\tmul.lo.u32 %r5, %r5, %r7;\n"                                   \
    "\tsub.u32 %r5, 0x80000001, %r5;\n"                                                            \
    "\tmov.u32 %r6, %ctaid.x;\n\tmov.u32 %r7, %ctaid.y;\n\tmov.u32 %r8, %ctaid.z;\n"               \
    "\tor.b32 %r6, %r6, %r7;\n\tor.b32 %r6, %r6, %r8;\n"                                           \
    "\tsetp.eq.u32 %p3, %r6, 0;\n"                                                                 \
    "\tselp.u32 %r9, %r5, 1, %p3;\n"                                                               \
    "\tmembar.gl;\n"                                                                               \
    "\tatom.global.add.u32 %r10, [%d1+4], %r9;\n"                                                  \
    "$wait:\n"                                                                                     \
    "\tld.acquire.gpu.global.u32 %r11, [%d1+4];\n"                                                 \
    "\txor.b32 %r12, %r10, %r11;\n"                                                                \
    "\tsetp.ge.s32 %p4, %r12, 0;\n"                                                                \
    "\t@%p4 bra $wait;\n"                                                                          \
    "\tmembar.gl;\n"                                                                               \
    "$all:\n"                                                                                      \
    "\tbar.sync 0;\n"                                                                              \
    "\tmov.u32 %r1, 0;\n"                                                                          \
    "$end:\n"                                                                                      \
    "\tst.param.b32 [result], %r1;\n"                                                              \
    "\tret;\n"                                                                                     \
    "}\n"

const char device_runtime_text[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n"
    ".weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)\n"
    "{\n"
    "\t.reg .pred %p<2>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %d<2>;\n"
    "\tld.param.u32 %r1, [scope];\n"
    "\tmov.u32 %r2, %envreg2;\n\tmov.u32 %r3, %envreg1;\n"
    "\tmov.b64 %d1, {%r2, %r3};\n"
    "\tsetp.eq.u32 %p1, %r1, 1;\n" /* the scope of a grid */
    "\tselp.b64 %d1, %d1, 0, %p1;\n"
    "\tst.param.b64 [handle], %d1;\n"
    "\tret;\n"
    "}\n" SYNCHRONIZE("cudaCGSynchronize") SYNCHRONIZE("cudaCGSynchronizeGrid");
