// A program as a graph of steps that must keep an order: launches and sets, with the edges of values, of variables (the
// old value is read before the new one is written), of operands that a launch overwrites, and of collectives.
#pragma once

#include "passes/Memory.h"

#include "llvm/ADT/BitVector.h"

namespace llmc {

class LaunchGraph {
public:
  /// One launch, set, or the return at the end.
  struct Node {
    mlir::Operation *op = nullptr;
    llvm::SmallVector<unsigned> before, after; ///< nodes that must come before and after this one
    llvm::SmallVector<unsigned> touches;       ///< values that are read or written
    llvm::SmallVector<std::pair<unsigned, unsigned>>
        sharable;                ///< (read, written): the result may take the operand's place when that dies
    bool isUpdate = false;       ///< makes new values of variables and little else
    bool isUrgent = false;       ///< a collective's start, and a wait that nothing may come before
    bool isDeferredWait = false; ///< a wait that other launches may come before
  };
  /// A launch's result, or the memory that a chain of tied results shares.
  struct Value {
    int64_t bytes = 0; ///< 0 for what lies in a variable, input or output: it takes no room in the arena
    llvm::SmallVector<unsigned> users; ///< nodes that read or overwrite it, the writers among them
  };

  /// Fails where a variable is set twice.
  static mlir::FailureOr<LaunchGraph> build(ProgramOp program);

  llvm::ArrayRef<Node> getNodes() const { return nodes; }
  llvm::ArrayRef<Value> getValues() const { return values; }
  /// The node of a launch, set or return.
  unsigned nodeOfOp(mlir::Operation *op) const { return nodeOf.at(op); }
  /// The value whose memory `root` is; nothing for what the program does not compute.
  std::optional<unsigned> valueOf(mlir::Value root) const;

private:
  void addNodes(ProgramOp program);
  void addValues();
  void addSharable(Node &node);
  void addHazards(llvm::MapVector<mlir::StringAttr, VariableUses> &variables);
  void addReadersFirst(mlir::Value root, unsigned writer);
  void addCollectives();
  void addEdge(unsigned before, unsigned after);
  bool reaches(unsigned from, unsigned to) const;

  std::vector<Node> nodes;
  std::vector<Value> values;
  llvm::DenseMap<mlir::Operation *, unsigned> nodeOf;
  llvm::DenseMap<mlir::Value, unsigned> indexOf; ///< of the first version of each value's memory
};

/// The arena's bytes while nodes run one after the other: what each adds, and what dies with it.
class LiveBytes {
public:
  explicit LiveBytes(const LaunchGraph &graph);
  /// Bytes alive after `node` less those before it.
  int64_t growth(unsigned node) const;
  void run(unsigned node);
  int64_t getPeak() const { return peak; }

private:
  const LaunchGraph &graph;
  llvm::SmallVector<unsigned> numLeft; ///< users of each value that have not run
  llvm::BitVector isAlive;
  int64_t live = 0, peak = 0;
};

} // namespace llmc
