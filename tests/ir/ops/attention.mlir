// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// CHECK-LABEL: llmc.program @forms "graph"
llmc.program @forms "graph" (%qkv: tensor<2x5x24xf32>, %q: tensor<2x5x12xf32>, %k: tensor<2x7x6xf32>, %m: tensor<5x7xf32>) {
  // CHECK: %[[OUT:.*]], %[[LSE:.*]] = llmc.attention(%{{.*}}) {causal, heads = 4 : i64, kvHeads = 2 : i64, scale = 5.000000e-01 : f64, window = 0 : i64} : (tensor<2x5x24xf32>) -> (tensor<2x5x12xf32>, tensor<2x4x5xf32>)
  %o, %lse = llmc.attention(%qkv) {heads = 4 : i64, kvHeads = 2 : i64, causal, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x24xf32>) -> (tensor<2x5x12xf32>, tensor<2x4x5xf32>)
  // CHECK: llmc.attention_grad(%{{.*}}) out %[[OUT]] lse %[[LSE]] dOut %{{.*}} {
  %d = llmc.attention_grad(%qkv) out %o lse %lse dOut %q {heads = 4 : i64, kvHeads = 2 : i64, causal, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x24xf32>, tensor<2x5x12xf32>, tensor<2x4x5xf32>, tensor<2x5x12xf32>) -> tensor<2x5x24xf32>
  // CHECK: llmc.attention(%{{.*}}, %{{.*}}, %{{.*}}) mask %{{.*}} {
  %o2, %lse2 = llmc.attention(%q, %k, %k) mask %m {heads = 4 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x12xf32>, tensor<2x7x6xf32>, tensor<2x7x6xf32>, tensor<5x7xf32>) -> (tensor<2x5x12xf32>, tensor<2x4x5xf32>)
  llmc.return
}
