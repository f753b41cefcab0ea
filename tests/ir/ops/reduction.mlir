// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s -canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: llmc.program @reductions "graph"
// CANON-LABEL: llmc.program @reductions "graph"
llmc.program @reductions "graph" (%a: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<1xi64>) {
  // CHECK: llmc.reduce_sum %{{.*}} {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %0 = llmc.reduce_sum %a {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  // CHECK: llmc.reduce_max
  %1 = llmc.reduce_max %a {axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<1x1xf32>
  // CHECK: llmc.reduce_mean
  %2 = llmc.reduce_mean %a {axes = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  // CHECK: llmc.softmax %{{.*}} : tensor<2x3xf32>
  %3 = llmc.softmax %a : tensor<2x3xf32>
  // CHECK: llmc.log_softmax %{{.*}} : tensor<2x3xf32>
  %4 = llmc.log_softmax %a : tensor<2x3xf32>
  // A reduction over nothing is its operand; one of constants is folded.
  // CANON-DAG: %[[SUM:.*]] = llmc.constant dense<6> : tensor<1xi64>
  // CANON: llmc.return %{{arg0|a}}, %[[SUM]]
  %5 = llmc.reduce_sum %a {axes = array<i64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = llmc.constant dense<[1, 2, 3]> : tensor<3xi64>
  %7 = llmc.reduce_sum %6 {axes = array<i64: 0>} : (tensor<3xi64>) -> tensor<1xi64>
  llmc.return %5, %7 : tensor<2x3xf32>, tensor<1xi64>
}
