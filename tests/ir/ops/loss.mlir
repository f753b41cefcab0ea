// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// CHECK-LABEL: llmc.program @losses "graph"
llmc.program @losses "graph" (%x: tensor<6x7xf32>, %l: tensor<6xi64>, %s: tensor<f32>) {
  // CHECK: llmc.softmax_cross_entropy %{{.*}}, %{{.*}} {ignoreIndex = -100 : i64, mean} : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6x1xf32>)
  %loss, %lse = llmc.softmax_cross_entropy %x, %l {mean, ignoreIndex = -100 : i64} : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6x1xf32>)
  // CHECK: llmc.softmax_cross_entropy %{{.*}}, %{{.*}} scale %{{.*}} {ignoreIndex = -100 : i64}
  %loss2, %lse2 = llmc.softmax_cross_entropy %x, %l scale %s {ignoreIndex = -100 : i64} : (tensor<6x7xf32>, tensor<6xi64>, tensor<f32>) -> (tensor<f32>, tensor<6x1xf32>)
  // CHECK: llmc.softmax_cross_entropy_grad
  %d = llmc.softmax_cross_entropy_grad %loss, %x, %l, %lse {mean, ignoreIndex = -100 : i64} : (tensor<f32>, tensor<6x7xf32>, tensor<6xi64>, tensor<6x1xf32>) -> tensor<6x7xf32>
  llmc.return
}
