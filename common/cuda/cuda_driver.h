/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cuda_driver: the CUDA driver API as gpushare declares it, and how to open a library that
 * implements it: NVIDIA's libcuda.so.1, or the software GPU's.
 *
 * These are our own declarations of CUDA 13.0's ABI, under names of our own. So nothing here needs
 * the toolkit, and a test may include cuda.h beside this header and compare every size and value.
 * Members of struct cuda_driver are called as CUDA's functions are.
 */
#ifndef GPUSHARE_COMMON_CUDA_CUDA_DRIVER_H
#define GPUSHARE_COMMON_CUDA_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* The CUDA version whose ABI is declared here, as cuDriverGetVersion counts. */
enum { CUDA_API_VERSION = 13000 };

/* ---- results ---------------------------------------------------------------- X(NAME, value,
 * sticky, sentence): CUDA_ERR_NAME here is CUDA_ERROR_NAME in cuda.h. sticky: the context is
 * lost, and every later call of the process returns the same. */

/* X(NAME, value, sticky, sentence): CUDA_ERR_NAME here is CUDA_ERROR_NAME in cuda.h. sticky: the
 * context is lost, and every later call of the process returns the same. */
#define CUDA_RESULTS(X)                                                                            \
    X(INVALID_VALUE, 1, 0, "an argument is outside the range the call accepts")                    \
    X(OUT_OF_MEMORY, 2, 0, "not enough memory is left for the request")                            \
    X(NOT_INITIALIZED, 3, 0, "cuInit has not been called in this process")                         \
    X(DEINITIALIZED, 4, 0, "the driver is shutting down")                                          \
    X(PROFILER_DISABLED, 5, 0, "the profiler is not enabled for this run")                         \
    X(STUB_LIBRARY, 34, 0, "the library found is the toolkit's stub, not a driver")                \
    X(CALL_REQUIRES_NEWER_DRIVER, 36, 0, "the call needs a newer driver")                          \
    X(DEVICE_UNAVAILABLE, 46, 0, "the device is busy or held exclusively")                         \
    X(NO_DEVICE, 100, 0, "no CUDA device was found")                                               \
    X(INVALID_DEVICE, 101, 0, "invalid device ordinal")                                            \
    X(DEVICE_NOT_LICENSED, 102, 0, "the device has no licence for compute")                        \
    X(INVALID_IMAGE, 200, 0, "the module image is not one that can be loaded")                     \
    X(INVALID_CONTEXT, 201, 0, "no context is current, or the context is not valid")               \
    X(MAP_FAILED, 205, 0, "mapping failed")                                                        \
    X(UNMAP_FAILED, 206, 0, "unmapping failed")                                                    \
    X(ALREADY_MAPPED, 208, 0, "the resource is mapped already")                                    \
    X(NO_BINARY_FOR_GPU, 209, 0, "the image holds no code that this device can run")               \
    X(NOT_MAPPED, 211, 0, "the resource is not mapped")                                            \
    X(ECC_UNCORRECTABLE, 214, 1, "an uncorrectable memory error was detected")                     \
    X(UNSUPPORTED_LIMIT, 215, 0, "the device does not have that limit")                            \
    X(CONTEXT_ALREADY_IN_USE, 216, 0, "the context is current to another thread")                  \
    X(PEER_ACCESS_UNSUPPORTED, 217, 0, "the devices cannot reach each other's memory")             \
    X(INVALID_PTX, 218, 0, "the PTX text could not be compiled")                                   \
    X(NVLINK_UNCORRECTABLE, 220, 1, "an uncorrectable NVLink error was detected")                  \
    X(JIT_COMPILER_NOT_FOUND, 221, 0, "the PTX compiler library was not found")                    \
    X(UNSUPPORTED_PTX_VERSION, 222, 0, "the PTX version is newer than the driver knows")           \
    X(JIT_COMPILATION_DISABLED, 223, 0, "compiling PTX is switched off")                           \
    X(UNSUPPORTED_EXEC_AFFINITY, 224, 0, "the device does not support that execution affinity")    \
    X(CONTAINED, 226, 1, "a memory error was contained to this process")                           \
    X(INVALID_SOURCE, 300, 0, "the kernel source is not valid")                                    \
    X(FILE_NOT_FOUND, 301, 0, "the file was not found")                                            \
    X(SHARED_OBJECT_SYMBOL_NOT_FOUND, 302, 0, "a shared library lacks a symbol")                   \
    X(SHARED_OBJECT_INIT_FAILED, 303, 0, "a shared library could not be initialised")              \
    X(OPERATING_SYSTEM, 304, 0, "an operating system call failed")                                 \
    X(INVALID_HANDLE, 400, 0, "the handle is not valid")                                           \
    X(ILLEGAL_STATE, 401, 0, "the object is not in a state that allows the call")                  \
    X(NOT_FOUND, 500, 0, "the name was not found")                                                 \
    X(NOT_READY, 600, 0, "the work has not finished yet")                                          \
    X(ILLEGAL_ADDRESS, 700, 1, "a kernel touched memory that is not mapped for it")                \
    X(LAUNCH_OUT_OF_RESOURCES, 701, 0, "the launch asks for more than a multiprocessor has")       \
    X(LAUNCH_TIMEOUT, 702, 1, "a kernel ran longer than the device allows")                        \
    X(PEER_ACCESS_ALREADY_ENABLED, 704, 0, "peer access is enabled already")                       \
    X(PEER_ACCESS_NOT_ENABLED, 705, 0, "peer access is not enabled")                               \
    X(PRIMARY_CONTEXT_ACTIVE, 708, 0, "the primary context is active already")                     \
    X(CONTEXT_IS_DESTROYED, 709, 0, "the context has been destroyed")                              \
    X(ASSERT, 710, 1, "an assertion failed in a kernel")                                           \
    X(TOO_MANY_PEERS, 711, 0, "the device has no room for another peer")                           \
    X(HOST_MEMORY_ALREADY_REGISTERED, 712, 0, "part of the host memory is registered already")     \
    X(HOST_MEMORY_NOT_REGISTERED, 713, 0, "the host memory is not registered")                     \
    X(HARDWARE_STACK_ERROR, 714, 1, "a kernel exhausted or corrupted its stack")                   \
    X(ILLEGAL_INSTRUCTION, 715, 1, "a kernel met an illegal instruction")                          \
    X(MISALIGNED_ADDRESS, 716, 1, "a kernel used a misaligned address")                            \
    X(INVALID_ADDRESS_SPACE, 717, 1, "a kernel used an address in the wrong address space")        \
    X(INVALID_PC, 718, 1, "a kernel jumped to an invalid program counter")                         \
    X(LAUNCH_FAILED, 719, 1, "a kernel failed")                                                    \
    X(COOPERATIVE_LAUNCH_TOO_LARGE, 720, 0,                                                        \
      "the cooperative grid does not fit on the device at once")                                   \
    X(TENSOR_MEMORY_LEAK, 721, 1, "a kernel left tensor memory allocated")                         \
    X(NOT_PERMITTED, 800, 0, "the operation is not permitted")                                     \
    X(NOT_SUPPORTED, 801, 0, "the operation is not supported here")                                \
    X(SYSTEM_NOT_READY, 802, 0, "the system is not ready for CUDA")                                \
    X(SYSTEM_DRIVER_MISMATCH, 803, 0, "the kernel driver and the library differ in version")       \
    X(COMPAT_NOT_SUPPORTED_ON_DEVICE, 804, 0,                                                      \
      "the device does not support the compatibility library")                                     \
    X(MPS_CONNECTION_FAILED, 805, 0, "the MPS server could not be reached")                        \
    X(MPS_RPC_FAILURE, 806, 0, "a call to the MPS server failed")                                  \
    X(MPS_SERVER_NOT_READY, 807, 0, "the MPS server does not take clients now")                    \
    X(MPS_MAX_CLIENTS_REACHED, 808, 0, "the MPS server has no room for another client")            \
    X(MPS_MAX_CONNECTIONS_REACHED, 809, 0, "the MPS server has no connections left")               \
    X(MPS_CLIENT_TERMINATED, 810, 1, "the MPS server ended this client")                           \
    X(STREAM_CAPTURE_UNSUPPORTED, 900, 0, "the call is not allowed while the stream is captured")  \
    X(TIMEOUT, 909, 0, "the operation timed out")                                                  \
    X(EXTERNAL_DEVICE, 911, 1, "a device outside the GPU failed")                                  \
    X(INVALID_CLUSTER_SIZE, 912, 0, "the cluster size is not valid")                               \
    X(INVALID_RESOURCE_TYPE, 914, 0, "the resource is of a type the call does not take")           \
    X(INVALID_RESOURCE_CONFIGURATION, 915, 0,                                                      \
      "the resource does not have the shape the call needs")                                       \
    X(UNKNOWN, 999, 1, "an internal error of the driver, cause unknown")

