// RUN: llmc-opt %s -split-input-file -verify-diagnostics -llmc-build-gradients | FileCheck %s

// A tied weight has one gradient, the sum over its uses; a constant has none.
// CHECK-LABEL: llmc.program @gradients "gradients"
// CHECK-SAME: tensor<2x2xf32> {llmc.gradient_of = @w}
// CHECK-DAG: %[[LEFT:.*]] = llmc.matmul {{.*}} {transposeRhs}
// CHECK-DAG: %[[RIGHT:.*]] = llmc.matmul {{.*}} {transposeLhs}
// CHECK: %[[SUM:.*]] = llmc.add
// CHECK: llmc.return %{{.*}}, %[[SUM]]
llmc.variable @w "parameter" tensor<2x2xf32> = dense<1.0> : tensor<2x2xf32> {decays}
llmc.variable @c "constant" tensor<2x2xf32> = dense<1.0> : tensor<2x2xf32>
llmc.program @graph "graph" (%x: tensor<2x2xf32> {llmc.name = "x"}) -> (tensor<1x1xf32> {llmc.name = "loss", llmc.role = "loss"}) {
  %w = llmc.get @w : tensor<2x2xf32>
  %c = llmc.get @c : tensor<2x2xf32>
  %wc = llmc.add %w, %c : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = llmc.matmul %w, %wc : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %loss = llmc.reduce_sum %y {axes = array<i64: 0, 1>} : (tensor<2x2xf32>) -> tensor<1x1xf32>
  llmc.return %loss : tensor<1x1xf32>
}

// -----

// A loss that depends on no parameter cannot be trained.
llmc.variable @w "parameter" tensor<f32> = dense<1.0> : tensor<f32>
// expected-error@+1 {{the loss depends on no parameter: nothing to train}}
llmc.program @graph "graph" (%x: tensor<f32> {llmc.name = "x"}) -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}) {
  llmc.return %x : tensor<f32>
}

// -----

// A parameter that no gradient reaches keeps its value, and is told of.
llmc.variable @w "parameter" tensor<f32> = dense<1.0> : tensor<f32>
// expected-warning@+1 {{no gradient reaches parameter unused: it keeps its value}}
llmc.variable @unused "parameter" tensor<f32> = dense<1.0> : tensor<f32>
llmc.program @graph "graph" (%x: tensor<f32> {llmc.name = "x"}) -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}) {
  %w = llmc.get @w : tensor<f32>
  %y = llmc.mul %w, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  llmc.return %y : tensor<f32>
}
