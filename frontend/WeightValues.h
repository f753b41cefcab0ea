// The values of a weight as they lie in the file or in memory: f32, perhaps of hundreds of millions of elements, read
// without a copy.
#pragma once

#include "ir/Dialect.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

#include <cstring>

namespace llmc {

class WeightValues {
public:
  explicit WeightValues(VariableOp variable) {
    auto resource = mlir::cast<mlir::DenseResourceElementsAttr>(variable.getValueAttr());
    data = resource.getRawHandle().getBlob()->getData();
  }
  int64_t size() const { return int64_t(data.size() / sizeof(float)); }
  float operator[](int64_t i) const {
    float value;
    std::memcpy(&value, data.data() + i * sizeof(float), sizeof(float));
    return value;
  }

private:
  llvm::ArrayRef<char> data;
};

} // namespace llmc