typedef enum cuda_result {
    CUDA_OK = 0,
#define X(name, value, sticky, sentence) CUDA_ERR_##name = value,
    CUDA_RESULTS(X)
#undef X
} cuda_result;

/* Returns CUDA's own name ("CUDA_ERROR_INVALID_VALUE"), or NULL for a number that the table
 * lacks. Static. */
const char *cuda_driver_error_name(cuda_result result);
/* Returns one sentence without a full stop; never NULL. Static. */
const char *cuda_driver_error_sentence(cuda_result result);
/* Whether the result means that the context is lost for good. */
bool cuda_driver_error_is_sticky(cuda_result result);

/* ---- handles -------------------------------------------------------------- */
typedef int cuda_device;
typedef uint64_t cuda_device_ptr;
typedef struct cuda_context_object *cuda_context;
typedef struct cuda_module_object *cuda_module;
typedef struct cuda_function_object *cuda_function;
typedef struct cuda_link_object *cuda_link;
typedef struct cuda_library_object *cuda_library;
typedef struct cuda_kernel_object *cuda_kernel;
typedef struct cuda_stream_object *cuda_stream;
typedef struct cuda_event_object *cuda_event;
typedef struct cuda_green_ctx_object *cuda_green_ctx;
typedef struct cuda_resource_desc_object *cuda_resource_desc;
typedef struct cuda_mem_pool_object *cuda_mem_pool;
typedef uint64_t cuda_mem_handle; /* CUmemGenericAllocationHandle */
typedef void (*cuda_host_fn)(void *user);
typedef size_t (*cuda_occupancy_shared)(int block_size); /* CUoccupancyB2DSize */
typedef void (*cuda_stream_callback)(cuda_stream stream, cuda_result status, void *user);

typedef struct cuda_uuid {
    unsigned char bytes[16];
} cuda_uuid;

/* Handles of the default streams. NULL means the legacy default stream. */
#define CUDA_STREAM_LEGACY     ((cuda_stream)0x1)
#define CUDA_STREAM_PER_THREAD ((cuda_stream)0x2)

