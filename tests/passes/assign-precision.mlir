// RUN: llmc-opt %s -split-input-file -llmc-assign-precision | FileCheck %s
// RUN: llmc-opt %s -split-input-file -llmc-assign-precision=keep-copies | FileCheck %s --check-prefix=KEEP

// Two contractions with an elementwise op between them: weights are rounded where they are read, the first product is
// stored in bf16 and read as f32, what goes into the second is rounded once.
// CHECK-LABEL: llmc.program @chain
// CHECK: %[[X:.*]] = llmc.cast %arg0 : (tensor<6x8xf32>) -> tensor<6x8xbf16>
// CHECK: %[[W:.*]] = llmc.cast %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xbf16>
// CHECK: %[[P:.*]] = llmc.matmul %[[X]], %[[W]] bias %{{.*}} : (tensor<6x8xbf16>, tensor<8x4xbf16>, tensor<4xf32>) -> tensor<6x4xbf16>
// CHECK: %[[WIDE:.*]] = llmc.cast %[[P]] : (tensor<6x4xbf16>) -> tensor<6x4xf32>
// CHECK: %[[T:.*]] = llmc.tanh %[[WIDE]] : tensor<6x4xf32>
// CHECK: llmc.cast %[[T]] : (tensor<6x4xf32>) -> tensor<6x4xbf16>
// CHECK: llmc.return %{{.*}} : tensor<6x5xf32>
llmc.variable @w "parameter" tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
llmc.variable @b "parameter" tensor<4xf32> = dense<1.0> : tensor<4xf32>
llmc.program @chain "graph" (%x: tensor<6x8xf32>, %v: tensor<4x5xf32>) -> tensor<6x5xf32> {
  %w = llmc.get @w : tensor<8x4xf32>
  %b = llmc.get @b : tensor<4xf32>
  %p = llmc.matmul %x, %w bias %b : (tensor<6x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  %t = llmc.tanh %p : tensor<6x4xf32>
  %y = llmc.matmul %t, %v : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  llmc.return %y : tensor<6x5xf32>
}

// -----

// A product that goes straight into the next contraction, through a reshape, is never cast.
// CHECK-LABEL: llmc.program @direct
// CHECK: %[[P:.*]] = llmc.matmul %{{.*}} -> tensor<6x4xbf16>
// CHECK-NEXT: %[[R:.*]] = llmc.reshape %[[P]] : (tensor<6x4xbf16>) -> tensor<3x8xbf16>
// CHECK-NOT: llmc.cast %[[R]]
// CHECK: llmc.matmul %[[R]]
llmc.program @direct "graph" (%x: tensor<6x8xf32>, %w: tensor<8x4xf32>, %v: tensor<8x2xf32>) -> tensor<3x2xf32> {
  %p = llmc.matmul %x, %w : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %r = llmc.reshape %p : (tensor<6x4xf32>) -> tensor<3x8xf32>
  %y = llmc.matmul %r, %v : (tensor<3x8xf32>, tensor<8x2xf32>) -> tensor<3x2xf32>
  llmc.return %y : tensor<3x2xf32>
}

// -----

// A running sum stays in f32, and so does what starts it; a sum over rows reads bf16 as f32.
// CHECK-LABEL: llmc.program @sums
// CHECK: %[[A:.*]] = llmc.matmul %{{.*}} {transposeLhs} : (tensor<6x8xbf16>, tensor<6x4xbf16>) -> tensor<8x4xf32>
// CHECK: llmc.matmul %{{.*}} init %[[A]] {transposeLhs} : (tensor<6x8xbf16>, tensor<6x4xbf16>, tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK: %[[P:.*]] = llmc.matmul %{{.*}} -> tensor<6x6xbf16>
// CHECK: %[[WIDE:.*]] = llmc.cast %[[P]] : (tensor<6x6xbf16>) -> tensor<6x6xf32>
// CHECK: llmc.reduce_sum %[[WIDE]]
llmc.program @sums "graph" (%x: tensor<6x8xf32>, %d: tensor<6x4xf32>, %w: tensor<8x6xf32>) -> (tensor<8x4xf32>, tensor<1x6xf32>) {
  %a = llmc.matmul %x, %d {transposeLhs} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %b = llmc.matmul %x, %d init %a {transposeLhs} : (tensor<6x8xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %p = llmc.matmul %x, %w : (tensor<6x8xf32>, tensor<8x6xf32>) -> tensor<6x6xf32>
  %s = llmc.reduce_sum %p {axes = array<i64: 0>} : (tensor<6x6xf32>) -> tensor<1x6xf32>
  llmc.return %b, %s : tensor<8x4xf32>, tensor<1x6xf32>
}

// -----

// Attention reads and writes bf16, its statistics stay f32. Norms compute in f32.
// CHECK-LABEL: llmc.program @attention
// CHECK: llmc.layer_norm %{{.*}} -> tensor<2x32x192xf32>
// CHECK: %[[OUT:.*]], %{{.*}} = llmc.attention(%{{.*}}) {{.*}} : (tensor<2x32x192xbf16>) -> (tensor<2x32x64xbf16>, tensor<2x4x32xf32>)
// CHECK: llmc.cast %[[OUT]] : (tensor<2x32x64xbf16>) -> tensor<2x32x64xf32>
llmc.program @attention "graph" (%x: tensor<2x32x192xf32>, %s: tensor<192xf32>) -> tensor<2x32x64xf32> {
  %n = llmc.layer_norm %x, %s {epsilon = 1.000000e-05 : f64} : (tensor<2x32x192xf32>, tensor<192xf32>) -> tensor<2x32x192xf32>
  %out, %lse = llmc.attention(%n) {heads = 4 : i64, kvHeads = 4 : i64, causal, window = 0 : i64, scale = 2.500000e-01 : f64} : (tensor<2x32x192xf32>) -> (tensor<2x32x64xf32>, tensor<2x4x32xf32>)
  llmc.return %out : tensor<2x32x64xf32>
}

// -----

// A parameter with two readers: rounded for each, so that no copy waits for the second; once where copies are kept.
// CHECK-LABEL: llmc.program @twice
// CHECK-COUNT-2: llmc.cast %{{.*}} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
// KEEP-LABEL: llmc.program @twice
// KEEP: %[[W:.*]] = llmc.cast %{{.*}} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
// KEEP-NOT: -> tensor<8x8xbf16>
// KEEP: llmc.matmul %{{.*}}, %[[W]]
// KEEP-NOT: -> tensor<8x8xbf16>
// KEEP: llmc.matmul %{{.*}}, %[[W]]
llmc.variable @w2 "parameter" tensor<8x8xf32> = dense<1.0> : tensor<8x8xf32>
llmc.program @twice "graph" (%x: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %w = llmc.get @w2 : tensor<8x8xf32>
  %p = llmc.matmul %x, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %y = llmc.matmul %p, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  llmc.return %y : tensor<6x8xf32>
}
