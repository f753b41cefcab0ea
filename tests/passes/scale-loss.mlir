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

// -----

// Labels without the first of each row, and one ignored instead at the end: the session counts all but the first.
// CHECK: module attributes {llmc.token_mean}
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.softmax_cross_entropy {{.*}} scale
llmc.program @graph "graph" (%logits: tensor<6x7xf32> {llmc.name = "x"}, %labels: tensor<2x3xi64> {llmc.name = "y", llmc.role = "labels_unshifted"})
    -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}) {
  %padded = llmc.place %labels {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>, fill = -1.0 : f64} : (tensor<2x3xi64>) -> tensor<2x4xi64>
  %part = llmc.slice %padded {starts = array<i64: 0, 1>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 1>} : (tensor<2x4xi64>) -> tensor<2x3xi64>
  %flat = llmc.reshape %part : (tensor<2x3xi64>) -> tensor<6xi64>
  %loss, %lse = llmc.softmax_cross_entropy %logits, %flat {mean, ignoreIndex = -1 : i64} : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6x1xf32>)
  llmc.return %loss : tensor<f32>
}

// -----

// Two labels fewer of each row are not what the session counts.
// CHECK-NOT: token_mean
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.softmax_cross_entropy {{.*}} {ignoreIndex = -1 : i64, mean}
// CHECK: llmc.mul
llmc.program @graph "graph" (%logits: tensor<2x7xf32> {llmc.name = "x"}, %labels: tensor<2x3xi64> {llmc.name = "y", llmc.role = "labels_unshifted"})
    -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}) {
  %part = llmc.slice %labels {starts = array<i64: 0, 2>, sizes = array<i64: 2, 1>, steps = array<i64: 1, 1>} : (tensor<2x3xi64>) -> tensor<2x1xi64>
  %flat = llmc.reshape %part : (tensor<2x1xi64>) -> tensor<2xi64>
  %loss, %lse = llmc.softmax_cross_entropy %logits, %flat {mean, ignoreIndex = -1 : i64} : (tensor<2x7xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2x1xf32>)
  llmc.return %loss : tensor<f32>
}

// -----

// Nor is the first label of the whole batch, when rows were joined before.
// CHECK-NOT: token_mean
// CHECK-LABEL: llmc.program @graph
// CHECK: llmc.softmax_cross_entropy {{.*}} {ignoreIndex = -1 : i64, mean}
llmc.program @graph "graph" (%logits: tensor<5x7xf32> {llmc.name = "x"}, %labels: tensor<2x3xi64> {llmc.name = "y", llmc.role = "labels_unshifted"})
    -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}) {
  %flat = llmc.reshape %labels : (tensor<2x3xi64>) -> tensor<6xi64>
  %part = llmc.slice %flat {starts = array<i64: 1>, sizes = array<i64: 5>, steps = array<i64: 1>} : (tensor<6xi64>) -> tensor<5xi64>
  %loss, %lse = llmc.softmax_cross_entropy %logits, %part {mean, ignoreIndex = -1 : i64} : (tensor<5x7xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<5x1xf32>)
  llmc.return %loss : tensor<f32>
}
