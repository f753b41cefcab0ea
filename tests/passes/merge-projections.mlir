// RUN: llmc-opt %s -split-input-file -llmc-merge-projections -verify-diagnostics | FileCheck %s

// Keys stand first in the file: the pieces are in the order that attention reads. Two key heads for four.
// CHECK: llmc.variable @attn.key.weight "part" tensor<6x4xf32> = dense<1.000000e+00> : tensor<6x4xf32> {decays, llmc.piece = {axis = 1 : i64, of = @"attn.{query,key,value}.weight", start = 8 : i64}}
// CHECK-NEXT: llmc.variable @"attn.{query,key,value}.weight" "parameter" tensor<6x16xf32> {decays}
// CHECK-NEXT: llmc.variable @attn.query.weight "part" {{.*}} {{.*}}llmc.piece = {axis = 1 : i64, of = @{{.*}}, start = 0 : i64}}
// CHECK-NEXT: llmc.variable @attn.value.weight "part" {{.*}} {{.*}}llmc.piece = {axis = 1 : i64, of = @{{.*}}, start = 12 : i64}}
// CHECK-NEXT: llmc.variable @attn.key.bias "part" {{.*}} {llmc.piece = {axis = 0 : i64, of = @"attn.{query,key,value}.bias", start = 8 : i64}}
// CHECK-NEXT: llmc.variable @"attn.{query,key,value}.bias" "parameter" tensor<16xf32>{{$}}
// CHECK-LABEL: llmc.program @graph
// CHECK-NEXT: %[[W:.*]] = llmc.get @"attn.{query,key,value}.weight"
// CHECK-NEXT: %[[B:.*]] = llmc.get @"attn.{query,key,value}.bias"
// CHECK-NEXT: %[[Y:.*]] = llmc.matmul %arg0, %[[W]] : (tensor<10x6xf32>, tensor<6x16xf32>) -> tensor<10x16xf32>
// CHECK-NEXT: %[[SUM:.*]] = llmc.add %[[Y]], %[[B]]
// CHECK-NEXT: %[[QKV:.*]] = llmc.reshape %[[SUM]] : (tensor<10x16xf32>) -> tensor<2x5x16xf32>
// CHECK-NEXT: %[[OUT:.*]], %{{.*}} = llmc.attention(%[[QKV]]) {causal, heads = 4 : i64, kvHeads = 2 : i64, scale = 5.000000e-01 : f64, window = 3 : i64}
// CHECK-NEXT: llmc.return %[[OUT]]
llmc.variable @attn.key.weight "parameter" tensor<6x4xf32> = dense<1.0> : tensor<6x4xf32> {decays}
llmc.variable @attn.query.weight "parameter" tensor<6x8xf32> = dense<2.0> : tensor<6x8xf32> {decays}
llmc.variable @attn.value.weight "parameter" tensor<6x4xf32> = dense<3.0> : tensor<6x4xf32> {decays}
llmc.variable @attn.key.bias "parameter" tensor<4xf32> = dense<1.0> : tensor<4xf32>
llmc.variable @attn.query.bias "parameter" tensor<8xf32> = dense<2.0> : tensor<8xf32>
llmc.variable @attn.value.bias "parameter" tensor<4xf32> = dense<3.0> : tensor<4xf32>
llmc.program @graph "graph" (%x: tensor<10x6xf32>) -> tensor<2x5x8xf32> {
  %wk = llmc.get @attn.key.weight : tensor<6x4xf32>
  %wq = llmc.get @attn.query.weight : tensor<6x8xf32>
  %wv = llmc.get @attn.value.weight : tensor<6x4xf32>
  %bk = llmc.get @attn.key.bias : tensor<4xf32>
  %bq = llmc.get @attn.query.bias : tensor<8xf32>
  %bv = llmc.get @attn.value.bias : tensor<4xf32>
  %k0 = llmc.matmul %x, %wk : (tensor<10x6xf32>, tensor<6x4xf32>) -> tensor<10x4xf32>
  %k1 = llmc.add %k0, %bk : (tensor<10x4xf32>, tensor<4xf32>) -> tensor<10x4xf32>
  %k = llmc.reshape %k1 : (tensor<10x4xf32>) -> tensor<2x5x4xf32>
  %q0 = llmc.matmul %x, %wq : (tensor<10x6xf32>, tensor<6x8xf32>) -> tensor<10x8xf32>
  // The bias may come first, and behind a reshape.
  %q1 = llmc.reshape %q0 : (tensor<10x8xf32>) -> tensor<2x5x8xf32>
  %q = llmc.add %bq, %q1 : (tensor<8xf32>, tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %v0 = llmc.matmul %x, %wv : (tensor<10x6xf32>, tensor<6x4xf32>) -> tensor<10x4xf32>
  %v1 = llmc.add %v0, %bv : (tensor<10x4xf32>, tensor<4xf32>) -> tensor<10x4xf32>
  %v = llmc.reshape %v1 : (tensor<10x4xf32>) -> tensor<2x5x4xf32>
  // expected-remark@below {{merged 3 contractions of one input into one with 'tensor<6x16xf32>'}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 4 : i64, kvHeads = 2 : i64, causal, window = 3 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x8xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> (tensor<2x5x8xf32>, tensor<2x4x5xf32>)
  llmc.return %out : tensor<2x5x8xf32>
}

// -----

// Weights stored (out, in) are pieces along their rows; the product adds the biases.
// CHECK: llmc.variable @"w{q,k,v}" "parameter" tensor<12x6xf32>
// CHECK: llmc.variable @wq "part" {{.*}} {{.*}}llmc.piece = {axis = 0 : i64, of = @{{.*}}, start = 0 : i64}}
// CHECK: llmc.variable @wk "part" {{.*}} {{.*}}llmc.piece = {axis = 0 : i64, of = @{{.*}}, start = 4 : i64}}
// CHECK: llmc.variable @wv "part" {{.*}} {{.*}}llmc.piece = {axis = 0 : i64, of = @{{.*}}, start = 8 : i64}}
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.matmul %arg0, %{{.*}} bias %{{.*}} {transposeRhs} : (tensor<10x6xf32>, tensor<12x6xf32>, tensor<12xf32>) -> tensor<10x12xf32>
// CHECK-NEXT: llmc.reshape
// CHECK-NEXT: llmc.attention
llmc.variable @wq "parameter" tensor<4x6xf32> = dense<1.0> : tensor<4x6xf32>
llmc.variable @wk "parameter" tensor<4x6xf32> = dense<1.0> : tensor<4x6xf32>
llmc.variable @wv "parameter" tensor<4x6xf32> = dense<1.0> : tensor<4x6xf32>
llmc.variable @bq "parameter" tensor<4xf32> = dense<1.0> : tensor<4xf32>
llmc.variable @bk "parameter" tensor<4xf32> = dense<1.0> : tensor<4xf32>
llmc.variable @bv "parameter" tensor<4xf32> = dense<1.0> : tensor<4xf32>
llmc.program @graph "graph" (%x: tensor<10x6xf32>) -> tensor<2x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x6xf32>
  %wk = llmc.get @wk : tensor<4x6xf32>
  %wv = llmc.get @wv : tensor<4x6xf32>
  %bq = llmc.get @bq : tensor<4xf32>
  %bk = llmc.get @bk : tensor<4xf32>
  %bv = llmc.get @bv : tensor<4xf32>
  %q0 = llmc.matmul %x, %wq bias %bq {transposeRhs} : (tensor<10x6xf32>, tensor<4x6xf32>, tensor<4xf32>) -> tensor<10x4xf32>
  %k0 = llmc.matmul %x, %wk bias %bk {transposeRhs} : (tensor<10x6xf32>, tensor<4x6xf32>, tensor<4xf32>) -> tensor<10x4xf32>
  %v0 = llmc.matmul %x, %wv bias %bv {transposeRhs} : (tensor<10x6xf32>, tensor<4x6xf32>, tensor<4xf32>) -> tensor<10x4xf32>
  %q = llmc.reshape %q0 : (tensor<10x4xf32>) -> tensor<2x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<10x4xf32>) -> tensor<2x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<10x4xf32>) -> tensor<2x5x4xf32>
  // expected-remark@below {{merged 3 contractions of one input}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 2 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<2x5x4xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> (tensor<2x5x4xf32>, tensor<2x2x5xf32>)
  llmc.return %out : tensor<2x5x4xf32>
}

