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

// -----

// A sum over chunks of rows that waits for the op which goes on from it is one product of all rows.
// CHECK-LABEL: llmc.program @chunks
// CHECK-DAG: %[[D:.*]] = llmc.place %arg0, %arg1 {{.*}} : (tensor<32x64xbf16>, tensor<40x64xbf16>) -> tensor<72x64xbf16>
// CHECK-DAG: %[[X:.*]] = llmc.place %arg2, %arg3 {{.*}} : (tensor<32x96xbf16>, tensor<40x96xbf16>) -> tensor<72x96xbf16>
// CHECK-DAG: %[[L:.*]] = llmc.pack %[[D]] {transpose} : (tensor<72x64xbf16>) -> tensor<64x72xbf16>
// CHECK-DAG: %[[R:.*]] = llmc.pack %[[X]] : (tensor<72x96xbf16>) -> tensor<72x96xbf16, #llmc.packed<blocked16x64x2>>
// CHECK: %[[S:.*]] = llmc.matmul %[[L]], %[[R]] : (tensor<64x72xbf16>, tensor<72x96xbf16, #llmc.packed<blocked16x64x2>>) -> tensor<64x96xf32>
// CHECK-NOT: llmc.matmul
// CHECK: llmc.embedding_grad %arg4, %arg5 init %[[S]]
llmc.program @chunks "graph" (%d0: tensor<32x64xbf16>, %d1: tensor<40x64xbf16>, %x0: tensor<32x96xbf16>, %x1: tensor<40x96xbf16>, %i: tensor<5xi64>, %g: tensor<5x96xf32>)
    -> (tensor<64x96xf32>) {
  %0 = llmc.matmul %d0, %x0 {transposeLhs} : (tensor<32x64xbf16>, tensor<32x96xbf16>) -> tensor<64x96xf32>
  // expected-remark@below {{applied: one product for the sum of 2}}
  %1 = llmc.matmul %d1, %x1 init %0 {transposeLhs} : (tensor<40x64xbf16>, tensor<40x96xbf16>, tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = llmc.embedding_grad %i, %g init %1 : (tensor<5xi64>, tensor<5x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  llmc.return %2 : tensor<64x96xf32>
}

// -----

// A sum that nobody waits for is made chunk by chunk, so that the chunks need not live together.
// CHECK-LABEL: llmc.program @at_once
// CHECK-NOT: llmc.place
llmc.program @at_once "graph" (%d0: tensor<32x64xbf16>, %d1: tensor<40x64xbf16>, %x0: tensor<32x96xbf16>, %x1: tensor<40x96xbf16>) -> (tensor<64x96xf32>) {
  // expected-remark@below {{applied: reads rhs in blocks}}
  %0 = llmc.matmul %d0, %x0 {transposeLhs} : (tensor<32x64xbf16>, tensor<32x96xbf16>) -> tensor<64x96xf32>
  // expected-remark@below {{applied: reads rhs in blocks}}
  %1 = llmc.matmul %d1, %x1 init %0 {transposeLhs} : (tensor<40x64xbf16>, tensor<40x96xbf16>, tensor<64x96xf32>) -> tensor<64x96xf32>
  llmc.return %1 : tensor<64x96xf32>
}
