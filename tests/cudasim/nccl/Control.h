/* What a test may ask of the simulated NCCL beside its own entry points; found by dlsym in the same library. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { cudasimNcclNone, cudasimNcclHang, cudasimNcclDie } CudasimNcclFault;

/* A planted fault in this process: at its collective of this number (from 0) of any communicator it never arrives, or
   it is killed. */
void cudasimNcclPlant(CudasimNcclFault fault, uint64_t collective);

#ifdef __cplusplus
}
#endif
