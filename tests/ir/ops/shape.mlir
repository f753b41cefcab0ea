// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// CHECK-LABEL: llmc.program @shapes "graph"
llmc.program @shapes "graph" (%a: tensor<2x3xf32>, %b: tensor<2x1xf32>) {
  // CHECK: llmc.constant dense<5.000000e-01> : tensor<f32>
  %0 = llmc.constant dense<5.000000e-01> : tensor<f32>
  // CHECK: llmc.reshape %{{.*}} : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = llmc.reshape %a : (tensor<2x3xf32>) -> tensor<6xf32>
  // CHECK: llmc.transpose %{{.*}} {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = llmc.transpose %a {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  // CHECK: llmc.slice
  %3 = llmc.slice %a {starts = array<i64: 0, 2>, sizes = array<i64: 2, 2>, steps = array<i64: 1, -2>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  // CHECK: llmc.place
  %4 = llmc.place %a, %b {starts = array<i64: 0, 0, 0, 3>, steps = array<i64: 1, 1, 1, 1>, fill = 0.000000e+00 : f64} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  // CHECK: llmc.empty : tensor<2x4xf32>
  %5 = llmc.empty : tensor<2x4xf32>
  // CHECK: llmc.place_into
  %6 = llmc.place_into %a, %5 {starts = array<i64: 0, 1>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  llmc.return
}
