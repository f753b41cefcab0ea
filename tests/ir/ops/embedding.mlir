// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s -canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: llmc.program @embeddings "graph"
// CANON-LABEL: llmc.program @embeddings "graph"
llmc.program @embeddings "graph" (%t: tensor<7x3xf32>, %i: tensor<2x5xi64>) -> (tensor<2xi64>) {
  // CHECK: llmc.embedding %{{.*}}, %{{.*}} : (tensor<7x3xf32>, tensor<2x5xi64>) -> tensor<2x5x3xf32>
  %0 = llmc.embedding %t, %i : (tensor<7x3xf32>, tensor<2x5xi64>) -> tensor<2x5x3xf32>
  // CHECK: llmc.embedding_grad %{{.*}}, %{{.*}} : (tensor<2x5xi64>, tensor<2x5x3xf32>) -> tensor<7x3xf32>
  %1 = llmc.embedding_grad %i, %0 : (tensor<2x5xi64>, tensor<2x5x3xf32>) -> tensor<7x3xf32>
  // CHECK: llmc.embedding_grad %{{.*}}, %{{.*}} init %{{.*}} :
  %2 = llmc.embedding_grad %i, %0 init %1 : (tensor<2x5xi64>, tensor<2x5x3xf32>, tensor<7x3xf32>) -> tensor<7x3xf32>
  // Of constants it folds: ONNX graphs pick sizes out of shapes so.
  // CANON: %[[C:.*]] = llmc.constant dense<[30, 10]> : tensor<2xi64>
  // CANON: llmc.return %[[C]]
  %3 = llmc.constant dense<[10, 20, 30]> : tensor<3xi64>
  %4 = llmc.constant dense<[2, 0]> : tensor<2xi64>
  %5 = llmc.embedding %3, %4 : (tensor<3xi64>, tensor<2xi64>) -> tensor<2xi64>
  llmc.return %5 : tensor<2xi64>
}
