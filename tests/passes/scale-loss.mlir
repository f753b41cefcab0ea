// RUN: llmc-opt %s -split-input-file -llmc-scale-loss | FileCheck %s

// A mean cross-entropy of the labels input becomes a sum times the session's scalar.
// CHECK: module attributes {llmc.token_mean}
// CHECK-LABEL: llmc.program @graph
// CHECK-SAME: llmc.ignore_index = -1 : i64
// CHECK: %[[SCALE:.*]] = llmc.scalar "loss_scale"
// CHECK: llmc.softmax_cross_entropy {{.*}} scale %[[SCALE]] {ignoreIndex = -1 : i64}
llmc.program @graph "graph" (%logits: tensor<6x7xf32> {llmc.name = "x"}, %labels: tensor<2x3xi64> {llmc.name = "targets", llmc.role = "labels"})
    -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}) {
  %flat = llmc.reshape %labels : (tensor<2x3xi64>) -> tensor<6xi64>
  %loss, %lse = llmc.softmax_cross_entropy %logits, %flat {mean, ignoreIndex = -1 : i64} : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6x1xf32>)
  llmc.return %loss : tensor<f32>
}

// -----

// Any other loss is multiplied by it.
// CHECK-NOT: token_mean
// CHECK-LABEL: llmc.program @graph
// CHECK: %[[SCALE:.*]] = llmc.scalar "loss_scale"
// CHECK: %[[LOSS:.*]] = llmc.mul %{{.*}}, %[[SCALE]]
// CHECK: llmc.return %[[LOSS]]
llmc.program @graph "graph" (%x: tensor<f32> {llmc.name = "x"}) -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}) {
  %loss = llmc.exp %x : tensor<f32>
  llmc.return %loss : tensor<f32>
}
