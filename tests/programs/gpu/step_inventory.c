/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The machine: driver, device, libraries, kernel, limits of a process; and whether PTX compiles.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/step.h"

static void tell_line_of(const char *fact, const char *path, const char *start)
{
    char line[300];
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, start, strlen(start))) {
            line[strcspn(line, "\n")] = 0;
            probe_fact(fact, "%s", line);
            break;
        }
    if (file)
        fclose(file);
}

static void tell_machine(void)
{
    struct utsname name;
    if (uname(&name) == 0)
        probe_fact("kernel", "%s %s", name.release, name.machine);
    tell_line_of("cpu", "/proc/cpuinfo", "model name");
    tell_line_of("memory", "/proc/meminfo", "MemTotal");
    tell_line_of("huge-pages", "/proc/meminfo", "HugePages_Total");
    tell_line_of("kernel-driver", "/proc/driver/nvidia/version", "NVRM");
    tell_line_of("system", "/etc/os-release", "PRETTY_NAME");
    tell_line_of("hmm", "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "");
    probe_fact("processors", "%ld, uid %u", sysconf(_SC_NPROCESSORS_ONLN), getuid());
}

static void tell_limits(void)
{
    static const struct {
        const char *name;
        int which;
    } limits[] = {{"open-files", RLIMIT_NOFILE},
                  {"locked-bytes", RLIMIT_MEMLOCK},
                  {"address-space-bytes", RLIMIT_AS},
                  {"processes", RLIMIT_NPROC}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        char fact[64], soft[24] = "unlimited", hard[24] = "unlimited";
        if (getrlimit((__rlimit_resource_t)limits[i].which, &limit) < 0)
            continue;
        if (limit.rlim_cur != RLIM_INFINITY)
            snprintf(soft, sizeof soft, "%llu", (unsigned long long)limit.rlim_cur);
        if (limit.rlim_max != RLIM_INFINITY)
            snprintf(hard, sizeof hard, "%llu", (unsigned long long)limit.rlim_max);
        snprintf(fact, sizeof fact, "ulimit-%s", limits[i].name);
        probe_fact(fact, "%s, at most %s", soft, hard);
    }
}

/* Names in a folder that begin so, in one line. */
static void tell_names(const char *fact, const char *folder, const char *start)
{
    char names[800] = "";
    size_t used = 0;
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        if (!strncmp(entry->d_name, start, strlen(start)) &&
            used + strlen(entry->d_name) + 2 < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? " " : "",
                                     entry->d_name);
    if (listing)
        closedir(listing);
    probe_fact(fact, "%s", used ? names : "none");
}

/* The list of all may be too long for a line; these are the ones that something needs. */
static void tell_presence(const char *folder)
{
    static const char *const names[] = {"libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4",
                                        "libnvidia-ml.so.1", "libcudadebugger.so.1"};
    char found[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX + 40];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%s: %s", i ? ", " : "",
                                 names[i], access(path, R_OK) == 0 ? "there" : "not there");
    }
    probe_fact("libraries-needed", "%s", found);
}

static void tell_work_queues(void)
{
    cuda_dev_resource resource = {0};
    struct extra_workqueue queue;
    if (!cu.cuDeviceGetDevResource)
        return;
    cuda_result result = cu.cuDeviceGetDevResource(
        0, &resource, (cuda_resource_type)EXTRA_RESOURCE_WORKQUEUE_CONFIG);
    memcpy(&queue, resource.oversize, sizeof queue);
    if (result == CUDA_OK)
        probe_fact("work-queues", "concurrency %u, scope %d, CUDA_DEVICE_MAX_CONNECTIONS=%s",
                   queue.concurrency, queue.scope, getenv("CUDA_DEVICE_MAX_CONNECTIONS"));
    else
        probe_fact("work-queues", "no such resource: %s", probe_error(result));
}

static void tell_driver(void)
{
    char path[PATH_MAX], folder[PATH_MAX];
    int version = 0;
    CU(cu.cuDriverGetVersion(&version));
    probe_fact("cuda", "%d.%d", version / 1000, version % 1000 / 10);
    if (!realpath(probe_library, path))
        return;
    probe_fact("library", "%s", path);
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    tell_names("libraries-beside", folder, "libnvidia");
    tell_presence(folder);
    tell_names("device-nodes", "/dev", "nvidia");
}

