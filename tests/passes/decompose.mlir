// RUN: llmc-opt %s -llmc-decompose | FileCheck %s

// Two row reductions, the mean and the mean of squared deviations.
// CHECK-LABEL: @norm
// CHECK-COUNT-2: llmc.reduce_sum %{{.*}} {axes = array<i64: 1>}
// CHECK-NOT: llmc.layer_norm
llmc.program @norm "forward" (%x: tensor<2x3x8xf32> {llmc.name = "x"}, %g: tensor<8xf32> {llmc.name = "g"}) -> (tensor<2x3x8xf32> {llmc.name = "y"}) {
  %y = llmc.layer_norm %x, %g {epsilon = 1.0e-05 : f64} : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  llmc.return %y : tensor<2x3x8xf32>
}

// Leading axes become one row dimension; axes in the middle move to the end.
// CHECK-LABEL: @axes
// CHECK: %[[M:.*]] = llmc.reshape %{{.*}} -> tensor<2x12xf32>
// CHECK: llmc.reduce_sum %[[M]] {axes = array<i64: 0>} : (tensor<2x12xf32>) -> tensor<1x12xf32>
// CHECK: %[[T:.*]] = llmc.transpose %{{.*}} {permutation = array<i64: 0, 2, 1>}
// CHECK: %[[R:.*]] = llmc.reshape %[[T]] {{.*}} -> tensor<8x3xf32>
// CHECK: llmc.reduce_max %[[R]] {axes = array<i64: 1>}
llmc.program @axes "forward" (%x: tensor<2x3x4xf32> {llmc.name = "x"}) -> (tensor<1x3x4xf32> {llmc.name = "a"}, tensor<2x1x4xf32> {llmc.name = "b"}) {
  %a = llmc.reduce_sum %x {axes = array<i64: 0>} : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
  %b = llmc.reduce_max %x {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  llmc.return %a, %b : tensor<1x3x4xf32>, tensor<2x1x4xf32>
}

// A reduction that a kernel can do stays.
// CHECK-LABEL: @kept
// CHECK-NEXT: llmc.reduce_sum %{{.*}} {axes = array<i64: 0>} : (tensor<6x4xf32>)
// CHECK-NEXT: llmc.return
llmc.program @kept "forward" (%x: tensor<6x4xf32> {llmc.name = "x"}) -> (tensor<1x4xf32> {llmc.name = "a"}) {
  %a = llmc.reduce_sum %x {axes = array<i64: 0>} : (tensor<6x4xf32>) -> tensor<1x4xf32>
  llmc.return %a : tensor<1x4xf32>
}
