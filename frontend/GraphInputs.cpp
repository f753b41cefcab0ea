// Two rounds: --batch and --seq give sizes to the names (or places) of the first two dimensions of integer inputs,
// which carry ids; then every dimension is looked up, so that a name bound through one input holds for all.
#include "frontend/GraphInputs.h"

#include "frontend/OnnxError.h"
#include "frontend/OnnxTensor.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace llmc {

namespace {
class Binder {
public:
  Binder(MLIRContext *context, const ModelFile &file, const ImportOptions &options)
      : context(context), file(file), options(options) {}

  FailureOr<GraphInputs> bind() {
    collectInputs();
    if (failed(checkTypes()) || failed(bindNames()) || failed(bindPlaces()))
      return failure();
    std::string open;
    for (const onnx::ValueInfoProto *input : inputs) {
      FailureOr<SmallVector<int64_t>> shape = shapeOf(*input, open);
      if (failed(shape))
        return failure();
      result.names.push_back(input->name());
      result.types.push_back(
          RankedTensorType::get(*shape, graphElementType(context, input->type().tensor_type().elem_type())));
    }
    if (!open.empty())
      return LogicalResult(fileError(context, file.path) << "dimensions are open: " << open);
    return std::move(result);
  }

private:
  using Dimension = onnx::TensorShapeProto_Dimension;

  void collectInputs() {
    llvm::StringSet<> weights;
    for (const onnx::TensorProto &tensor : file.model.graph().initializer())
      weights.insert(tensor.name());
    for (const onnx::ValueInfoProto &input : file.model.graph().input())
      if (!weights.contains(input.name()))
        inputs.push_back(&input);
  }

  LogicalResult checkTypes() {
    for (const onnx::ValueInfoProto *input : inputs) {
      if (!input->type().has_tensor_type())
        return fileError(context, file.path) << "input " << inQuotes(input->name()) << " is no tensor";
      const onnx::TypeProto_Tensor &type = input->type().tensor_type();
      if (!graphElementType(context, type.elem_type()))
        return fileError(context, file.path) << "input " << inQuotes(input->name()) << " has element type "
                                             << onnxTypeName(type.elem_type()) << ", which is not supported";
    }
    return success();
  }

  static bool carriesIds(const onnx::ValueInfoProto &input) {
    int type = input.type().tensor_type().elem_type();
    return type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32;
  }

  /// --dim NAME=N.
  LogicalResult bindNames() {
    llvm::StringSet<> known;
    std::string list;
    for (const onnx::ValueInfoProto *input : inputs)
      for (const Dimension &dim : input->type().tensor_type().shape().dim())
        if (!dim.dim_param().empty() && known.insert(dim.dim_param()).second)
          list += (list.empty() ? "" : ", ") + inQuotes(dim.dim_param());
    for (const auto &[name, size] : options.dims) {
      if (!known.contains(name))
        return fileError(context, file.path)
               << "--dim " << name << ": no input has a dimension of this name; there are "
               << (list.empty() ? "none" : list);
      result.dims[name] = size;
    }
    return success();
  }

  /// --batch and --seq: dimensions 0 and 1 of inputs that carry ids.
  LogicalResult bindPlaces() {
    const std::optional<int64_t> flags[] = {options.batch, options.seq};
    for (auto [place, size] : llvm::enumerate(flags)) {
      bool found = !size;
      for (const onnx::ValueInfoProto *input : inputs) {
        const onnx::TensorShapeProto &shape = input->type().tensor_type().shape();
        if (!size || !carriesIds(*input) || shape.dim_size() <= int(place))
          continue;
        found = true;
        const std::string &name = shape.dim(int(place)).dim_param();
        if (name.empty())
          continue;
        auto [bound, isNew] = result.dims.try_emplace(name, *size);
        if (!isNew && bound->second != *size)
          return fileError(context, file.path) << "dimension " << inQuotes(name) << " is given twice, as "
                                               << bound->second << " and by " << kFlags[place] << " as " << *size;
      }
      if (!found)
        return fileError(context, file.path)
               << kFlags[place] << " " << *size << ": no integer input has such a dimension";
    }
    return success();
  }

  /// The size of one dimension; nothing when it is open.
  std::optional<int64_t> sizeOf(const onnx::ValueInfoProto &input, int place) {
    const Dimension &dim = input.type().tensor_type().shape().dim(place);
    if (dim.has_dim_value())
      return dim.dim_value();
    if (auto bound = result.dims.find(dim.dim_param()); !dim.dim_param().empty() && bound != result.dims.end())
      return bound->second;
    if (dim.dim_param().empty() && carriesIds(input) && place < 2)
      return place == 0 ? options.batch : options.seq;
    return std::nullopt;
  }

  FailureOr<SmallVector<int64_t>> shapeOf(const onnx::ValueInfoProto &input, std::string &open) {
    SmallVector<int64_t> shape;
    int64_t count = 1;
    for (int place = 0; place < input.type().tensor_type().shape().dim_size(); ++place) {
      std::optional<int64_t> size = sizeOf(input, place);
      const std::string &name = input.type().tensor_type().shape().dim(place).dim_param();
      if (!size) {
        open += (open.empty() ? "" : "; ") + describeOpen(input, place, name);
        continue;
      }
      if (*size < 1 || *size > kMostElements / count)
        return LogicalResult(fileError(context, file.path)
                             << "input " << inQuotes(input.name()) << ": dimension " << place << " of size " << *size
                             << " leaves nothing to train, or too much");
      count *= *size;
      shape.push_back(*size);
    }
    return shape;
  }

  static std::string describeOpen(const onnx::ValueInfoProto &input, int place, const std::string &name) {
    std::string text = "dimension " + std::to_string(place) + (name.empty() ? "" : " (" + inQuotes(name) + ")") +
                       " of input " + inQuotes(input.name());
    std::string flag = carriesIds(input) && place < 2 ? kFlags[place] + std::string(" N") : "";
    if (!name.empty())
      flag += (flag.empty() ? "--dim " : " or --dim ") + name + "=N";
    return text + (flag.empty() ? " (no flag can give it: name it in the model)" : ": give " + flag);
  }

  static constexpr const char *kFlags[] = {"--batch", "--seq"};
  MLIRContext *context;
  const ModelFile &file;
  const ImportOptions &options;
  std::vector<const onnx::ValueInfoProto *> inputs;
  GraphInputs result;
};
} // namespace

FailureOr<GraphInputs> bindInputs(MLIRContext *context, const ModelFile &file, const ImportOptions &options) {
  return Binder(context, file, options).bind();
}

} // namespace llmc
