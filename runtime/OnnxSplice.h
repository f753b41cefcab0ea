// The way back to ONNX without ONNX: the plan keeps the source model's bytes without the payloads of trained weights,
// and for each of these the place where its TensorProto ends. Writing the trained model inserts the payloads there and
// corrects the lengths of the messages around them. Knows Protobuf's wire format and the few field numbers on the way
// to a TensorProto.
#pragma once

#include "runtime/Plan.h"

#include <functional>

namespace llmc {

/// Reads bytes [offset, offset + dst.size()) of a parameter's f32 values.
using ReadParameter = std::function<Status(const StateEntry &entry, uint64_t offset, std::span<std::byte> dst)>;

/// Above this, weights go to a file of their own: Protobuf ends at 2 GiB.
inline constexpr uint64_t kMaxInlineModelBytes = 1'500'000'000;

/// The file beside `path` that a model too large for one file keeps its weights in; "" where one holds all.
std::string trainedDataPath(const std::string &path, const Plan &plan, uint64_t modelBytes,
                            uint64_t maxInlineBytes = kMaxInlineModelBytes);

/// Writes the model with its parameters' present values, converted to each initializer's own type (rounding to nearest
/// even) and layout. A model of more than maxInlineBytes is written with external data, in trainedDataPath(). Both
/// files appear whole or not at all. Fails when a place of the splice table is not the end of a TensorProto.
Status writeTrainedModel(const std::string &path, const Plan &plan, std::span<const std::byte> model,
                         const ReadParameter &read, uint64_t maxInlineBytes = kMaxInlineModelBytes);

} // namespace llmc
