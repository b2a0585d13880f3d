/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/base/runtime_error.h"

static _Thread_local cudart_error last;

/* X(name, value): an error for which the driver has the same number. */
#define DRIVER_ERRORS(X)                                                                           \
    X(ErrorInvalidValue, 1)                                                                        \
    X(ErrorMemoryAllocation, 2)                                                                    \
    X(ErrorInitializationError, 3)                                                                 \
    X(ErrorCudartUnloading, 4)                                                                     \
    X(ErrorProfilerDisabled, 5)                                                                    \
    X(ErrorStubLibrary, 34)                                                                        \
    X(ErrorCallRequiresNewerDriver, 36)                                                            \
    X(ErrorDevicesUnavailable, 46)                                                                 \
    X(ErrorNoDevice, 100)                                                                          \
    X(ErrorInvalidDevice, 101)                                                                     \
    X(ErrorDeviceNotLicensed, 102)                                                                 \
    X(ErrorInvalidKernelImage, 200)                                                                \
    X(ErrorDeviceUninitialized, 201)                                                               \
    X(ErrorMapBufferObjectFailed, 205)                                                             \
    X(ErrorUnmapBufferObjectFailed, 206)                                                           \
    X(ErrorAlreadyMapped, 208)                                                                     \
    X(ErrorNoKernelImageForDevice, 209)                                                            \
    X(ErrorNotMapped, 211)                                                                         \
    X(ErrorECCUncorrectable, 214)                                                                  \
    X(ErrorUnsupportedLimit, 215)                                                                  \
    X(ErrorDeviceAlreadyInUse, 216)                                                                \
    X(ErrorPeerAccessUnsupported, 217)                                                             \
    X(ErrorInvalidPtx, 218)                                                                        \
    X(ErrorNvlinkUncorrectable, 220)                                                               \
    X(ErrorJitCompilerNotFound, 221)                                                               \
    X(ErrorUnsupportedPtxVersion, 222)                                                             \
    X(ErrorJitCompilationDisabled, 223)                                                            \
    X(ErrorUnsupportedExecAffinity, 224)                                                           \
    X(ErrorContained, 226)                                                                         \
    X(ErrorInvalidSource, 300)                                                                     \
    X(ErrorFileNotFound, 301)                                                                      \
    X(ErrorSharedObjectSymbolNotFound, 302)                                                        \
    X(ErrorSharedObjectInitFailed, 303)                                                            \
    X(ErrorOperatingSystem, 304)                                                                   \
    X(ErrorInvalidResourceHandle, 400)                                                             \
    X(ErrorIllegalState, 401)                                                                      \
    X(ErrorSymbolNotFound, 500)                                                                    \
    X(ErrorNotReady, 600)                                                                          \
    X(ErrorIllegalAddress, 700)                                                                    \
    X(ErrorLaunchOutOfResources, 701)                                                              \
    X(ErrorLaunchTimeout, 702)                                                                     \
    X(ErrorPeerAccessAlreadyEnabled, 704)                                                          \
    X(ErrorPeerAccessNotEnabled, 705)                                                              \
    X(ErrorSetOnActiveProcess, 708)                                                                \
    X(ErrorContextIsDestroyed, 709)                                                                \
    X(ErrorAssert, 710)                                                                            \
    X(ErrorTooManyPeers, 711)                                                                      \
    X(ErrorHostMemoryAlreadyRegistered, 712)                                                       \
    X(ErrorHostMemoryNotRegistered, 713)                                                           \
    X(ErrorHardwareStackError, 714)                                                                \
    X(ErrorIllegalInstruction, 715)                                                                \
    X(ErrorMisalignedAddress, 716)                                                                 \
    X(ErrorInvalidAddressSpace, 717)                                                               \
    X(ErrorInvalidPc, 718)                                                                         \
    X(ErrorLaunchFailure, 719)                                                                     \
    X(ErrorCooperativeLaunchTooLarge, 720)                                                         \
    X(ErrorTensorMemoryLeak, 721)                                                                  \
    X(ErrorNotPermitted, 800)                                                                      \
    X(ErrorNotSupported, 801)                                                                      \
    X(ErrorSystemNotReady, 802)                                                                    \
    X(ErrorSystemDriverMismatch, 803)                                                              \
    X(ErrorCompatNotSupportedOnDevice, 804)                                                        \
    X(ErrorMpsConnectionFailed, 805)                                                               \
    X(ErrorMpsRpcFailure, 806)                                                                     \
    X(ErrorMpsServerNotReady, 807)                                                                 \
    X(ErrorMpsMaxClientsReached, 808)                                                              \
    X(ErrorMpsMaxConnectionsReached, 809)                                                          \
    X(ErrorMpsClientTerminated, 810)                                                               \
    X(ErrorStreamCaptureUnsupported, 900)                                                          \
    X(ErrorTimeout, 909)                                                                           \
    X(ErrorExternalDevice, 911)                                                                    \
    X(ErrorInvalidClusterSize, 912)                                                                \
    X(ErrorInvalidResourceType, 914)                                                               \
    X(ErrorInvalidResourceConfiguration, 915)                                                      \
    X(ErrorUnknown, 999)

