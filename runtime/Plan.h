// A plan: one training step compiled, as plain structs. The compiler's backend fills them, writePlan (PlanWriter.h)
// writes them, PlanFile reads and checks them, a Session runs them. The file: a fixed header, a Protobuf message with
// everything below but the payloads, then page-aligned raw sections (weights, code, the source model's splice), each
// with its checksum.
#pragma once

#include "runtime/Status.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace llmc {

/// The type of stored elements. boolean is one byte, 0 or 1.
enum class ElementType : uint8_t { f32 = 0, bf16 = 1, f16 = 2, f64 = 3, i64 = 4, i32 = 5, i8 = 6, u8 = 7, boolean = 8 };

/// Bytes of one element.
uint64_t elementBytes(ElementType type);
/// "f32", "bf16", ...
const char *elementTypeName(ElementType type);

/// A kind of kernel and its arguments; see Kernels.def.
enum class KernelKind : uint8_t {
#define LLMC_KERNEL(Kind, name, operands, ints, floats) Kind,
#include "runtime/Kernels.def"
};

/// What Kernels.def says of a kind.
struct KernelInfo {
  KernelKind kind;
  const char *name;
  const char *operands; ///< space-separated; "x?" may be absent, "x..." repeats
  const char *ints;     ///< space-separated names, in order
  const char *floats;
};
/// The row of a kind.
const KernelInfo &kernelInfo(KernelKind kind);
/// All rows, in the order of KernelKind.
std::span<const KernelInfo> allKernels();

/// The memory a value lies in. Offsets count bytes from the space's base, which is 4096-byte aligned.
enum class Space : uint8_t {
  none = 0,      ///< an absent operand
  state = 1,     ///< parameters, optimizer state, constants, inputs, scalars: keeps its content between programs
  gradients = 2, ///< gradients kept over micro-batches: only allocated when a program that names it is used
  arena = 3,     ///< values of one run of a program; each program has its own layout
};

struct BufferRef {
  Space space = Space::none;
  uint64_t offset = 0; ///< bytes, a multiple of 64
  uint64_t bytes = 0;  ///< dense size of the value
  bool operator==(const BufferRef &) const = default;
};

/// What an entry of the state space is for.
enum class StateKind : uint8_t {
  parameter = 0, ///< a weight that trains; initial value in the weights section
  constant = 1,  ///< a weight that does not train (mask, rotary table): initial value in the weights section
  moment = 2,    ///< optimizer state, zero at the start; `name` is "<parameter>/m" or "/v"
  input = 3,     ///< an input of the graph, written by the session before each run
  scalar = 4,    ///< one f32 hyperparameter, written by the session before each run; see kScalarNames
  output = 5,    ///< a result that outlives the program: "loss", "grad_norm", outputs of the graph. What only the
                 ///< forward program computes may lie in its arena: it is there until the next program runs
};

/// Hyperparameters by name, as the session computes them for each step. biasCorrection = 1 - beta^step and
/// one_minus_beta are computed in double, then rounded: from a rounded beta near 1 they would come out wrong in the
/// fifth digit. clip is 0 when clipping is off. loss_scale is 1 / the number of labels that count, over all
/// micro-batches of the step (1 / number of micro-batches for a graph without labels). seed_lo and seed_hi hold the
/// 32-bit halves of the dropout seed, as raw i32 bits; step the 1-based number of the micro-batch since the start (the
/// step's own number without accumulation), so that micro-batches draw different masks, as raw i32 bits.
inline constexpr std::array<const char *, 14> kScalarNames = {"lr",
                                                              "beta1",
                                                              "beta2",
                                                              "eps",
                                                              "weight_decay",
                                                              "clip",
                                                              "bias_correction1",
                                                              "bias_correction2",
                                                              "loss_scale",
                                                              "seed_lo",
                                                              "seed_hi",
                                                              "step",
                                                              "one_minus_beta1",
                                                              "one_minus_beta2"};

/// Where the rows of a piece lie in the memory of the larger value that it is a part of: counts of elements, for the
/// piece's gradient too.
struct PieceRows {
  uint64_t length = 0; ///< elements of a row, which follow each other; 0: the value is no piece
  uint64_t stride = 0; ///< from one row's first element to the next's
  bool operator==(const PieceRows &) const = default;
};

/// One named value of the state space.
struct StateEntry {
  std::string name; ///< a parameter's name as the ledger prints it; an input's or output's name in the graph
  StateKind kind = StateKind::parameter;
  ElementType type = ElementType::f32;
  std::vector<int64_t> shape;
  BufferRef buffer;        ///< of a piece: where its first row starts, at any element, and the bytes of all its rows
  PieceRows rows;          ///< parameters and moments that the step keeps merged with others (Q, K and V)
  bool decays = false;     ///< parameters: weight decay applies
  uint64_t fileOffset = 0; ///< parameters and constants: first byte in the weights section (row-major, `type`)
  BufferRef gradient;      ///< parameters: its gradient in Space::gradients, when the plan has an accumulate program;
                           ///< of a piece, in rows as `buffer`
  std::string role; ///< inputs: "tokens", "labels", "labels_unshifted" or "" ; outputs: "loss", "logits", "grad_norm"
                    ///< or ""
  int64_t vocabulary = 0;     ///< inputs with role tokens or labels: valid ids are [0, vocabulary)
  int64_t ignoreIndex = -100; ///< inputs with role labels: the label that does not count
};

