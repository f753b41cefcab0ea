// Cuts the rows of a large linear + cross-entropy into chunks. Each chunk's logits become their gradient before the
// next chunk's are computed, so the (rows, vocabulary) logits never exist as a whole.
#include "passes/Passes.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_CHUNKLOSS
#include "passes/Passes.h.inc"

static int64_t dim(Value value, int64_t d) { return cast<RankedTensorType>(value.getType()).getDimSize(d); }

namespace {

/// How a reader of the logits' gradient takes chunks of its rows.
enum class Reads {
  rows,     ///< it makes as many rows
  sum,      ///< it sums over rows, and can start from the sum of those before
  asSummand ///< it sums over rows, and the sums are added
};

/// logits = product; loss, lse = crossEntropy(logits); gradient(logits, lse), read by `readers`.
struct Head {
  MatMulOp product;
  SoftmaxCrossEntropyOp crossEntropy;
  SoftmaxCrossEntropyGradOp gradient;
  SmallVector<std::pair<Operation *, Reads>> readers;
};

class Chunker {
public:
  Chunker(const Head &head, int64_t chunkRows, int64_t storedBytes)
      : head(head), chunkRows(chunkRows), storedBytes(storedBytes) {}

  void run() {
    Value logits = head.product.getResult();
    int64_t rows = dim(logits, 0);
    for (int64_t begin = 0; begin < rows; begin += chunkRows)
      chunks.push_back({begin, std::min(chunkRows, rows - begin), Value()});
    buildGradients();
    for (auto [reader, reads] : head.readers) {
      reader->getResult(0).replaceAllUsesWith(reads == Reads::rows  ? buildRows(cast<MatMulOp>(reader))
                                              : reads == Reads::sum ? buildSum(cast<MatMulOp>(reader))
                                                                    : buildSummands(cast<ReduceSumOp>(reader)));
      reader->erase();
    }
    head.gradient.erase();
    head.crossEntropy.erase();
    head.product.erase();
  }

  size_t numChunks() const { return chunks.size(); }

private:
  struct Chunk {
    int64_t begin, size;
    Value gradient;
  };

  static Value slice(OpBuilder &builder, Value value, const Chunk &chunk) {
    SmallVector<int64_t> sizes(cast<RankedTensorType>(value.getType()).getShape());
    SmallVector<int64_t> starts(sizes.size(), 0), steps(sizes.size(), 1);
    starts[0] = chunk.begin, sizes[0] = chunk.size;
    return builder.create<SliceOp>(value.getLoc(), value, starts, sizes, steps);
  }

  /// The chunks' logits, their part of the loss and their gradient, one after the other.
  void buildGradients() {
    OpBuilder builder(head.gradient);
    MatMulOp product = head.product;
    SoftmaxCrossEntropyOp loss = head.crossEntropy;
    Value sum;
    for (Chunk &chunk : chunks) {
      auto type = RankedTensorType::get({chunk.size, dim(product.getResult(), 1)},
                                        product.getResult().getType().getElementType());
      Value logits =
          builder.create<MatMulOp>(product.getLoc(), type, slice(builder, product.getLhs(), chunk), product.getRhs(),
                                   product.getBias(), Value(), false, product.getTransposeRhs());
      Value labels = slice(builder, loss.getLabels(), chunk);
      auto lseType = RankedTensorType::get({chunk.size, 1}, loss.getLse().getType().getElementType());
      auto part =
          builder.create<SoftmaxCrossEntropyOp>(loss.getLoc(), TypeRange{loss.getLoss().getType(), lseType}, logits,
                                                labels, loss.getScale(), /*mean=*/false, loss.getIgnoreIndex());
      chunk.gradient =
          builder.create<SoftmaxCrossEntropyGradOp>(head.gradient.getLoc(), type, head.gradient.getDLoss(), logits,
                                                    labels, part.getLse(), /*mean=*/false, loss.getIgnoreIndex());
      sum = sum ? builder.create<AddOp>(loss.getLoc(), sum, part.getLoss()).getResult() : part.getLoss();
    }
    loss.getLoss().replaceAllUsesWith(sum);
  }

  Value buildRows(MatMulOp op) {
    OpBuilder builder(op);
    SmallVector<Value> parts;
    SmallVector<int64_t> starts, steps(2 * chunks.size(), 1);
    RankedTensorType whole = op.getResult().getType();
    for (const Chunk &chunk : chunks) {
      auto type = RankedTensorType::get({chunk.size, whole.getDimSize(1)}, whole.getElementType());
      parts.push_back(builder.create<MatMulOp>(op.getLoc(), type, chunk.gradient, op.getRhs(), op.getBias(), Value(),
                                               false, op.getTransposeRhs()));
      llvm::append_range(starts, ArrayRef<int64_t>{chunk.begin, 0});
    }
    return builder.create<PlaceOp>(op.getLoc(), whole, parts, builder.getDenseI64ArrayAttr(starts),
                                   builder.getDenseI64ArrayAttr(steps), builder.getF64FloatAttr(0));
  }

  /// Each product starts from the one before.
  Value buildSum(MatMulOp op) {
    OpBuilder builder(placeOfSum(op));
    Value sum = op.getInit();
    for (const Chunk &chunk : chunks) {
      auto partOf = [&](Value factor) {
        return factor == head.gradient.getDLogits() ? chunk.gradient : slice(builder, factor, chunk);
      };
      sum = builder.create<MatMulOp>(op.getLoc(), op.getResult().getType(), partOf(op.getLhs()), partOf(op.getRhs()),
                                     sum ? Value() : op.getBias(), sum, op.getTransposeLhs(), op.getTransposeRhs());
    }
    return sum;
  }