/* ---- device attributes ---------------------------------------------------- */
#define CUDA_DEVICE_ATTRIBUTES(X)                                                                  \
    X(MAX_THREADS_PER_BLOCK, 1)                                                                    \
    X(MAX_BLOCK_DIM_X, 2)                                                                          \
    X(MAX_BLOCK_DIM_Y, 3)                                                                          \
    X(MAX_BLOCK_DIM_Z, 4)                                                                          \
    X(MAX_GRID_DIM_X, 5)                                                                           \
    X(MAX_GRID_DIM_Y, 6)                                                                           \
    X(MAX_GRID_DIM_Z, 7)                                                                           \
    X(MAX_SHARED_MEMORY_PER_BLOCK, 8)                                                              \
    X(TOTAL_CONSTANT_MEMORY, 9)                                                                    \
    X(WARP_SIZE, 10)                                                                               \
    X(MAX_PITCH, 11)                                                                               \
    X(MAX_REGISTERS_PER_BLOCK, 12)                                                                 \
    X(CLOCK_RATE, 13)                                                                              \
    X(TEXTURE_ALIGNMENT, 14)                                                                       \
    X(GPU_OVERLAP, 15)                                                                             \
    X(MULTIPROCESSOR_COUNT, 16)                                                                    \
    X(KERNEL_EXEC_TIMEOUT, 17)                                                                     \
    X(INTEGRATED, 18)                                                                              \
    X(CAN_MAP_HOST_MEMORY, 19)                                                                     \
    X(COMPUTE_MODE, 20)                                                                            \
    X(SURFACE_ALIGNMENT, 30)                                                                       \
    X(CONCURRENT_KERNELS, 31)                                                                      \
    X(ECC_ENABLED, 32)                                                                             \
    X(PCI_BUS_ID, 33)                                                                              \
    X(PCI_DEVICE_ID, 34)                                                                           \
    X(TCC_DRIVER, 35)                                                                              \
    X(MEMORY_CLOCK_RATE, 36)                                                                       \
    X(GLOBAL_MEMORY_BUS_WIDTH, 37)                                                                 \
    X(L2_CACHE_SIZE, 38)                                                                           \
    X(MAX_THREADS_PER_MULTIPROCESSOR, 39)                                                          \
    X(ASYNC_ENGINE_COUNT, 40)                                                                      \
    X(UNIFIED_ADDRESSING, 41)                                                                      \
    X(PCI_DOMAIN_ID, 50)                                                                           \
    X(TEXTURE_PITCH_ALIGNMENT, 51)                                                                 \
    X(COMPUTE_CAPABILITY_MAJOR, 75)                                                                \
    X(COMPUTE_CAPABILITY_MINOR, 76)                                                                \
    X(STREAM_PRIORITIES_SUPPORTED, 78)                                                             \
    X(GLOBAL_L1_CACHE_SUPPORTED, 79)                                                               \
    X(LOCAL_L1_CACHE_SUPPORTED, 80)                                                                \
    X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                                                    \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, 82)                                                        \
    X(MANAGED_MEMORY, 83)                                                                          \
    X(MULTI_GPU_BOARD, 84)                                                                         \
    X(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 87)                                                   \
    X(PAGEABLE_MEMORY_ACCESS, 88)                                                                  \
    X(CONCURRENT_MANAGED_ACCESS, 89)                                                               \
    X(COMPUTE_PREEMPTION_SUPPORTED, 90)                                                            \
    X(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91)                                                 \
    X(COOPERATIVE_LAUNCH, 95)                                                                      \
    X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                                       \
    X(CAN_FLUSH_REMOTE_WRITES, 98)                                                                 \
    X(HOST_REGISTER_SUPPORTED, 99)                                                                 \
    X(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 100)                                           \
    X(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)                                                    \
    X(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)                                            \
    X(MAX_BLOCKS_PER_MULTIPROCESSOR, 106)                                                          \
    X(RESERVED_SHARED_MEMORY_PER_BLOCK, 111)                                                       \
    X(READ_ONLY_HOST_REGISTER_SUPPORTED, 113)                                                      \
    X(MEMORY_POOLS_SUPPORTED, 115)                                                                 \
    X(CLUSTER_LAUNCH, 120)                                                                         \
    X(CAN_USE_64_BIT_STREAM_MEM_OPS, 122)                                                          \
    X(CAN_USE_STREAM_WAIT_VALUE_NOR, 123)                                                          \
    X(MEM_SYNC_DOMAIN_COUNT, 126)                                                                  \
    X(NUMA_ID, 131)                                                                                \
    X(MPS_ENABLED, 133)                                                                            \
    X(HOST_NUMA_ID, 134)

typedef enum cuda_device_attribute {
#define X(name, value) CUDA_ATTR_##name = value,
    CUDA_DEVICE_ATTRIBUTES(X)
#undef X
} cuda_device_attribute;