static void tell_device(void)
{
    char name[256] = "", bus[32] = "";
    cuda_uuid uuid;
    size_t bytes = 0;
    int count = 0;
    CU(cu.cuDeviceGetCount(&count));
    CU(cu.cuDeviceGetName(name, sizeof name, 0));
    CU(cu.cuDeviceTotalMem(&bytes, 0));
    CU(cu.cuDeviceGetUuid(&uuid, 0));
    cu.cuDeviceGetPCIBusId(bus, sizeof bus, 0);
    probe_fact("device",
               "%s, %.1f GiB, compute capability %d.%d, %d multiprocessors, %s; %d in all", name,
               (double)bytes / (1 << 30), probe_attribute(CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR),
               probe_attribute(CUDA_ATTR_COMPUTE_CAPABILITY_MINOR),
               probe_attribute(CUDA_ATTR_MULTIPROCESSOR_COUNT), bus, count);
    probe_fact("mig", "%s", strstr(name, "MIG") ? "this is an instance" : "not in the name");
    tell_names("mig-capabilities", "/proc/driver/nvidia/capabilities/gpu0/mig", "gi");
}

static void tell_attributes(void)
{
#define X(name, value)                                                                             \
    if (probe_attribute(CUDA_ATTR_##name) != -1)                                                   \
        probe_measure("attribute_" #name, probe_attribute(CUDA_ATTR_##name), "-");
    CUDA_DEVICE_ATTRIBUTES(X)
#undef X
}

static void judge_attributes(void)
{
    static const struct {
        const char *assumption;
        cuda_device_attribute attribute;
        int want;
    } rows[] = {
        {"one-address-space", CUDA_ATTR_UNIFIED_ADDRESSING, 1},
        {"virtual-memory-management", CUDA_ATTR_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {"memory-by-descriptor", CUDA_ATTR_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {"host-registration", CUDA_ATTR_HOST_REGISTER_SUPPORTED, 1},
        {"registered-pointer-is-the-same", CUDA_ATTR_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
        {"64-bit-memory-operations", CUDA_ATTR_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
        {"no-pageable-access", CUDA_ATTR_PAGEABLE_MEMORY_ACCESS, 0},
        {"shared-compute-mode", CUDA_ATTR_COMPUTE_MODE, 0},
        {"not-under-mps", CUDA_ATTR_MPS_ENABLED, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int value = probe_attribute(rows[i].attribute);
        if (value < 0)
            probe_unknown(rows[i].assumption, "the driver does not know attribute %d",
                          (int)rows[i].attribute);
        else
            probe_judge(value == rows[i].want, rows[i].assumption, "attribute %d is %d",
                        (int)rows[i].attribute, value);
    }
    int engines = probe_attribute(CUDA_ATTR_ASYNC_ENGINE_COUNT);
    probe_judge(engines >= 2, "two-copy-engines", "%d copy engines", engines);
}

static void judge_green_contexts(void)
{
    cuda_dev_resource whole = {0};
    if (!cuda_driver_has_green_contexts(&cu)) {
        probe_false("green-contexts", "the driver lacks their calls");
        return;
    }
    cuda_result result = cu.cuDeviceGetDevResource(0, &whole, CUDA_RESOURCE_SM);
    if (result != CUDA_OK) {
        probe_false("green-contexts", "cuDeviceGetDevResource: %s", probe_error(result));
        return;
    }
    probe_held("green-contexts", "%u multiprocessors, smallest partition %u, multiples of %u",
               whole.sm.sm_count, whole.sm.min_partition_size, whole.sm.coscheduled_alignment);
}

void step_inventory(const char *argument)
{
    (void)argument;
    tell_machine();
    tell_limits();
    probe_open();
    tell_driver();
    tell_device();
    tell_work_queues();
    tell_attributes();
    judge_attributes();
    judge_green_contexts();
}

void step_jit(const char *argument)
{
    static const char *const versions[] = {"6.3", "7.0", "8.0", "8.3", "8.5", "8.8", "9.0", "9.1"};
    (void)argument;
    char newest[8] = "none", failed[160] = "";
    double first_ms = 0;
    probe_open();
    probe_context();
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        char text[200];
        cuda_module module;
        snprintf(text, sizeof text,
                 ".version %s\n.target sm_75\n.address_size 64\n.visible .entry one() { ret; }\n",
                 versions[i]);
        probe_call("cuModuleLoadDataEx");
        uint64_t began = probe_ns();
        cuda_result result = cu.cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
        if (i == 0)
            first_ms = (double)(probe_ns() - began) / 1e6;
        if (result == CUDA_OK)
            snprintf(newest, sizeof newest, "%s", versions[i]);
        else if (!*failed)
            snprintf(failed, sizeof failed, "; PTX %s: %s", versions[i], probe_error(result));
    }
    probe_measure("first_load_ms", first_ms, "ms");
    probe_judge(strcmp(newest, "none") != 0, "ptx-compiles",
                "the newest PTX version that it takes is %s (of those tried), the first load took "
                "%.1f ms%s",
                newest, first_ms, failed);
}
