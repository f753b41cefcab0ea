// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// embedding_c1
llmc.program @table "graph" (%t: tensor<f32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{table must have a first dimension to pick from, found 'tensor<f32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = llmc.embedding %t, %i : (tensor<f32>, tensor<2xi64>) -> tensor<2xf32>
  llmc.return
}

// -----

// embedding_grad_c1
llmc.program @dout "graph" (%i: tensor<2xi64>, %d: tensor<2x4xf32>) {
  // expected-error @+1 {{dOut must have the shape of ids followed by the table's row, (2, 3), found 'tensor<2x4xf32>'}}
  %y = llmc.embedding_grad %i, %d : (tensor<2xi64>, tensor<2x4xf32>) -> tensor<7x3xf32>
  llmc.return
}

// -----

// embedding_grad_c1
llmc.program @init "graph" (%i: tensor<2xi64>, %d: tensor<2x3xf32>, %t: tensor<6x3xf32>) {
  // expected-error @+1 {{init must have the result's type 'tensor<7x3xf32>', found 'tensor<6x3xf32>'}}
  %y = llmc.embedding_grad %i, %d init %t : (tensor<2xi64>, tensor<2x3xf32>, tensor<6x3xf32>) -> tensor<7x3xf32>
  llmc.return
}

// -----

// embedding_grad_c1
llmc.program @rank "graph" (%i: tensor<2xi64>, %d: tensor<2xf32>) {
  // expected-error @+1 {{dTable must have a first dimension, found 'tensor<f32>'}}
  %y = llmc.embedding_grad %i, %d : (tensor<2xi64>, tensor<2xf32>) -> tensor<f32>
  llmc.return
}