/* ---- function attributes, limits, flags ------------------------------------ */
#define CUDA_FUNCTION_ATTRIBUTES(X)                                                                \
    X(MAX_THREADS_PER_BLOCK, 0)                                                                    \
    X(SHARED_SIZE_BYTES, 1)                                                                        \
    X(CONST_SIZE_BYTES, 2)                                                                         \
    X(LOCAL_SIZE_BYTES, 3)                                                                         \
    X(NUM_REGS, 4)                                                                                 \
    X(PTX_VERSION, 5)                                                                              \
    X(BINARY_VERSION, 6)                                                                           \
    X(CACHE_MODE_CA, 7)                                                                            \
    X(MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                                            \
    X(PREFERRED_SHARED_MEMORY_CARVEOUT, 9)                                                         \
    X(CLUSTER_SIZE_MUST_BE_SET, 10)                                                                \
    X(REQUIRED_CLUSTER_WIDTH, 11)                                                                  \
    X(REQUIRED_CLUSTER_HEIGHT, 12)                                                                 \
    X(REQUIRED_CLUSTER_DEPTH, 13)                                                                  \
    X(NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)                                                       \
    X(CLUSTER_SCHEDULING_POLICY_PREFERENCE, 15)

typedef enum cuda_function_attribute {
#define X(name, value) CUDA_FUNC_##name = value,
    CUDA_FUNCTION_ATTRIBUTES(X)
#undef X
} cuda_function_attribute;

typedef enum cuda_limit {
    CUDA_LIMIT_STACK_SIZE = 0,
    CUDA_LIMIT_PRINTF_FIFO_SIZE = 1,
    CUDA_LIMIT_MALLOC_HEAP_SIZE = 2,
} cuda_limit;

typedef enum cuda_jit_option {
    CUDA_JIT_INFO_LOG_BUFFER = 3,
    CUDA_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
    CUDA_JIT_ERROR_LOG_BUFFER = 5,
    CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
} cuda_jit_option;

typedef enum cuda_jit_input {
    CUDA_JIT_INPUT_CUBIN = 0,
    CUDA_JIT_INPUT_PTX = 1,
    CUDA_JIT_INPUT_FATBINARY = 2,
    CUDA_JIT_INPUT_OBJECT = 3,
    CUDA_JIT_INPUT_LIBRARY = 4,
    CUDA_JIT_INPUT_NVVM = 5,
} cuda_jit_input;

typedef enum cuda_pointer_attribute {
    CUDA_POINTER_CONTEXT = 1,
    CUDA_POINTER_MEMORY_TYPE = 2,
    CUDA_POINTER_DEVICE_POINTER = 3,
    CUDA_POINTER_HOST_POINTER = 4,
    CUDA_POINTER_SYNC_MEMOPS = 6,
    CUDA_POINTER_BUFFER_ID = 7,
    CUDA_POINTER_IS_MANAGED = 8,
    CUDA_POINTER_DEVICE_ORDINAL = 9,
    CUDA_POINTER_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CUDA_POINTER_RANGE_START_ADDR = 11,
    CUDA_POINTER_RANGE_SIZE = 12,
    CUDA_POINTER_MAPPED = 13,
    CUDA_POINTER_ALLOWED_HANDLE_TYPES = 14,
    CUDA_POINTER_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
    CUDA_POINTER_ACCESS_FLAGS = 16,
    CUDA_POINTER_MEMPOOL_HANDLE = 17,
    CUDA_POINTER_MAPPING_SIZE = 18,
    CUDA_POINTER_MAPPING_BASE_ADDR = 19,
    CUDA_POINTER_MEMORY_BLOCK_ID = 20,
    CUDA_POINTER_IS_HW_DECOMPRESS_CAPABLE = 21,
} cuda_pointer_attribute;

enum {
    CUDA_MEMORYTYPE_HOST = 1,
    CUDA_MEMORYTYPE_DEVICE = 2,
    CUDA_MEMORYTYPE_ARRAY = 3,
    CUDA_MEMORYTYPE_UNIFIED = 4,

    CUDA_COMPUTEMODE_DEFAULT = 0,
    CUDA_COMPUTEMODE_PROHIBITED = 2,
    CUDA_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,

    CUDA_CTX_SCHED_AUTO = 0x0,
    CUDA_CTX_SCHED_SPIN = 0x1,
    CUDA_CTX_SCHED_YIELD = 0x2,
    CUDA_CTX_SCHED_BLOCKING_SYNC = 0x4,
    CUDA_CTX_SCHED_MASK = 0x7,
    CUDA_CTX_FLAGS_MASK = 0xff,

    CUDA_STREAM_DEFAULT = 0x0,
    CUDA_STREAM_NON_BLOCKING = 0x1,

    CUDA_EVENT_DEFAULT = 0x0,
    CUDA_EVENT_BLOCKING_SYNC = 0x1,
    CUDA_EVENT_DISABLE_TIMING = 0x2,
    CUDA_EVENT_INTERPROCESS = 0x4,

    CUDA_HOST_REGISTER_PORTABLE = 0x1,
    CUDA_HOST_REGISTER_DEVICEMAP = 0x2,
    CUDA_HOST_REGISTER_IOMEMORY = 0x4,
    CUDA_HOST_REGISTER_READ_ONLY = 0x8,

    CUDA_HOST_ALLOC_PORTABLE = 0x1,
    CUDA_HOST_ALLOC_DEVICEMAP = 0x2,
    CUDA_HOST_ALLOC_WRITECOMBINED = 0x4,

    CUDA_STREAM_WRITE_VALUE_DEFAULT = 0x0,
    CUDA_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 0x1,

    CUDA_GREEN_CTX_DEFAULT_STREAM = 0x1,
    CUDA_SM_SPLIT_IGNORE_SM_COSCHEDULING = 0x1,
    CUDA_SM_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE = 0x2,

    CUDA_PROC_ADDRESS_DEFAULT = 0,
    CUDA_PROC_ADDRESS_LEGACY_STREAM = 1,
    CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
};

typedef enum cuda_proc_address_status {
    CUDA_PROC_ADDRESS_SUCCESS = 0,
    CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    CUDA_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
} cuda_proc_address_status;

/* Keys of cuLaunchKernel's `extra` array. */
#define CUDA_LAUNCH_PARAM_END            ((void *)0x0)
#define CUDA_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x1)
#define CUDA_LAUNCH_PARAM_BUFFER_SIZE    ((void *)0x2)

/* ---- virtual memory management ----------------------------------------------- */
typedef enum cuda_mem_allocation_type { CUDA_MEM_ALLOCATION_PINNED = 1 } cuda_mem_allocation_type;
typedef enum cuda_mem_handle_type {
    CUDA_MEM_HANDLE_NONE = 0,
    CUDA_MEM_HANDLE_POSIX_FD = 1,
} cuda_mem_handle_type;
typedef enum cuda_mem_location_type {
    CUDA_MEM_LOCATION_DEVICE = 1,
    CUDA_MEM_LOCATION_HOST = 2,
} cuda_mem_location_type;
typedef enum cuda_mem_access {
    CUDA_MEM_ACCESS_NONE = 0,
    CUDA_MEM_ACCESS_READ = 1,
    CUDA_MEM_ACCESS_READWRITE = 3,
} cuda_mem_access;
typedef enum cuda_mem_granularity {
    CUDA_MEM_GRANULARITY_MINIMUM = 0,
    CUDA_MEM_GRANULARITY_RECOMMENDED = 1,
} cuda_mem_granularity;

typedef struct cuda_mem_location {
    cuda_mem_location_type type;
    int id; /* device ordinal */
} cuda_mem_location;

/* CUmemcpyAttributes: of copies of a batch. */
typedef struct cuda_copy_attributes {
    int order; /* enum cuda_copy_order */
    cuda_mem_location source_hint, destination_hint;
    unsigned flags;
} cuda_copy_attributes;
_Static_assert(sizeof(cuda_copy_attributes) == 24, "CUmemcpyAttributes");
/* When a source is read: where the stream has come to it, before the call returns, or at any time.
 */
enum cuda_copy_order {
    CUDA_COPY_ORDER_STREAM = 1,
    CUDA_COPY_ORDER_DURING_CALL = 2,
    CUDA_COPY_ORDER_ANY = 3,
};
enum { CUDA_COPY_PREFER_OVERLAP = 1 }; /* a hint */

typedef struct cuda_mem_allocation_prop {
    cuda_mem_allocation_type type;
    cuda_mem_handle_type requested_handle_types;
    cuda_mem_location location;
    void *win32_metadata; /* NULL */
    struct {
        unsigned char compression_type;
        unsigned char gpu_direct_rdma_capable;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
} cuda_mem_allocation_prop;

typedef struct cuda_mem_access_desc {
    cuda_mem_location location;
    cuda_mem_access flags;
} cuda_mem_access_desc;

typedef struct cuda_mem_pool_props {
    cuda_mem_allocation_type type;
    cuda_mem_handle_type handle_types;
    cuda_mem_location location;
    void *win32_security_attributes;
    size_t max_size; /* 0: the device's choice */
    unsigned short usage;
    unsigned char reserved[54];
} cuda_mem_pool_props;

_Static_assert(sizeof(cuda_mem_pool_props) == 88, "CUmemPoolProps");
_Static_assert(sizeof(cuda_mem_location) == 8, "CUmemLocation");
_Static_assert(sizeof(cuda_mem_allocation_prop) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(cuda_mem_access_desc) == 12, "CUmemAccessDesc");

/* ---- copies of blocks -------------------------------------------------------- */
typedef struct cuda_memcpy_2d {
    size_t src_x, src_y; /* bytes, rows */
    int src_type;        /* CUDA_MEMORYTYPE_... */
    const void *src_host;
    cuda_device_ptr src_device;
    void *src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    int dst_type;
    void *dst_host;
    cuda_device_ptr dst_device;
    void *dst_array;
    size_t dst_pitch;
    size_t width, height; /* bytes, rows */
} cuda_memcpy_2d;

typedef struct cuda_memcpy_3d {
    size_t src_x, src_y, src_z, src_lod;
    int src_type;
    const void *src_host;
    cuda_device_ptr src_device;
    void *src_array;
    cuda_context src_context; /* of CUDA_MEMCPY3D_PEER; reserved in CUDA_MEMCPY3D */
    size_t src_pitch, src_height;
    size_t dst_x, dst_y, dst_z, dst_lod;
    int dst_type;
    void *dst_host;
    cuda_device_ptr dst_device;
    void *dst_array;
    cuda_context dst_context;
    size_t dst_pitch, dst_height;
    size_t width, height, depth;
} cuda_memcpy_3d;

/* CUmemcpy3DOperand and CUDA_MEMCPY3D_BATCH_OP: a side of a copy, and a copy of a batch. */
enum { CUDA_COPY_OPERAND_POINTER = 1, CUDA_COPY_OPERAND_ARRAY = 2 };
typedef struct cuda_copy_operand {
    int type;
    cuda_device_ptr ptr;
    size_t row, rows; /* bytes of a row, and rows of a plane; 0: those of the copy */
    cuda_mem_location hint;
} cuda_copy_operand;
typedef struct cuda_batch_3d {
    cuda_copy_operand src, dst;
    size_t width, height, depth;
    int order; /* enum cuda_copy_order */
    unsigned flags;
} cuda_batch_3d;
_Static_assert(sizeof(cuda_batch_3d) == 112, "CUDA_MEMCPY3D_BATCH_OP");

_Static_assert(sizeof(cuda_memcpy_2d) == 128, "CUDA_MEMCPY2D");
_Static_assert(sizeof(cuda_memcpy_3d) == 200, "CUDA_MEMCPY3D");

/* Of cuCtxCreate_v4: CUctxCreateParams. */
typedef struct cuda_ctx_create_params {
    void *affinities;
    int affinity_count;
    void *graphics;
} cuda_ctx_create_params;
_Static_assert(sizeof(cuda_ctx_create_params) == 24, "CUctxCreateParams");

/* ---- stream memory operations -------------------------------------------------- */
typedef enum cuda_mem_op {
    CUDA_MEM_OP_WAIT_VALUE_32 = 1,
    CUDA_MEM_OP_WRITE_VALUE_32 = 2,
    CUDA_MEM_OP_FLUSH_REMOTE_WRITES = 3,
    CUDA_MEM_OP_WAIT_VALUE_64 = 4,
    CUDA_MEM_OP_WRITE_VALUE_64 = 5,
    CUDA_MEM_OP_BARRIER = 6,
} cuda_mem_op;

enum {
    CUDA_STREAM_WAIT_VALUE_GEQ = 0,
    CUDA_STREAM_WAIT_VALUE_EQ = 1,
    CUDA_STREAM_WAIT_VALUE_AND = 2,
    CUDA_STREAM_WAIT_VALUE_NOR = 3,
    CUDA_STREAM_WAIT_VALUE_FLUSH = 1 << 30,
};

typedef union cuda_mem_op_params {
    cuda_mem_op operation;
    struct {
        cuda_mem_op operation;
        cuda_device_ptr address;
        union {
            uint32_t value;
            uint64_t value64;
        };
        unsigned flags;
        cuda_device_ptr alias; /* belongs to the driver */
    } write_value;             /* wait_value has the same layout */
    uint64_t pad[6];
} cuda_mem_op_params;

_Static_assert(sizeof(cuda_mem_op_params) == 48, "CUstreamBatchMemOpParams");

/* ---- green contexts -------------------------------------------------------------- */
typedef enum cuda_resource_type {
    CUDA_RESOURCE_INVALID = 0,
    CUDA_RESOURCE_SM = 1,
    CUDA_RESOURCE_WORKQUEUE_CONFIG = 1000, /* from 13.1 on */
} cuda_resource_type;

enum {
    CUDA_WORKQUEUE_SCOPE_DEVICE_CONTEXT = 0, /* shared by all contexts */
    CUDA_WORKQUEUE_SCOPE_GREEN_BALANCED = 1, /* kept apart from other green contexts */
};

/* Of 13.1, which no header here can confirm: NVIDIA's driver API reference,
 * "CUdevWorkqueueConfigResource". */
typedef struct cuda_workqueue_resource {
    cuda_device device;
    unsigned concurrency; /* streams that the context is expected to use at once */
    int scope;
} cuda_workqueue_resource;

typedef struct cuda_sm_resource {
    unsigned sm_count;
    unsigned min_partition_size;
    unsigned coscheduled_alignment;
} cuda_sm_resource;

typedef struct cuda_dev_resource {
    cuda_resource_type type;
    unsigned char internal[92]; /* belongs to the driver; copied whole, never changed */
    union {
        cuda_sm_resource sm;
        cuda_workqueue_resource workqueue;
        unsigned char oversize[48];
    };
} cuda_dev_resource;

_Static_assert(sizeof(cuda_dev_resource) == 144, "CUdevResource");
_Static_assert(offsetof(cuda_dev_resource, sm) == 96, "CUdevResource.sm");

/* ---- the entry points ---- */

struct cuda_launch_config; /* launch_attribute.h */

/*
 * X(name, symbol, version, need, (parameters))
 * name: the name that is given to cuGetProcAddress, and the member's name. symbol: the ELF symbol
 * of that version. version: chooses the ABI. need: 1 if gpushare can't work without it, 0 if the
 * member may be NULL.
 */
#define CUDA_DRIVER_ENTRIES(X)                                                                     \
    X(cuInit, cuInit, 2000, 1, (unsigned flags))                                                   \
    X(cuDriverGetVersion, cuDriverGetVersion, 2020, 1, (int *version))                             \
    X(cuGetErrorName, cuGetErrorName, 6000, 1, (cuda_result error, const char **name))             \
    X(cuGetErrorString, cuGetErrorString, 6000, 1, (cuda_result error, const char **text))         \
    X(cuDeviceGetCount, cuDeviceGetCount, 2000, 1, (int *count))                                   \
    X(cuDeviceGet, cuDeviceGet, 2000, 1, (cuda_device * device, int ordinal))                      \
    X(cuDeviceGetName, cuDeviceGetName, 2000, 1, (char *name, int size, cuda_device device))       \
    X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, 1, (cuda_uuid * uuid, cuda_device device))       \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, 1, (size_t * bytes, cuda_device device))        \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, 1,                                         \
      (int *value, cuda_device_attribute attribute, cuda_device device))                           \
    X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, 1, (char *id, int size, cuda_device device)) \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, 1,                                 \
      (cuda_context * context, cuda_device device))                                                \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, 1, (cuda_device device))     \
    X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, 11000, 1,                         \
      (cuda_device device, unsigned flags))                                                        \
    X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000, 1,                             \
      (cuda_device device, unsigned *flags, int *active))                                          \
    X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, 1, (cuda_context context))                           \
    X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, 1, (cuda_context * context))                         \
    X(cuCtxGetDevice, cuCtxGetDevice, 2000, 1, (cuda_device * device))                             \
    X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, 1,                           \
      (int *least, int *greatest))                                                                 \
    X(cuCtxSynchronize, cuCtxSynchronize, 2000, 1, (void))                                         \
    X(cuCtxGetLimit, cuCtxGetLimit, 3010, 1, (size_t * value, cuda_limit limit))                   \
    X(cuCtxSetLimit, cuCtxSetLimit, 3010, 1, (cuda_limit limit, size_t value))                     \
    X(cuMemGetInfo, cuMemGetInfo_v2, 3020, 1, (size_t * free_bytes, size_t * total_bytes))         \
    X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity, 10020, 1,                      \
      (size_t * bytes, const cuda_mem_allocation_prop *prop, cuda_mem_granularity option))         \
    X(cuMemAddressReserve, cuMemAddressReserve, 10020, 1,                                          \
      (cuda_device_ptr * ptr, size_t size, size_t alignment, cuda_device_ptr hint,                 \
       unsigned long long flags))                                                                  \
    X(cuMemAddressFree, cuMemAddressFree, 10020, 1, (cuda_device_ptr ptr, size_t size))            \
    X(cuMemCreate, cuMemCreate, 10020, 1,                                                          \
      (cuda_mem_handle * handle, size_t size, const cuda_mem_allocation_prop *prop,                \
       unsigned long long flags))                                                                  \
    X(cuMemRelease, cuMemRelease, 10020, 1, (cuda_mem_handle handle))                              \
    X(cuMemMap, cuMemMap, 10020, 1,                                                                \
      (cuda_device_ptr ptr, size_t size, size_t offset, cuda_mem_handle handle,                    \
       unsigned long long flags))                                                                  \
    X(cuMemUnmap, cuMemUnmap, 10020, 1, (cuda_device_ptr ptr, size_t size))                        \
    X(cuMemSetAccess, cuMemSetAccess, 10020, 1,                                                    \
      (cuda_device_ptr ptr, size_t size, const cuda_mem_access_desc *desc, size_t count))          \
    X(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020, 1,                        \
      (void *shareable, cuda_mem_handle handle, cuda_mem_handle_type type,                         \
       unsigned long long flags))                                                                  \
    X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020, 1,                    \
      (cuda_mem_handle * handle, void *os_handle, cuda_mem_handle_type type))                      \
    X(cuMemHostRegister, cuMemHostRegister_v2, 6050, 1, (void *ptr, size_t size, unsigned flags))  \
    X(cuMemHostUnregister, cuMemHostUnregister, 4000, 1, (void *ptr))                              \
    X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020, 1,                            \
      (cuda_device_ptr * device_ptr, void *host, unsigned flags))                                  \
    X(cuMemAlloc, cuMemAlloc_v2, 3020, 1, (cuda_device_ptr * ptr, size_t size))                    \
    X(cuMemFree, cuMemFree_v2, 3020, 1, (cuda_device_ptr ptr))                                     \
    X(cuMemAllocHost, cuMemAllocHost_v2, 3020, 1, (void **ptr, size_t size))                       \
    X(cuMemHostAlloc, cuMemHostAlloc, 2020, 1, (void **ptr, size_t size, unsigned flags))          \
    X(cuMemFreeHost, cuMemFreeHost, 2000, 1, (void *ptr))                                          \
    X(cuMemGetAddressRange, cuMemGetAddressRange_v2, 3020, 1,                                      \
      (cuda_device_ptr * base, size_t * size, cuda_device_ptr ptr))                                \
    X(cuPointerGetAttribute, cuPointerGetAttribute, 4000, 1,                                       \
      (void *data, cuda_pointer_attribute attribute, cuda_device_ptr ptr))                         \
    X(cuMemcpy, cuMemcpy, 4000, 1, (cuda_device_ptr dst, cuda_device_ptr src, size_t size))        \
    X(cuMemcpyAsync, cuMemcpyAsync, 4000, 1,                                                       \
      (cuda_device_ptr dst, cuda_device_ptr src, size_t size, cuda_stream stream))                 \
    X(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020, 1, (cuda_device_ptr dst, const void *src, size_t size)) \
    X(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020, 1, (void *dst, cuda_device_ptr src, size_t size))       \
    X(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020, 1,                                                      \
      (cuda_device_ptr dst, cuda_device_ptr src, size_t size))                                     \
    X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020, 1,                                            \
      (cuda_device_ptr dst, const void *src, size_t size, cuda_stream stream))                     \
    X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020, 1,                                            \
      (void *dst, cuda_device_ptr src, size_t size, cuda_stream stream))                           \
    X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020, 1,                                            \
      (cuda_device_ptr dst, cuda_device_ptr src, size_t size, cuda_stream stream))                 \
    X(cuMemsetD8, cuMemsetD8_v2, 3020, 1,                                                          \
      (cuda_device_ptr dst, unsigned char value, size_t count))                                    \
    X(cuMemsetD16, cuMemsetD16_v2, 3020, 1,                                                        \
      (cuda_device_ptr dst, unsigned short value, size_t count))                                   \
    X(cuMemsetD32, cuMemsetD32_v2, 3020, 1, (cuda_device_ptr dst, unsigned value, size_t count))   \
    X(cuMemsetD8Async, cuMemsetD8Async, 3020, 1,                                                   \
      (cuda_device_ptr dst, unsigned char value, size_t count, cuda_stream stream))                \
    X(cuMemsetD16Async, cuMemsetD16Async, 3020, 1,                                                 \
      (cuda_device_ptr dst, unsigned short value, size_t count, cuda_stream stream))               \
    X(cuMemsetD32Async, cuMemsetD32Async, 3020, 1,                                                 \
      (cuda_device_ptr dst, unsigned value, size_t count, cuda_stream stream))                     \
    X(cuStreamCreate, cuStreamCreate, 2000, 1, (cuda_stream * stream, unsigned flags))             \
    X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, 1,                             \
      (cuda_stream * stream, unsigned flags, int priority))                                        \
    X(cuStreamDestroy, cuStreamDestroy_v2, 4000, 1, (cuda_stream stream))                          \
    X(cuStreamQuery, cuStreamQuery, 2000, 1, (cuda_stream stream))                                 \
    X(cuStreamSynchronize, cuStreamSynchronize, 2000, 1, (cuda_stream stream))                     \
    X(cuStreamWaitEvent, cuStreamWaitEvent, 3020, 1,                                               \
      (cuda_stream stream, cuda_event event, unsigned flags))                                      \
    X(cuStreamGetPriority, cuStreamGetPriority, 5050, 1, (cuda_stream stream, int *priority))      \
    X(cuStreamWriteValue32, cuStreamWriteValue32_v2, 11070, 1,                                     \
      (cuda_stream stream, cuda_device_ptr address, uint32_t value, unsigned flags))               \
    X(cuStreamWriteValue64, cuStreamWriteValue64_v2, 11070, 1,                                     \
      (cuda_stream stream, cuda_device_ptr address, uint64_t value, unsigned flags))               \
    X(cuStreamBatchMemOp, cuStreamBatchMemOp_v2, 11070, 1,                                         \
      (cuda_stream stream, unsigned count, cuda_mem_op_params *ops, unsigned flags))               \
    X(cuEventCreate, cuEventCreate, 2000, 1, (cuda_event * event, unsigned flags))                 \
    X(cuEventRecord, cuEventRecord, 2000, 1, (cuda_event event, cuda_stream stream))               \
    X(cuEventQuery, cuEventQuery, 2000, 1, (cuda_event event))                                     \
    X(cuEventSynchronize, cuEventSynchronize, 2000, 1, (cuda_event event))                         \
    X(cuEventDestroy, cuEventDestroy_v2, 4000, 1, (cuda_event event))                              \
    X(cuEventElapsedTime, cuEventElapsedTime, 2000, 1,                                             \
      (float *milliseconds, cuda_event start, cuda_event end))                                     \
    X(cuModuleLoadData, cuModuleLoadData, 2000, 1, (cuda_module * module, const void *image))      \
    X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, 1,                                             \
      (cuda_module * module, const void *image, unsigned count, cuda_jit_option *options,          \
       void **values))                                                                             \
    X(cuLinkCreate, cuLinkCreate_v2, 6050, 0,                                                      \
      (unsigned count, cuda_jit_option *options, void **values, cuda_link *link))                  \
    X(cuLinkAddData, cuLinkAddData_v2, 6050, 0,                                                    \
      (cuda_link link, cuda_jit_input type, void *data, size_t size, const char *name,             \
       unsigned count, cuda_jit_option *options, void **values))                                   \
    X(cuLinkComplete, cuLinkComplete, 5050, 0, (cuda_link link, void **image, size_t *size))       \
    X(cuLinkDestroy, cuLinkDestroy, 5050, 0, (cuda_link link))                                     \
    X(cuModuleUnload, cuModuleUnload, 2000, 1, (cuda_module module))                               \
    X(cuModuleGetFunction, cuModuleGetFunction, 2000, 1,                                           \
      (cuda_function * function, cuda_module module, const char *name))                            \
    X(cuModuleGetGlobal, cuModuleGetGlobal_v2, 3020, 1,                                            \
      (cuda_device_ptr * ptr, size_t * size, cuda_module module, const char *name))                \
    X(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 12040, 0,                                \
      (unsigned *count, cuda_module module))                                                       \
    X(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040, 0,                            \
      (cuda_function * functions, unsigned count, cuda_module module))                             \
    X(cuFuncGetName, cuFuncGetName, 12030, 0, (const char **name, cuda_function function))         \
    X(cuFuncGetAttribute, cuFuncGetAttribute, 2020, 1,                                             \
      (int *value, cuda_function_attribute attribute, cuda_function function))                     \
    X(cuFuncSetAttribute, cuFuncSetAttribute, 9000, 1,                                             \
      (cuda_function function, cuda_function_attribute attribute, int value))                      \
    X(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040, 0,                                            \
      (cuda_function function, size_t index, size_t * offset, size_t * size))                      \
    X(cuLaunchKernel, cuLaunchKernel, 4000, 1,                                                     \
      (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                  \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       cuda_stream stream, void **params, void **extra))                                           \
    X(cuLaunchKernelEx, cuLaunchKernelEx, 11060, 0,                                                \
      (const struct cuda_launch_config *config, cuda_function function, void **params,             \
       void **extra))                                                                              \
    X(cuLaunchHostFunc, cuLaunchHostFunc, 10000, 1,                                                \
      (cuda_stream stream, cuda_host_fn fn, void *user))                                           \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,    \
      6050, 1, (int *blocks, cuda_function function, int block_size, size_t dynamic_shared_bytes)) \
    X(cuDeviceGetDevResource, cuDeviceGetDevResource, 12040, 0,                                    \
      (cuda_device device, cuda_dev_resource * resource, cuda_resource_type type))                 \
    X(cuDevSmResourceSplitByCount, cuDevSmResourceSplitByCount, 12040, 0,                          \
      (cuda_dev_resource * result, unsigned *groups, const cuda_dev_resource *input,               \
       cuda_dev_resource *remaining, unsigned flags, unsigned min_count))                          \
    X(cuDevResourceGenerateDesc, cuDevResourceGenerateDesc, 12040, 0,                              \
      (cuda_resource_desc * desc, cuda_dev_resource * resources, unsigned count))                  \
    X(cuGreenCtxCreate, cuGreenCtxCreate, 12040, 0,                                                \
      (cuda_green_ctx * green, cuda_resource_desc desc, cuda_device device, unsigned flags))       \
    X(cuGreenCtxDestroy, cuGreenCtxDestroy, 12040, 0, (cuda_green_ctx green))                      \
    X(cuGreenCtxStreamCreate, cuGreenCtxStreamCreate, 12050, 0,                                    \
      (cuda_stream * stream, cuda_green_ctx green, unsigned flags, int priority))                  \
    X(cuGreenCtxGetDevResource, cuGreenCtxGetDevResource, 12040, 0,                                \
      (cuda_green_ctx green, cuda_dev_resource * resource, cuda_resource_type type))               \
    X(cuGetProcAddress, cuGetProcAddress_v2, 12000, 1,                                             \
      (const char *symbol, void **fn, int version, uint64_t flags,                                 \
       cuda_proc_address_status *status))