/// One kernel launch.
struct Launch {
  KernelKind kind = KernelKind::Zero;
  std::string name;                ///< where it comes from: the ONNX nodes' names, for profiles and errors
  std::vector<BufferRef> operands; ///< in Kernels.def's order
  std::vector<int64_t> ints;       ///< in Kernels.def's order
  std::vector<double> floats;      ///< in Kernels.def's order
  int32_t entry = -1;              ///< its code among the target's entries; -1: the device has the code
  uint32_t stream = 0;
  double flops = 0; ///< for reports
  double bytes = 0; ///< memory traffic if every operand is touched once, for reports
};

/// Which program of a plan: see design.md, "Programs of a plan".
enum class ProgramKind : uint8_t {
  stepFused = 0,
  step = 1,
  accumulate = 2,
  update = 3,
  forward = 4,
  stepFusedRanks = 5, ///< as those without "Ranks", with collectives: loss and gradients are summed over the ranks
  stepRanks = 6,
  updateRanks = 7,
};
inline constexpr size_t kNumProgramKinds = 8;
/// "step-fused", ...
const char *programKindName(ProgramKind kind);

/// A value placed in the arena or state, for reports and the independent memory checker. Times are launch indices.
struct ValueRange {
  std::string name;
  std::string category; ///< "activations", "gradients", "workspace"
  BufferRef buffer;
  uint32_t firstLaunch = 0; ///< the launch that defines it
  uint32_t lastLaunch = 0;  ///< the last launch that reads or writes it
};

struct Program {
  ProgramKind kind = ProgramKind::forward;
  std::vector<Launch> launches; ///< in execution order
  uint64_t arenaBytes = 0;
  uint64_t arenaLowerBoundBytes = 0; ///< the largest sum over time of dense live sizes
  std::vector<ValueRange> values;
};

/// One entry of the code table: a kernel in the code section. On GPUs its parameters are the 64-bit addresses of the
/// launch's operands that are present, in order; kinds that can fail on data (Embedding) get one more, of the device's
/// 64-bit status word: 0, or 1 + the flat position of a bad id.
struct CodeEntry {
  std::string name;
  uint64_t offset = 0;      ///< CPUs: bytes from the code blob's start; 0 for PTX
  std::string symbol = {};  ///< GPUs: the name of its .entry in the PTX; "" on CPUs, as all below are 0
  uint32_t gridX = 0;       ///< blocks
  uint32_t blockX = 0;      ///< threads of a block
  uint32_t sharedBytes = 0; ///< dynamic shared memory of a block
  bool operator==(const CodeEntry &) const = default;
};

/// Everything for one target and ISA level.
struct TargetPrograms {
  std::string target; ///< "cpu" or "cuda"
  std::string isa;    ///< "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16"; "sm_80" for PTX
  std::vector<Program> programs;
  std::vector<CodeEntry> entries;
  /// In the code section, page-aligned. CPUs: a flat blob of machine code; GPUs: one PTX text that ends with a 0 byte.
  uint64_t codeOffset = 0;
  uint64_t codeBytes = 0;
};

/// Where a trained parameter goes back into the source model. The stored model holds its TensorProto with name, dims
/// and data_type but no payload (neither raw_data, typed data, external_data nor data_location); see
/// runtime/OnnxSplice.h.
struct SpliceEntry {
  std::string parameter;               ///< name of a StateEntry
  ElementType type = ElementType::f32; ///< the initializer's element type in the file
  std::string transform;               ///< "" or "transpose": the initializer is the parameter's transpose
  uint64_t modelOffset =
      0; ///< where in the stored model the TensorProto's bytes end; the payload's fields are appended there
  uint64_t bytes = 0; ///< payload bytes: elements x element size of `type`
};

/// The whole plan but its big payloads, which stay mapped in the file (loaded plan) or in buffers of the caller (plan
/// being built).
struct Plan {
  std::string producer;  ///< "llmc 0.1.0"
  std::string modelName; ///< the file name of the ONNX model, without its folder
  std::string precision; ///< "fp32", "tf32", "bf16"
  std::string optimizer; ///< "adamw" or "sgd"
  bool lossIsTokenMean =
      false; ///< the loss is a sum over labels times the scalar loss_scale: labels of all micro-batches count together
  int64_t batch = 0, sequence = 0, vocabulary = 0; ///< of the tokens input, 0 when there is none
  double flopsPerToken = 0;
  uint64_t stateBytes = 0;
  uint64_t gradientBytes = 0;
  std::vector<StateEntry> state;
  std::vector<TargetPrograms> targets;
  std::vector<SpliceEntry> splice;
};

} // namespace llmc
