// Attributes that passes set: facts about a value, never side tables.
#ifndef LLMC_IR_ATTRIBUTES_TD
#define LLMC_IR_ATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "ir/Dialect.td"

// The memory spaces of a plan (runtime/Plan.h: Space).
def Llmc_MemorySpace
    : I32EnumAttr<"MemorySpace", "the memory a value lies in",
                  [I32EnumAttrCase<"state", 1>, I32EnumAttrCase<"gradients", 2>, I32EnumAttrCase<"arena", 3>]> {
  let cppNamespace = "::llmc";
  let genSpecializedAttr = 0;
}

def Llmc_BufferAttr : AttrDef<Llmc_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "where a value lies: space, offset from the space's base, dense size, both in bytes";
  let description = [{
    ```mlir
    #llmc.buffer<arena, 128, 96>
    ```
  }];
  let parameters = (ins EnumParameter<Llmc_MemorySpace>:$space, "int64_t":$offset, "int64_t":$bytes);
  let assemblyFormat = "`<` $space `,` $offset `,` $bytes `>`";
  let extraClassDeclaration = [{
    int64_t getEnd() const { return getOffset() + getBytes(); }
    /// Whether both have a byte in common.
    bool overlaps(BufferAttr other) const {
      return getSpace() == other.getSpace() && getOffset() < other.getEnd() && other.getOffset() < getEnd();
    }
  }];
}

// How a packed matrix lies in memory (runtime/Kernels.def: rhsLayout).
def Llmc_PackedLayout
    : I32EnumAttr<"PackedLayout", "a blocked layout of a contraction's rhs",
                  [I32EnumAttrCase<"blocked16x64", 1>, I32EnumAttrCase<"blocked16x64x2", 2>]> {
  let cppNamespace = "::llmc";
  let genSpecializedAttr = 0;
}

def Llmc_PackedAttr : AttrDef<Llmc_Dialect, "Packed"> {
  let mnemonic = "packed";
  let summary = "the encoding of a (K, N) matrix that lies in blocks, zero padded to whole ones";
  let description = [{
    blocked16x64 is [N/64][K/16][16][64], blocked16x64x2 is [N/64][K/32][16][64][2]: what oneDNN calls BA16a64b and BA16a64b2a.

    ```mlir
    tensor<768x3072xbf16, #llmc.packed<blocked16x64x2>>
    ```
  }];
  let parameters = (ins EnumParameter<Llmc_PackedLayout>:$layout);
  let assemblyFormat = "`<` $layout `>`";
  let extraClassDeclaration = [{
    /// Elements that a (k, n) matrix takes, padding included.
    int64_t numElements(int64_t k, int64_t n) const;
  }];
}

#endif
