// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// reduction_c1
llmc.program @rising "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{axes must rise, found 0 after 1}}
  %y = llmc.reduce_sum %a {axes = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<1x1xf32>
  llmc.return
}

// -----

// reduction_c1
llmc.program @range "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{axes must be dimensions of 'tensor<2x3xf32>', found 2}}
  %y = llmc.reduce_max %a {axes = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  llmc.return
}

// -----

llmc.program @shape "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2x1xf32>' are incompatible with return type(s) of operation 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = llmc.reduce_mean %a {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  llmc.return
}