// -----

// The keys' weight decays and the others do not.
// CHECK-LABEL: llmc.program @graph
// CHECK-COUNT-3: llmc.matmul
llmc.variable @wq "parameter" tensor<6x4xf32> = dense<1.0> : tensor<6x4xf32>
llmc.variable @wk "parameter" tensor<6x4xf32> = dense<1.0> : tensor<6x4xf32> {decays}
llmc.variable @wv "parameter" tensor<6x4xf32> = dense<1.0> : tensor<6x4xf32>
llmc.program @graph "graph" (%x: tensor<10x6xf32>) -> tensor<2x5x4xf32> {
  %wq = llmc.get @wq : tensor<6x4xf32>
  %wk = llmc.get @wk : tensor<6x4xf32>
  %wv = llmc.get @wv : tensor<6x4xf32>
  // expected-remark@below {{declined: 3 contractions share an input, but no attention reads their results side by side}}
  %q0 = llmc.matmul %x, %wq : (tensor<10x6xf32>, tensor<6x4xf32>) -> tensor<10x4xf32>
  %k0 = llmc.matmul %x, %wk : (tensor<10x6xf32>, tensor<6x4xf32>) -> tensor<10x4xf32>
  %v0 = llmc.matmul %x, %wv : (tensor<10x6xf32>, tensor<6x4xf32>) -> tensor<10x4xf32>
  %q = llmc.reshape %q0 : (tensor<10x4xf32>) -> tensor<2x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<10x4xf32>) -> tensor<2x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<10x4xf32>) -> tensor<2x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, weight decay applies to some of them only}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 2 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<2x5x4xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> (tensor<2x5x4xf32>, tensor<2x2x5xf32>)
  llmc.return %out : tensor<2x5x4xf32>
}

