// The loss of a classifier over positions.
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

/// scores (N, C, d…) and labels (N, d…) as rows: (N*d…, C) and (N*d…).
static LogicalResult importSoftmaxCrossEntropy(OnnxNode &node) {
  Value scores = node.input(0), labels = node.input(1);
  if (!scores || !labels)
    return failure();
  if (node.has(2))
    return node.error("weights of classes are not supported");
  node.refuse(1, "is the log-probabilities of a SoftmaxCrossEntropyLoss, which are not stored");
  std::string reduction = node.attribute("reduction", "mean");
  if (reduction != "mean" && reduction != "sum")
    return node.error("reduction '" + reduction + "' is not supported, only 'mean' and 'sum'");
  if (!isFloat(scores) || isFloat(labels) || rankOf(scores) < 2)
    return node.error("expects float scores (N, C, ...) and integer labels");
  SmallVector<int64_t> toLast{0}, expected{shapeOf(scores)[0]};
  for (int64_t d = 2; d < rankOf(scores); ++d) {
    toLast.push_back(d);
    expected.push_back(shapeOf(scores)[d]);
  }
  toLast.push_back(1);
  if (shapeOf(labels) != ArrayRef<int64_t>(expected))
    return node.error("scores " + shapeText(shapeOf(scores)) + " need labels " + shapeText(expected) + ", found " +
                      shapeText(shapeOf(labels)));
  int64_t classes = shapeOf(scores)[1], rows = productOf(expected);
  Value logits = node.reshape(node.transpose(scores, toLast), {rows, classes});
  // Without the attribute no label is ignored: the smallest int32, which every type of labels holds, is no label.
  int64_t ignored = node.attribute("ignore_index", int64_t(std::numeric_limits<int32_t>::min()));
  Value ids = node.cast(node.reshape(labels, {rows}), node.i64());
  if (!logits || !ids)
    return failure();
  auto loss = node.builder.create<SoftmaxCrossEntropyOp>(
      node.loc, TypeRange{RankedTensorType::get({}, node.f32()), RankedTensorType::get({rows, 1}, node.f32())}, logits,
      ids, /*scale=*/Value(), reduction == "mean", uint64_t(ignored));
  return node.set(loss.getLoss());
}

static constexpr OnnxOp kOps[] = {{"SoftmaxCrossEntropyLoss", 12, kNewestOpset, importSoftmaxCrossEntropy}};

ArrayRef<OnnxOp> onnxLossOps() { return kOps; }

} // namespace llmc