/* X(name, value, sentence): an error that the runtime alone has. */
#define RUNTIME_ERRORS(X)                                                                          \
    X(Success, 0, "no error")                                                                      \
    X(ErrorInvalidConfiguration, 9,                                                                \
      "the launch asks for a grid or block that the device does not have")                         \
    X(ErrorInvalidPitchValue, 12, "the pitch is outside the range the call accepts")               \
    X(ErrorInvalidSymbol, 13, "no variable was registered under that address")                     \
    X(ErrorInvalidHostPointer, 16, "the host pointer is not valid")                                \
    X(ErrorInvalidDevicePointer, 17, "the device pointer is not valid")                            \
    X(ErrorInvalidTexture, 18, "the texture is not valid")                                         \
    X(ErrorInvalidTextureBinding, 19, "the texture is not bound")                                  \
    X(ErrorInvalidChannelDescriptor, 20, "the channel descriptor is not valid")                    \
    X(ErrorInvalidMemcpyDirection, 21, "the direction of the copy is none that the call knows")    \
    X(ErrorInvalidFilterSetting, 26, "the texture cannot be filtered linearly")                    \
    X(ErrorInvalidNormSetting, 27, "the texture cannot be read as normalised numbers")             \
    X(ErrorInsufficientDriver, 35, "no CUDA driver was found, or it is older than this runtime")   \
    X(ErrorInvalidSurface, 37, "the surface is not valid")                                         \
    X(ErrorIncompatibleDriverContext, 49, "the current context is not one the runtime can use")    \
    X(ErrorMissingConfiguration, 52, "a kernel was launched without a configuration")              \
    X(ErrorInvalidDeviceFunction, 98,                                                              \
      "no kernel was registered under that address, or no image has it")                           \
    X(ErrorSoftwareValidityNotEstablished, 103,                                                    \
      "the runtime could not establish that the driver is genuine")                                \
    X(ErrorStartupFailure, 127, "the runtime could not start")                                     \
    X(ErrorStreamCaptureInvalidated, 901, "the capture was invalidated by an earlier error")       \
    X(ErrorStreamCaptureMerge, 902, "the call would join two captures")                            \
    X(ErrorStreamCaptureUnmatched, 903, "the capture was not begun in this stream")                \
    X(ErrorStreamCaptureUnjoined, 904, "the capture has streams that were not joined")             \
    X(ErrorStreamCaptureIsolation, 905, "the call would let a capture depend on work outside it")  \
    X(ErrorStreamCaptureImplicit, 906,                                                             \
      "the call would depend on the legacy stream during a capture")                               \
    X(ErrorCapturedEvent, 907, "the event was recorded in a capture")                              \
    X(ErrorStreamCaptureWrongThread, 908, "the capture was begun by another thread")               \
    X(ErrorGraphExecUpdateFailure, 910, "the graph could not be updated")

cudart_error runtime_error_keep(cudart_error error)
{
    last = error;
    return error;
}

cudart_error runtime_error_last(void)
{
    return last;
}

cudart_error runtime_error_take(void)
{
    const cudart_error taken = last;

    if (!cuda_driver_error_is_sticky((cuda_result)taken))
        last = CUDART_OK;
    return taken;
}

const char *runtime_error_name(cudart_error error)
{
    switch (error) {
#define X(name, value, ...)                                                                        \
    case value:                                                                                    \
        return "cuda" #name;
        DRIVER_ERRORS(X)
        RUNTIME_ERRORS(X)
#undef X
    default:
        return "unrecognized error code";
    }
}

const char *runtime_error_sentence(cudart_error error)
{
    switch (error) {
#define X(name, value, sentence)                                                                   \
    case value:                                                                                    \
        return sentence;
        RUNTIME_ERRORS(X)
#undef X
    default:
        return cuda_driver_error_name((cuda_result)error)
                   ? cuda_driver_error_sentence((cuda_result)error)
                   : "unrecognized error code";
    }
}