// -----

// The queries are the keys.
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}})
llmc.variable @wq "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wk "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wv "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.program @graph "graph" (%x: tensor<5x4xf32>) -> tensor<1x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x4xf32>
  %wk = llmc.get @wk : tensor<4x4xf32>
  %wv = llmc.get @wv : tensor<4x4xf32>
  // expected-remark@below {{declined: 2 contractions share an input}}
  %q0 = llmc.matmul %x, %wq : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %k0 = llmc.matmul %x, %wk : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %v0 = llmc.matmul %x, %wv : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %q = llmc.reshape %q0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, what a contraction gives is read elsewhere or in another shape}}
  %out, %lse = llmc.attention(%q, %q, %v) {heads = 1 : i64, kvHeads = 1 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x5x4xf32>, tensor<1x1x5xf32>)
  llmc.return %out : tensor<1x5x4xf32>
}

// -----

// Something happens to the keys first.
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}})
llmc.variable @wq "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wk "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wv "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.program @graph "graph" (%x: tensor<5x4xf32>) -> tensor<1x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x4xf32>
  %wk = llmc.get @wk : tensor<4x4xf32>
  %wv = llmc.get @wv : tensor<4x4xf32>
  // expected-remark@below {{declined: 3 contractions share an input}}
  %q0 = llmc.matmul %x, %wq : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %k0 = llmc.matmul %x, %wk : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %v0 = llmc.matmul %x, %wv : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %q = llmc.reshape %q0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %k1 = llmc.exp %k0 : tensor<5x4xf32>
  %k = llmc.reshape %k1 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, not every input is a contraction with a bias}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x5x4xf32>, tensor<1x1x5xf32>)
  llmc.return %out : tensor<1x5x4xf32>
}

// -----

// The queries come from elsewhere.
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}})
llmc.variable @wq "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wk "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wv "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.program @graph "graph" (%x: tensor<5x4xf32>, %y: tensor<5x4xf32>) -> tensor<1x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x4xf32>
  %wk = llmc.get @wk : tensor<4x4xf32>
  %wv = llmc.get @wv : tensor<4x4xf32>
  %q0 = llmc.matmul %y, %wq : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  // expected-remark@below {{declined: 2 contractions share an input}}
  %k0 = llmc.matmul %x, %wk : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %v0 = llmc.matmul %x, %wv : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %q = llmc.reshape %q0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, the contractions read different inputs}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x5x4xf32>, tensor<1x1x5xf32>)
  llmc.return %out : tensor<1x5x4xf32>
}

// -----

// One weight is stored (out, in).
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}})
llmc.variable @wq "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wk "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wv "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.program @graph "graph" (%x: tensor<5x4xf32>) -> tensor<1x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x4xf32>
  %wk = llmc.get @wk : tensor<4x4xf32>
  %wv = llmc.get @wv : tensor<4x4xf32>
  // expected-remark@below {{declined: 3 contractions share an input}}
  %q0 = llmc.matmul %x, %wq : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %k0 = llmc.matmul %x, %wk : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %v0 = llmc.matmul %x, %wv {transposeRhs} : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %q = llmc.reshape %q0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, one weight is stored transposed, another is not}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x5x4xf32>, tensor<1x1x5xf32>)
  llmc.return %out : tensor<1x5x4xf32>
}

// -----

// Only the values have a bias.
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}})
llmc.variable @wq "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wk "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wv "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @bv "parameter" tensor<4xf32> = dense<1.0> : tensor<4xf32>
llmc.program @graph "graph" (%x: tensor<5x4xf32>) -> tensor<1x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x4xf32>
  %wk = llmc.get @wk : tensor<4x4xf32>
  %wv = llmc.get @wv : tensor<4x4xf32>
  // expected-remark@below {{declined: 3 contractions share an input}}
  %q0 = llmc.matmul %x, %wq : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %k0 = llmc.matmul %x, %wk : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %bv = llmc.get @bv : tensor<4xf32>
  %v0 = llmc.matmul %x, %wv bias %bv : (tensor<5x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<5x4xf32>
  %q = llmc.reshape %q0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, not all have a bias in the same way}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x5x4xf32>, tensor<1x1x5xf32>)
  llmc.return %out : tensor<1x5x4xf32>
}

