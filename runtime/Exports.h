// Tensors of a session as safetensors files.
#pragma once

#include "runtime/Session.h"

namespace llmc {

/// The parameters under their names, f32.
Status exportWeights(const Session &session, const std::string &path);
/// The gradients that Session::gradients() left, under the parameters' names, f32.
Status exportGradients(const Session &session, const std::string &path);
/// What Session::forward() computed, under the outputs' names.
Status exportOutputs(const Session &session, const std::string &path);
/// The source model with the trained weights: see OnnxSplice.h.
Status exportModel(const Session &session, std::span<const std::byte> model, const std::string &path);

} // namespace llmc
