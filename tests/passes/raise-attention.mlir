// RUN: llmc-opt %s -split-input-file -llmc-raise-attention -canonicalize -verify-diagnostics | FileCheck %s
// How each way of writing it is read, and that values stay: RaiseTest.cpp.

// q, k and v are slices of one tensor; the mask hides what is later, then scores are divided.
// CHECK-LABEL: llmc.program @packed
// CHECK-NEXT: %[[OUT:.*]], %{{.*}} = llmc.attention(%arg0) {causal, heads = 2 : i64, kvHeads = 2 : i64, scale = 5.000000e-01 : f64, window = 0 : i64}
// CHECK-SAME: (tensor<1x3x24xf32>) -> (tensor<1x3x8xf32>, tensor<1x2x3xf32>)
// CHECK-NEXT: llmc.return %[[OUT]]
llmc.program @packed "graph" (%qkv: tensor<1x3x24xf32>) -> tensor<1x3x8xf32> {
  %q0 = llmc.slice %qkv {starts = array<i64: 0, 0, 0>, sizes = array<i64: 1, 3, 8>, steps = array<i64: 1, 1, 1>} : (tensor<1x3x24xf32>) -> tensor<1x3x8xf32>
  %k0 = llmc.slice %qkv {starts = array<i64: 0, 0, 8>, sizes = array<i64: 1, 3, 8>, steps = array<i64: 1, 1, 1>} : (tensor<1x3x24xf32>) -> tensor<1x3x8xf32>
  %v0 = llmc.slice %qkv {starts = array<i64: 0, 0, 16>, sizes = array<i64: 1, 3, 8>, steps = array<i64: 1, 1, 1>} : (tensor<1x3x24xf32>) -> tensor<1x3x8xf32>
  %q1 = llmc.reshape %q0 : (tensor<1x3x8xf32>) -> tensor<1x3x2x4xf32>
  %k1 = llmc.reshape %k0 : (tensor<1x3x8xf32>) -> tensor<1x3x2x4xf32>
  %v1 = llmc.reshape %v0 : (tensor<1x3x8xf32>) -> tensor<1x3x2x4xf32>
  %q = llmc.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x3x2x4xf32>) -> tensor<1x2x3x4xf32>
  %k = llmc.transpose %k1 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x3x2x4xf32>) -> tensor<1x2x4x3xf32>
  %v = llmc.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x3x2x4xf32>) -> tensor<1x2x3x4xf32>
  %scores = llmc.matmul %q, %k : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32>
  %later = llmc.constant dense<[[false, true, true], [false, false, true], [false, false, false]]> : tensor<3x3xi1>
  %hidden = llmc.constant dense<0xFF800000> : tensor<f32>
  %masked = llmc.select %later, %hidden, %scores : (tensor<3x3xi1>, tensor<f32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %two = llmc.constant dense<2.000000e+00> : tensor<f32>
  %scaled = llmc.div %masked, %two : (tensor<1x2x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xf32>
  %p = llmc.softmax %scaled : tensor<1x2x3x3xf32>
  // expected-remark@below {{raised attention: 2 heads of 4, causal, packed}}
  %heads = llmc.matmul %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %tokens = llmc.transpose %heads {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x2x3x4xf32>) -> tensor<1x3x2x4xf32>
  %out = llmc.reshape %tokens : (tensor<1x3x2x4xf32>) -> tensor<1x3x8xf32>
  llmc.return %out : tensor<1x3x8xf32>
}

// -----

// A mask that only the batch knows stays a mask.
// CHECK-LABEL: llmc.program @mask
// CHECK: %[[MASK:.*]] = llmc.select %{{.*}} : (tensor<1x1x1x3xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x1x3xf32>
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}}) mask %[[MASK]] {heads = 1 : i64
llmc.program @mask "graph" (%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x4xf32>, %visible: tensor<3xi1>) -> tensor<1x1x3x4xf32> {
  %scores = llmc.matmul %q, %k {transposeRhs} : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>) -> tensor<1x1x3x3xf32>
  %hidden = llmc.constant dense<-3.40282347E+38> : tensor<f32>
  %masked = llmc.select %visible, %scores, %hidden : (tensor<3xi1>, tensor<1x1x3x3xf32>, tensor<f32>) -> tensor<1x1x3x3xf32>
  %p = llmc.softmax %masked : tensor<1x1x3x3xf32>
  // expected-remark@below {{raised attention: 1 heads of 4, with a mask}}
  %out = llmc.matmul %p, %v : (tensor<1x1x3x3xf32>, tensor<1x1x3x4xf32>) -> tensor<1x1x3x4xf32>
  llmc.return %out : tensor<1x1x3x4xf32>
}

// -----

// Probabilities that are dropped at random are trained as they stand.
// CHECK-LABEL: llmc.program @dropout
// CHECK: llmc.softmax
// CHECK: llmc.dropout
llmc.program @dropout "graph" (%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %lo = llmc.scalar "seed_lo" : tensor<i32>
  %hi = llmc.scalar "seed_hi" : tensor<i32>
  %step = llmc.scalar "step" : tensor<i32>
  %scores = llmc.matmul %q, %k {transposeRhs} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %p = llmc.softmax %scores : tensor<2x3x3xf32>
  %kept = llmc.dropout %p, %lo, %hi, %step {node = 0 : i64, rate = 1.000000e-01 : f64} : (tensor<2x3x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x3xf32>
  // expected-remark@below {{declined: no attention, attention dropout}}
  %out = llmc.matmul %kept, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  llmc.return %out : tensor<2x3x4xf32>
}

// -----

// No gradient reaches attention's mask, so a bias that trains is none.
// CHECK-LABEL: llmc.program @trained_bias
// CHECK-NOT: llmc.attention
// CHECK: llmc.return
llmc.variable @bias "parameter" tensor<3x3xf32> = dense<0.000000e+00> : tensor<3x3xf32>
llmc.program @trained_bias "graph" (%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %bias = llmc.get @bias : tensor<3x3xf32>
  %scores = llmc.matmul %q, %k {transposeRhs} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %biased = llmc.add %scores, %bias : (tensor<2x3x3xf32>, tensor<3x3xf32>) -> tensor<2x3x3xf32>
  %p = llmc.softmax %biased : tensor<2x3x3xf32>
  // expected-remark@below {{declined: no attention, the mask trains: it depends on bias}}
  %out = llmc.matmul %p, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  llmc.return %out : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: llmc.program @soft_cap
// CHECK-NOT: llmc.attention
// CHECK: llmc.return
llmc.program @soft_cap "graph" (%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %scores = llmc.matmul %q, %k {transposeRhs} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %capped = llmc.tanh %scores : tensor<2x3x3xf32>
  %p = llmc.softmax %capped : tensor<2x3x3xf32>
  // expected-remark@below {{declined: no attention, the softmax is not of a product}}
  %out = llmc.matmul %p, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  llmc.return %out : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: llmc.program @plain_softmax
// CHECK-NOT: llmc.attention
// CHECK: llmc.return
llmc.program @plain_softmax "graph" (%q: tensor<3x4xf32>, %k: tensor<3x4xf32>) -> tensor<3x3xf32> {
  %scores = llmc.matmul %q, %k {transposeRhs} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>
  // expected-remark@below {{declined: no attention, the probabilities multiply no values}}
  %p = llmc.softmax %scores : tensor<3x3xf32>
  llmc.return %p : tensor<3x3xf32>
}