// -----

// The keys' weight does not train.
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}})
llmc.variable @wq "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wk "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wv "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @fixed "constant" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.program @graph "graph" (%x: tensor<5x4xf32>) -> tensor<1x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x4xf32>
  %wk = llmc.get @fixed : tensor<4x4xf32>
  %wv = llmc.get @wv : tensor<4x4xf32>
  // expected-remark@below {{declined: 2 contractions share an input}}
  %q0 = llmc.matmul %x, %wq : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %k0 = llmc.matmul %x, %wk : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %v0 = llmc.matmul %x, %wv : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %q = llmc.reshape %q0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, a weight or bias does not train, or is read elsewhere}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x5x4xf32>, tensor<1x1x5xf32>)
  llmc.return %out : tensor<1x5x4xf32>
}

// -----

// One weight for queries and keys.
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}})
llmc.variable @wq "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wk "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wv "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.program @graph "graph" (%x: tensor<5x4xf32>) -> tensor<1x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x4xf32>
  %wk = llmc.get @wq : tensor<4x4xf32>
  %wv = llmc.get @wv : tensor<4x4xf32>
  // expected-remark@below {{declined: 3 contractions share an input}}
  %q0 = llmc.matmul %x, %wq : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %k0 = llmc.matmul %x, %wk : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %v0 = llmc.matmul %x, %wv : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %q = llmc.reshape %q0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, a weight or bias does not train, or is read elsewhere}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x5x4xf32>, tensor<1x1x5xf32>)
  llmc.return %out : tensor<1x5x4xf32>
}

// -----

// A bias with another shape.
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}})
llmc.variable @wq "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wk "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wv "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @bq "parameter" tensor<1x4xf32> = dense<1.0> : tensor<1x4xf32>
llmc.program @graph "graph" (%x: tensor<5x4xf32>) -> tensor<1x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x4xf32>
  %wk = llmc.get @wk : tensor<4x4xf32>
  %wv = llmc.get @wv : tensor<4x4xf32>
  // expected-remark@below {{declined: 3 contractions share an input}}
  %q0 = llmc.matmul %x, %wq : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %k0 = llmc.matmul %x, %wk : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %v0 = llmc.matmul %x, %wv : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %bq = llmc.get @bq : tensor<1x4xf32>
  %q1 = llmc.add %q0, %bq : (tensor<5x4xf32>, tensor<1x4xf32>) -> tensor<5x4xf32>
  %q = llmc.reshape %q1 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, a bias is no vector}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x5x4xf32>, tensor<1x1x5xf32>)
  llmc.return %out : tensor<1x5x4xf32>
}

// -----

// The input is read by columns.
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}})
llmc.variable @wq "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wk "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wv "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.program @graph "graph" (%x: tensor<4x5xf32>) -> tensor<1x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x4xf32>
  %wk = llmc.get @wk : tensor<4x4xf32>
  %wv = llmc.get @wv : tensor<4x4xf32>
  // expected-remark@below {{declined: 3 contractions share an input}}
  %q0 = llmc.matmul %x, %wq {transposeLhs} : (tensor<4x5xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %k0 = llmc.matmul %x, %wk {transposeLhs} : (tensor<4x5xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %v0 = llmc.matmul %x, %wv {transposeLhs} : (tensor<4x5xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %q = llmc.reshape %q0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, a contraction is not one of rows with a weight}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x5x4xf32>, tensor<1x1x5xf32>)
  llmc.return %out : tensor<1x5x4xf32>
}

// -----

// One weight is of another type.
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}})
llmc.variable @wq "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wk "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @wv "parameter" tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
llmc.variable @half "parameter" tensor<4x4xbf16> = dense<1.0> : tensor<4x4xbf16>
llmc.program @graph "graph" (%x: tensor<5x4xf32>) -> tensor<1x5x4xf32> {
  %wq = llmc.get @wq : tensor<4x4xf32>
  %wk = llmc.get @wk : tensor<4x4xf32>
  %wv = llmc.get @half : tensor<4x4xbf16>
  // expected-remark@below {{declined: 3 contractions share an input}}
  %q0 = llmc.matmul %x, %wq : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %k0 = llmc.matmul %x, %wk : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %v0 = llmc.matmul %x, %wv : (tensor<5x4xf32>, tensor<4x4xbf16>) -> tensor<5x4xf32>
  %q = llmc.reshape %q0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %k = llmc.reshape %k0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %v = llmc.reshape %v0 : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  // expected-remark@below {{declined: queries, keys and values stay apart, the element types differ}}
  %out, %lse = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, window = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x5x4xf32>, tensor<1x1x5xf32>)
  llmc.return %out : tensor<1x5x4xf32>
}
