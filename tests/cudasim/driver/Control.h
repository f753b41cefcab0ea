/* What a test may ask of the simulated driver beside the driver's own entry points; found by dlsym in the same library.
   Plain C, so that both sides agree whatever they are compiled with. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint64_t seed;          /* of the order in which streams and warps run */
  uint64_t memoryBytes;   /* of the device */
  int numDevices;         /* 0: cuInit finds none */
  int computeCapability;  /* 80 for sm_80 */
  int driverVersion;      /* 13000 for 13.0 */
  uint64_t dropEventWait; /* a planted fault: the n-th cuStreamWaitEvent, from 1, does nothing; 0: none */
} CudasimConfig;

/* Where a test starts processes and cannot call: CUDASIM_SEED and CUDASIM_DEVICES set those two for a process that does
   not reset its simulator. */

/* Forgets everything (handles, memory, faults) and starts again like this. */
void cudasimReset(const CudasimConfig *config);

/* The first fault since the reset in words, or "". */
const char *cudasimLastFault(void);

typedef struct {
  uint64_t numLaunches; /* kernels that have run */
  uint64_t numCopies;
  uint64_t numGraphLaunches;
  uint64_t laneInstructions;
} CudasimCounts;
CudasimCounts cudasimCounts(void);

typedef struct {
  uint64_t begin;
  uint64_t end;
} CudasimRange;

typedef struct {
  const char *name;       /* the kernel, or the copy's entry point */
  uint64_t number;        /* in the order of submission, from 0; a node of a graph counts at every launch */
  const void *parameters; /* a kernel's, as laid out by its PTX; null for copies */
  size_t parameterBytes;
} CudasimOperation;

/* Which device memory holds live values while an operation runs: fills `covered` (memory outside is not looked at) and
   up to `capacity` sorted ranges, and gives their number; SIZE_MAX: nothing is checked for this one. */
typedef size_t (*CudasimLiveRanges)(void *user, const CudasimOperation *operation, CudasimRange *covered,
                                    CudasimRange *live, size_t capacity);
void cudasimSetLiveRanges(CudasimLiveRanges ranges, void *user);

#ifdef __cplusplus
}
#endif
