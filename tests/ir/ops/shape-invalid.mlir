// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// reshape_c1
llmc.program @reshape_elements "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{operand 'tensor<2x3xf32>' and result 'tensor<5xf32>' differ in their number of elements}}
  %y = llmc.reshape %a : (tensor<2x3xf32>) -> tensor<5xf32>
  llmc.return
}

// -----

// reshape_c2
llmc.program @reshape_type "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{operand 'tensor<2x3xf32>' and result 'tensor<6xi32>' differ in their element type}}
  %y = llmc.reshape %a : (tensor<2x3xf32>) -> tensor<6xi32>
  llmc.return
}

// -----

// transpose_c1
llmc.program @transpose_rank "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{permutation is not one of the 2 dimensions of 'tensor<2x3xf32>'}}
  %y = llmc.transpose %a {permutation = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<3xf32>
  llmc.return
}

// -----

// transpose_c1
llmc.program @transpose_twice "graph" (%a: tensor<3x3xf32>) {
  // expected-error @+1 {{permutation is not one of the 2 dimensions of 'tensor<3x3xf32>'}}
  %y = llmc.transpose %a {permutation = array<i64: 1, 1>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  llmc.return
}

// -----

// transpose_c2
llmc.program @transpose_seven "graph" (%a: tensor<1x2x1x2x1x2x1xf32>) {
  // expected-error @+1 {{at most six dimensions can be permuted}}
  %y = llmc.transpose %a {permutation = array<i64: 6, 5, 4, 3, 2, 1, 0>} : (tensor<1x2x1x2x1x2x1xf32>) -> tensor<1x2x1x2x1x2x1xf32>
  llmc.return
}

// -----

// slice_c1
llmc.program @slice_rank "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{needs one start, size and step for each of the 2 dimensions of 'tensor<2x3xf32>'}}
  %y = llmc.slice %a {starts = array<i64: 0>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  llmc.return
}

// -----

// slice_c2
llmc.program @slice_range "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{dimension 1 of 'tensor<2x3xf32>' has no elements 1 to 3 in steps of 2}}
  %y = llmc.slice %a {starts = array<i64: 0, 1>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 2>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  llmc.return
}

// -----

// place_c1
llmc.program @place_rank "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{needs one start and step per operand and dimension, 2, found 1 and 2}}
  %y = llmc.place %a {starts = array<i64: 0>, steps = array<i64: 1, 1>, fill = 0.000000e+00 : f64} : (tensor<2x3xf32>) -> tensor<2x4xf32>
  llmc.return
}

// -----

// place_c2
llmc.program @place_range "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{part 'tensor<2x3xf32>' reaches from 2 to 4 along dimension 1 of 'tensor<2x4xf32>'}}
  %y = llmc.place %a {starts = array<i64: 0, 2>, steps = array<i64: 1, 1>, fill = 0.000000e+00 : f64} : (tensor<2x3xf32>) -> tensor<2x4xf32>
  llmc.return
}

// -----

// place_c2
llmc.program @place_type "graph" (%a: tensor<2x3xi64>) {
  // expected-error @+1 {{operand 'tensor<2x3xi64>' is no part of 'tensor<2x4xf32>'}}
  %y = llmc.place %a {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>, fill = 0.000000e+00 : f64} : (tensor<2x3xi64>) -> tensor<2x4xf32>
  llmc.return
}

// -----

// place_into_c1
llmc.program @place_into_range "graph" (%a: tensor<2x3xf32>, %e: tensor<2x4xf32>) {
  // expected-error @+1 {{part 'tensor<2x3xf32>' reaches from 2 to 4 along dimension 1 of 'tensor<2x4xf32>'}}
  %y = llmc.place_into %a, %e {starts = array<i64: 0, 2>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  llmc.return
}
