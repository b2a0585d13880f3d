/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* gpushare_error: the numbers of errors. gpushare.h includes this header. */
#ifndef GPUSHARE_ERROR_H
#define GPUSHARE_ERROR_H

/*
 * Numbers up to 999 are CUDA's and mean the same (CUresult); numbers from 10000 on are
 * gpushare's own. A number never gets another meaning; later versions may have more numbers.
 */
enum gpushare_error {
    GPUSHARE_SUCCESS = 0,
    GPUSHARE_ERROR_INVALID_VALUE = 1,       /* the call does not accept this argument */
    GPUSHARE_ERROR_OUT_OF_MEMORY = 2,       /* above the client's limit, or no memory is left */
    GPUSHARE_ERROR_NOT_INITIALIZED = 3,     /* no connection, or the parent process's */
    GPUSHARE_ERROR_NO_DEVICE = 100,         /* the server has no usable device */
    GPUSHARE_ERROR_INVALID_DEVICE = 101,    /* no such device, or not visible to this client */
    GPUSHARE_ERROR_INVALID_IMAGE = 200,     /* not PTX, a cubin or a fatbin */
    GPUSHARE_ERROR_NO_BINARY_FOR_GPU = 209, /* the image has no code that this device can run */
    GPUSHARE_ERROR_ECC_UNCORRECTABLE = 214, /* uncorrectable error of the device's memory */
    GPUSHARE_ERROR_INVALID_PTX = 218,       /* the PTX text could not be compiled */
    GPUSHARE_ERROR_UNSUPPORTED_PTX_VERSION = 222, /* newer than the driver knows */
    GPUSHARE_ERROR_INVALID_HANDLE = 400,          /* not this client's, or no longer alive */
    GPUSHARE_ERROR_NOT_FOUND = 500,               /* no such name */
    GPUSHARE_ERROR_NOT_READY = 600,       /* not complete yet; an answer rather than a failure */
    GPUSHARE_ERROR_ILLEGAL_ADDRESS = 700, /* a kernel used an address that is not allocated */
    GPUSHARE_ERROR_LAUNCH_OUT_OF_RESOURCES = 701, /* a block asks for more than it can have */
    GPUSHARE_ERROR_LAUNCH_TIMEOUT = 702,          /* a kernel ran longer than the device allows */
    GPUSHARE_ERROR_ASSERT = 710,                  /* an assertion in a kernel failed */
    GPUSHARE_ERROR_HARDWARE_STACK_ERROR = 714,    /* a kernel overran its stack */
    GPUSHARE_ERROR_ILLEGAL_INSTRUCTION = 715,     /* a kernel executed an unknown instruction */
    GPUSHARE_ERROR_MISALIGNED_ADDRESS = 716,      /* a kernel used a misaligned address */
    GPUSHARE_ERROR_INVALID_ADDRESS_SPACE = 717,   /* an address of the wrong kind of memory */
    GPUSHARE_ERROR_INVALID_PC = 718,              /* a kernel jumped to where no code is */
    GPUSHARE_ERROR_LAUNCH_FAILED = 719,           /* a kernel trapped, or failed without a name */
    GPUSHARE_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720, /* its grid does not fit at once */
    GPUSHARE_ERROR_NOT_PERMITTED = 800,         /* the server does not allow it to this client */
    GPUSHARE_ERROR_NOT_SUPPORTED = 801,         /* this driver or device does not offer it */
    GPUSHARE_ERROR_UNKNOWN = 999,               /* the driver's error has no name here */
    GPUSHARE_ERROR_CONNECTION_FAILED = 10001,   /* the server could not be reached */
    GPUSHARE_ERROR_CONNECTION_LOST = 10002,     /* the server was reached, and has ended */
    GPUSHARE_ERROR_PROTOCOL_VERSION = 10003,    /* client and server speak different versions */
    GPUSHARE_ERROR_PROTOCOL_VIOLATION = 10004,  /* a message broke the protocol's rules */
    GPUSHARE_ERROR_INVALID_ENVIRONMENT = 10005, /* a variable's value can't be understood */
    GPUSHARE_ERROR_TOO_MANY_CLIENTS = 10006,    /* the server has as many as it may have */
    GPUSHARE_ERROR_ADDRESS_SPACE_FULL = 10007,  /* the server has no addresses for this client */
    GPUSHARE_ERROR_WINDOW_TAKEN = 10008,        /* this process uses the addresses itself */
    GPUSHARE_ERROR_DEVICE_NOT_READY = 10009,    /* its worker is starting, or can't be started */
    GPUSHARE_ERROR_WORKER_LOST = 10010,         /* the device's worker ended; connect again */
    GPUSHARE_ERROR_KILLED = 10011,              /* an administrator ended this connection */
    GPUSHARE_ERROR_DEPENDENCY_CIRCLE = 10012,   /* streams wait for each other */
    GPUSHARE_ERROR_TOO_MANY_OBJECTS = 10013,    /* streams, modules or events: as many as allowed */
    GPUSHARE_ERROR_SERVER_RESOURCES = 10014,    /* the server lacks memory or descriptors */
    GPUSHARE_ERROR_NO_ROOM = 10015,             /* requests do not fit beside those of others */
    GPUSHARE_ERROR_INTERRUPTED = 10016,         /* work was lost: see gpushare_stream_recover */
    GPUSHARE_ERROR_STATE_LOST = 10017           /* load the module, or record the event, again */
};
typedef enum gpushare_error gpushare_error;

#endif
