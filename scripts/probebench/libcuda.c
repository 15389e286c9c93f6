/* A driver library for machines without a GPU: it answers as one device of compute capability 9.0, keeps no memory,
   runs nothing, and writes every module image it is given to $TIC_STUB_CUDA_LOG/N.cubin where that is set. */
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
enum { OK = 0, FALSE_HANDLE = 1 };

#define NOTHING(name) CUresult name(void) { return OK; }
#define HANDLE(name) CUresult name(void **out) { *out = (void *)(uintptr_t)FALSE_HANDLE; return OK; }

static int modules;

static size_t image_size(const unsigned char *elf) {
    uint64_t shoff, phoff; uint16_t shentsize, shnum, phentsize, phnum;
    if (elf[0] != 0x7f || elf[1] != 'E') return 0;
    __builtin_memcpy(&phoff, elf + 32, 8); __builtin_memcpy(&shoff, elf + 40, 8);
    __builtin_memcpy(&phentsize, elf + 54, 2); __builtin_memcpy(&phnum, elf + 56, 2);
    __builtin_memcpy(&shentsize, elf + 58, 2); __builtin_memcpy(&shnum, elf + 60, 2);
    uint64_t a = shoff + (uint64_t)shentsize * shnum, b = phoff + (uint64_t)phentsize * phnum;
    return a > b ? a : b;
}

static void keep(const void *image) {
    const char *folder = getenv("TIC_STUB_CUDA_LOG");
    char path[4096];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%d.cubin", folder, modules);
    FILE *out = fopen(path, "wb");
    if (!out) return;
    fwrite(image, 1, image_size(image), out);
    fclose(out);
}

CUresult cuInit(unsigned flags) { (void)flags; return OK; }
CUresult cuDriverGetVersion(int *version) { *version = 13000; return OK; }
CUresult cuDeviceGetCount(int *count) { *count = 1; return OK; }
CUresult cuDeviceGet(int *device, int ordinal) { *device = ordinal; return OK; }
CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 10: *value = 32; break;          /* warp size */
    case 12: *value = 65536; break;       /* registers of a block */
    case 16: *value = 132; break;         /* multiprocessors */
    case 75: *value = 9; break;           /* compute capability, major */
    case 76: *value = 0; break;           /* compute capability, minor */
    case 81: *value = 233472; break;      /* shared memory of a multiprocessor */
    case 97: *value = 232448; break;      /* shared memory of a block, opted in */
    default: *value = 1;
    }
    return OK;
}
CUresult cuGetErrorString(int error, const char **text) { (void)error; *text = "stub"; return OK; }
CUresult cuGetErrorName(int error, const char **text) { (void)error; *text = "STUB"; return OK; }
HANDLE(cuCtxGetCurrent)
HANDLE(cuDevicePrimaryCtxRetain)
NOTHING(cuDevicePrimaryCtxRelease)
NOTHING(cuCtxSetCurrent)
NOTHING(cuCtxSynchronize)
NOTHING(cuCtxSetLimit)
CUresult cuCtxGetDevice(int *device) { *device = 0; return OK; }
CUresult cuCtxGetLimit(size_t *value, int limit) { (void)limit; *value = 1 << 20; return OK; }
CUresult cuModuleLoadData(void **module, const void *image) {
    *module = (void *)(uintptr_t)++modules;
    keep(image);
    return OK;
}
CUresult cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)name;
    *function = module;
    return OK;
}
NOTHING(cuModuleUnload)
CUresult cuFuncGetAttribute(int *value, int attribute, void *function) {
    (void)function;
    *value = attribute == 0 ? 1024 : attribute == 4 ? 32 : 0; /* threads of a block, registers */
    return OK;
}
NOTHING(cuFuncSetAttribute)
NOTHING(cuFuncSetCacheConfig)
NOTHING(cuLaunchKernel)
NOTHING(cuLaunchKernelEx)
CUresult cuOccupancyMaxActiveClusters(int *count, void *function, const void *config) {
    (void)function; (void)config;
    *count = 1;
    return OK;
}
CUresult cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer) {
    (void)attribute;
    *(unsigned long long *)value = pointer;
    return OK;
}
NOTHING(cuPointerGetAttributes)
CUresult cuStreamIsCapturing(void *stream, int *status) { (void)stream; *status = 0; return OK; }
NOTHING(cuStreamSynchronize)
NOTHING(cuTensorMapEncodeTiled)
NOTHING(cuTensorMapEncodeIm2col)
