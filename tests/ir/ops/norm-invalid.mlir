// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// norm_c1
llmc.program @scale "graph" (%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{scale must have shape (3), found 'tensor<2xf32>'}}
  %y = llmc.rms_norm %x, %s {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  llmc.return
}

// -----

// norm_c1
llmc.program @bias "graph" (%x: tensor<2x3xf32>, %s: tensor<3xf32>, %b: tensor<1x3xf32>) {
  // expected-error @+1 {{bias must have shape (3), found 'tensor<1x3xf32>'}}
  %y = llmc.layer_norm %x, %s, %b {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  llmc.return
}

// -----

// norm_c1
llmc.program @gradient "graph" (%x: tensor<2x3xf32>, %s: tensor<2x3xf32>) {
  // expected-error @+1 {{scale must have shape (3), found 'tensor<2x3xf32>'}}
  %y:2 = llmc.rms_norm_grad %x, %x, %s {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  llmc.return
}

// -----

llmc.program @rank "graph" (%x: tensor<f32>, %s: tensor<3xf32>) {
  // expected-error @+1 {{x must have a last dimension, found 'tensor<f32>'}}
  %y = llmc.rms_norm %x, %s {epsilon = 1.000000e-05 : f64} : (tensor<f32>, tensor<3xf32>) -> tensor<f32>
  llmc.return
}
