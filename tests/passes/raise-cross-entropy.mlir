// RUN: llmc-opt %s -split-input-file -llmc-raise-cross-entropy -canonicalize -verify-diagnostics | FileCheck %s

// CHECK-LABEL: llmc.program @mean
// CHECK-DAG: %[[LOGITS:.*]] = llmc.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// A label that selects nothing gives zero, and counts in the mean.
// CHECK: llmc.select {{.*}} -> tensor<6xi64>
// CHECK: llmc.select {{.*}} -> tensor<6xi64>
// CHECK: %[[SUM:.*]], %{{.*}} = llmc.softmax_cross_entropy %[[LOGITS]], %{{.*}} {ignoreIndex = -100 : i64} :
// CHECK: %[[LOSS:.*]] = llmc.div %[[SUM]], %{{.*}}
// CHECK-NEXT: llmc.return %[[LOSS]]
llmc.program @mean "graph" (%logits: tensor<2x3x4xf32>, %labels: tensor<2x3xi64>) -> tensor<f32> {
  %lp = llmc.log_softmax %logits : tensor<2x3x4xf32>
  %index = llmc.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %column = llmc.reshape %labels : (tensor<2x3xi64>) -> tensor<2x3x1xi64>
  %hot = llmc.equal %column, %index : (tensor<2x3x1xi64>, tensor<4xi64>) -> tensor<2x3x4xi1>
  %zero = llmc.constant dense<0.000000e+00> : tensor<f32>
  %selected = llmc.select %hot, %lp, %zero : (tensor<2x3x4xi1>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
  %rows = llmc.reduce_sum %selected {axes = array<i64: 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  %negative = llmc.neg %rows : tensor<2x3x1xf32>
  // expected-remark@below {{raised softmax_cross_entropy, mean over 6 rows; labels outside of the vocabulary give zero and count}}
  %mean = llmc.reduce_mean %negative {axes = array<i64: 0, 1, 2>} : (tensor<2x3x1xf32>) -> tensor<1x1x1xf32>
  %loss = llmc.reshape %mean : (tensor<1x1x1xf32>) -> tensor<f32>
  llmc.return %loss : tensor<f32>
}

// -----

// The mean log-probability has the other sign.
// CHECK-LABEL: llmc.program @likelihood
// CHECK-NOT: softmax_cross_entropy
// CHECK: llmc.return
llmc.program @likelihood "graph" (%logits: tensor<6x4xf32>, %labels: tensor<6x1xi64>) -> tensor<1x1xf32> {
  %lp = llmc.log_softmax %logits : tensor<6x4xf32>
  %index = llmc.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %hot = llmc.equal %labels, %index : (tensor<6x1xi64>, tensor<4xi64>) -> tensor<6x4xi1>
  %zero = llmc.constant dense<0.000000e+00> : tensor<f32>
  // expected-remark@below {{declined: no cross-entropy, what is selected by label is neither averaged nor summed with a minus sign}}
  %selected = llmc.select %hot, %lp, %zero : (tensor<6x4xi1>, tensor<6x4xf32>, tensor<f32>) -> tensor<6x4xf32>
  %sum = llmc.reduce_sum %selected {axes = array<i64: 0, 1>} : (tensor<6x4xf32>) -> tensor<1x1xf32>
  llmc.return %sum : tensor<1x1xf32>
}
