// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// CHECK-LABEL: llmc.program @norms "graph"
llmc.program @norms "graph" (%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // CHECK: llmc.layer_norm %{{.*}}, %{{.*}}, %{{.*}} {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %0 = llmc.layer_norm %x, %s, %s {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.layer_norm %{{[^,]*}}, %{{[^,]*}} {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = llmc.layer_norm %x, %s {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.layer_norm_grad
  %2:3 = llmc.layer_norm_grad %x, %x, %s {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: llmc.rms_norm
  %3 = llmc.rms_norm %x, %s {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.rms_norm_grad
  %4:2 = llmc.rms_norm_grad %x, %x, %s {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  llmc.return
}