struct cuda_driver {
#define X(name, symbol, version, need, params) cuda_result(*name) params;
    CUDA_DRIVER_ENTRIES(X)
#undef X
    void *library; /* from dlopen */
};

/*
 * Opens the driver library at an absolute path, never by a search for its name, and fills every
 * member of *driver. Optional entries that the library lacks become NULL. The only CUDA function
 * that it calls is cuGetProcAddress; the caller calls cuInit.
 *
 * Returns 0, or an error number, with the sentence in *why and zeros in *driver: the path is not
 * absolute, the library can't be loaded, it is gpushare's own drop-in (which exports
 * gpushare_dropin_marker), or it lacks a required entry, which *why names.
 *
 * The library's code stays mapped until the process ends, because a driver has threads of its own.
 * Any thread; no lock is needed afterwards.
 */
uint32_t cuda_driver_open(struct cuda_driver *driver, const char *absolute_path, struct error *why);

/*
 * The same, for programs that examine a driver: a required entry that the library lacks is NULL,
 * and no error.
 */
uint32_t cuda_driver_open_partly(struct cuda_driver *driver, const char *absolute_path,
                                 struct error *why);

/* Closes the library and zeroes *driver. Idempotent; NULL is allowed. */
void cuda_driver_close(struct cuda_driver *driver);

/*
 * The UUID of the GPU that the device is, or is an instance of: cuDeviceGetUuid as it was before
 * 11.4, when MIG instances had none of their own. CUDA_ERR_NOT_FOUND: the library does not have it
 * any more. After cuInit.
 */
cuda_result cuda_driver_gpu_uuid(const struct cuda_driver *driver, cuda_uuid *uuid,
                                 cuda_device device);

/* Whether the library has every entry of green contexts. */
bool cuda_driver_has_green_contexts(const struct cuda_driver *driver);

#endif