  /// A sum that another op goes on from waits for that op, where the gradient is smaller than it.
  Operation *placeOfSum(MatMulOp op) {
    if (!op.getResult().hasOneUse() || op.getInit())
      return op;
    Operation *user = *op.getResult().user_begin();
    auto kernel = dyn_cast<KernelOpInterface>(user);
    bool goesOn = kernel && kernel.getTiedOperand(0) == int(op.getResult().use_begin()->getOperandNumber());
    int64_t gradientBytes = head.product.getResult().getType().getNumElements() * storedBytes;
    return goesOn && gradientBytes < tensorBytes(op.getResult().getType()) ? user : op;
  }

  Value buildSummands(ReduceSumOp op) {
    OpBuilder builder(op);
    Value sum;
    for (const Chunk &chunk : chunks) {
      Value part = builder.create<ReduceSumOp>(op.getLoc(), chunk.gradient, op.getAxesAttr());
      sum = sum ? builder.create<AddOp>(op.getLoc(), sum, part).getResult() : part;
    }
    return sum;
  }

  Head head;
  int64_t chunkRows, storedBytes;
  SmallVector<Chunk> chunks;
};

/// How `user` takes the gradient by chunks of rows; nothing when it needs it whole.
std::optional<Reads> readsOf(Operation *user, Value gradient) {
  if (auto sum = dyn_cast<ReduceSumOp>(user))
    return sum.getAxes() == ArrayRef<int64_t>(0) ? std::optional(Reads::asSummand) : std::nullopt;
  auto op = dyn_cast<MatMulOp>(user);
  if (!op || op.getLhs() == op.getRhs())
    return std::nullopt;
  if (op.getLhs() == gradient && !op.getTransposeLhs())
    return op.getInit() ? std::nullopt : std::optional(Reads::rows);
  bool sumsOverRows = op.getTransposeLhs() && !op.getTransposeRhs();
  return sumsOverRows ? std::optional(Reads::sum) : std::nullopt;
}

struct ChunkLoss : impl::ChunkLossBase<ChunkLoss> {
  using ChunkLossBase::ChunkLossBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      for (auto gradient : llvm::make_early_inc_range(program.getBody().front().getOps<SoftmaxCrossEntropyGradOp>())) {
        Head head;
        head.gradient = gradient;
        if (std::string reason = find(head); !reason.empty()) {
          remarkOn(gradient) << "declined: computing the loss in chunks: " << reason;
          continue;
        }
        int64_t rows = dim(gradient.getDLogits(), 0);
        int64_t numChunks = (tensorBytes(gradient.getDLogits().getType()) + chunkBytes - 1) / chunkBytes;
        numChunks = std::min<int64_t>(numChunks, maxChunks);
        int64_t chunkRows = std::max<int64_t>(kRowGrain, (rows / numChunks + kRowGrain - 1) / kRowGrain * kRowGrain);
        Location loc = gradient.getLoc();
        Chunker chunker(head, chunkRows, storedBytes);
        chunker.run();
        remarkAt(loc, program) << "applied: the loss in " << chunker.numChunks() << " chunks of " << chunkRows
                               << " rows";
      }
  }

private:
  /// Rows of a chunk are a multiple of this: what a contraction's registers hold.
  static constexpr int64_t kRowGrain = 32;

  /// The ops of the head; why it is none, or stays whole.
  std::string find(Head &head) {
    Value logits = head.gradient.getLogits();
    if (tensorBytes(cast<RankedTensorType>(logits.getType())) <= chunkBytes)
      return "the logits are small";
    head.product = logits.getDefiningOp<MatMulOp>();
    head.crossEntropy = head.gradient.getLse().getDefiningOp<SoftmaxCrossEntropyOp>();
    if (!head.product || !head.crossEntropy || dim(logits, 0) < 2 * kRowGrain)
      return "the logits are no product of rows";
    if (head.product.getResult().getType().getRank() != 2 || head.product.getTransposeLhs() || head.product.getInit())
      return "the logits are no product of rows";
    if (head.crossEntropy.getMean() || head.gradient.getMean())
      return "its mean needs all rows";
    if (head.crossEntropy.getLogits() != logits || head.crossEntropy.getLabels() != head.gradient.getLabels() ||
        !llvm::hasSingleElement(head.crossEntropy.getLse().getUses()))
      return "loss and gradient differ in what they read";
    for (Operation *user : logits.getUsers())
      if (user != head.crossEntropy && user != head.gradient)
        return (user->getName().getStringRef() + " reads the logits whole").str();
    for (Operation *user : head.crossEntropy.getLoss().getUsers())
      if (user->isBeforeInBlock(head.gradient))
        return "the loss is read before its gradient";
    for (Operation *user : head.gradient.getDLogits().getUsers()) {
      std::optional<Reads> reads = readsOf(user, head.gradient.getDLogits());
      if (!reads)
        return (user->getName().getStringRef() + " reads the gradient whole").str();
      head.readers.push_back({user, *reads});
    }
    // In the block's order: rows first, so that the sums may wait.
    llvm::sort(head.readers, [](auto &a, auto &b) { return a.first->isBeforeInBlock(b.first); });
    return "";
  }
};

} // namespace
} // namespace llmc
