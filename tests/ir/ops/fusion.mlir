// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// A row reduction used by later ops and yielded, a column reduction yielded as one partial sum per row block, a constant of rank 0.
// CHECK-LABEL: llmc.program @fused "graph"
llmc.program @fused "graph" (%x: tensor<2x3x8xf32>, %g: tensor<8xf32>) {
  // CHECK: llmc.fusion(%{{.*}}, %{{.*}}) {colBlock = 8 : i64, rowBlock = 4 : i64, space = array<i64: 6, 8>} : (tensor<2x3x8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<6xf32>, tensor<2x8xf32>) {
  %y:3 = llmc.fusion(%x, %g) {space = array<i64: 6, 8>, rowBlock = 4 : i64, colBlock = 8 : i64} : (tensor<2x3x8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<6xf32>, tensor<2x8xf32>) {
  ^bb0(%a: tensor<6x8xf32>, %b: tensor<1x8xf32>):
    %c = llmc.constant dense<2.0> : tensor<f32>
    %0 = llmc.mul %a, %b : (tensor<6x8xf32>, tensor<1x8xf32>) -> tensor<6x8xf32>
    %1 = llmc.reduce_sum %0 {axes = array<i64: 1>} : (tensor<6x8xf32>) -> tensor<6x1xf32>
    %2 = llmc.div %0, %1 : (tensor<6x8xf32>, tensor<6x1xf32>) -> tensor<6x8xf32>
    %3 = llmc.mul %2, %c : (tensor<6x8xf32>, tensor<f32>) -> tensor<6x8xf32>
    %4 = llmc.reduce_sum %3 {axes = array<i64: 0>} : (tensor<6x8xf32>) -> tensor<1x8xf32>
    // CHECK: llmc.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<6x8xf32>, tensor<6x1xf32>, tensor<1x8xf32>
    llmc.yield %3, %1, %4 : tensor<6x8xf32>, tensor<6x1xf32>, tensor<1x8xf32>
  }
  llmc.return
}
