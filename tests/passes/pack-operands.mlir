// RUN: llmc-opt %s -split-input-file -llmc-pack-operands -verify-diagnostics | FileCheck %s

// Weights are rounded and blocked from the parameter itself; the gradient's lhs is transposed, its rhs blocked.
// CHECK-LABEL: llmc.program @step
// CHECK: %[[W:.*]] = llmc.get @w
// CHECK-NOT: llmc.cast %[[W]]
// CHECK: %[[P:.*]] = llmc.pack %[[W]] {transpose} : (tensor<96x64xf32>) -> tensor<64x96xbf16, #llmc.packed<blocked16x64x2>>
// CHECK: llmc.matmul %arg0, %[[P]] : (tensor<40x64xbf16>, tensor<64x96xbf16, #llmc.packed<blocked16x64x2>>) -> tensor<40x96xbf16>
// CHECK: %[[X:.*]] = llmc.pack %arg1 : (tensor<40x64xbf16>) -> tensor<40x64xbf16, #llmc.packed<blocked16x64x2>>
// CHECK: %[[D:.*]] = llmc.pack %arg2 {transpose} : (tensor<40x96xbf16>) -> tensor<96x40xbf16>
// CHECK: llmc.matmul %[[D]], %[[X]] : (tensor<96x40xbf16>, tensor<40x64xbf16, #llmc.packed<blocked16x64x2>>) -> tensor<96x64xf32>
llmc.variable @w "parameter" tensor<96x64xf32> = dense<1.0> : tensor<96x64xf32>
llmc.program @step "graph" (%x: tensor<40x64xbf16>, %x2: tensor<40x64xbf16>, %d: tensor<40x96xbf16>) -> (tensor<40x96xbf16>, tensor<96x64xf32>) {
  %w = llmc.get @w : tensor<96x64xf32>
  %c = llmc.cast %w : (tensor<96x64xf32>) -> tensor<96x64xbf16>
  // expected-remark@below {{applied: reads rhs in blocks}}
  %y = llmc.matmul %x, %c {transposeRhs} : (tensor<40x64xbf16>, tensor<96x64xbf16>) -> tensor<40x96xbf16>
  // expected-remark@below {{applied: reads rhs in blocks}}
  %g = llmc.matmul %d, %x2 {transposeLhs} : (tensor<40x96xbf16>, tensor<40x64xbf16>) -> tensor<96x64xf32>
  llmc.return %y, %g : tensor<40x96xbf16>, tensor<96x64xf32>
}

// -----

// Two readers of one matrix in one layout share the copy.
// CHECK-LABEL: llmc.program @shared
// CHECK: llmc.pack %
// CHECK-NOT: llmc.pack %
llmc.program @shared "graph" (%x: tensor<40x64xbf16>, %z: tensor<40x64xbf16>, %w: tensor<64x96xbf16>) -> (tensor<40x96xbf16>, tensor<40x96xbf16>) {
  // expected-remark@below {{applied: reads rhs in blocks}}
  %a = llmc.matmul %x, %w : (tensor<40x64xbf16>, tensor<64x96xbf16>) -> tensor<40x96xbf16>
  // expected-remark@below {{applied: reads rhs in blocks}}
  %b = llmc.matmul %z, %w : (tensor<40x64xbf16>, tensor<64x96xbf16>) -> tensor<40x96xbf16>
  llmc.return %a, %b : tensor<40x96xbf16>, tensor<40x96xbf16>
}

// -----

// CHECK-LABEL: llmc.program @declined
// CHECK-NOT: llmc.pack %
llmc.program @declined "graph" (%x: tensor<40x64xf32>, %w: tensor<64x96xf32>, %s: tensor<4x64xbf16>, %v: tensor<64x96xbf16>, %b: tensor<2x40x64xbf16>, %c: tensor<2x64x96xbf16>)
    -> (tensor<40x96xf32>, tensor<4x96xbf16>, tensor<2x40x96xbf16>) {
  // expected-remark@below {{declined: packing the operands: f32 gains nothing from it}}
  %0 = llmc.matmul %x, %w : (tensor<40x64xf32>, tensor<64x96xf32>) -> tensor<40x96xf32>
  // expected-remark@below {{declined: packing the operands: it is too small}}
  %1 = llmc.matmul %s, %v : (tensor<4x64xbf16>, tensor<64x96xbf16>) -> tensor<4x96xbf16>
  // expected-remark@below {{declined: packing the operands: it is a batch of products}}
  %2 = llmc.matmul %b, %c : (tensor<2x40x64xbf16>, tensor<2x64x96xbf16>) -> tensor<2x40x96xbf16>
  llmc.return %0, %1, %2 : tensor<40x96xf32>, tensor<4x96xbf16>, tensor<2x40x96xbf16>
}
