// Between what a buffer holds and what kernels compute with, for lanes of any shape: bf16 is 16 bits of an f32, a
// boolean is one byte.
#pragma once

#include "ir/Lanes.h"

namespace llmc {

/// The integer or float type that is loaded and stored for elements of type `storage`: i16 for bf16, i8 for i1.
mlir::Type memoryType(mlir::Type storage);
/// Bytes of an element of type `storage`.
unsigned storageBytes(mlir::Type storage);
/// Loaded lanes (of memoryType) as numbers of compute type.
Lanes fromStorage(Lanes loaded, mlir::Type storage);
/// Numbers as they are stored (memoryType); bf16 rounds to nearest even, by the target's own conversion where it has
/// one.
Lanes toStorage(Lanes lanes, mlir::Type storage, bool hasBf16);

} // namespace llmc
