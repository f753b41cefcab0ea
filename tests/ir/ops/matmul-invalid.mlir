// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// matmul_c1
llmc.program @rank "graph" (%a: tensor<3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{lhs and rhs must have one rank of two or more and the same leading dimensions, found 'tensor<3xf32>' and 'tensor<3xf32>'}}
  %y = llmc.matmul %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  llmc.return
}

// -----

// matmul_c1
llmc.program @batch "graph" (%a: tensor<2x2x3xf32>, %b: tensor<4x3x4xf32>) {
  // expected-error @+1 {{lhs and rhs must have one rank of two or more and the same leading dimensions}}
  %y = llmc.matmul %a, %b : (tensor<2x2x3xf32>, tensor<4x3x4xf32>) -> tensor<2x2x4xf32>
  llmc.return
}

// -----

// matmul_c2
llmc.program @contracted "graph" (%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+1 {{contracted sizes must agree, found 3 in lhs and 5 in rhs}}
  %y = llmc.matmul %a, %b {transposeRhs} : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x4xf32>
  llmc.return
}

// -----

// matmul_c3
llmc.program @bias "graph" (%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %c: tensor<2xf32>) {
  // expected-error @+1 {{bias must have shape (4), found 'tensor<2xf32>'}}
  %y = llmc.matmul %a, %b bias %c : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2xf32>) -> tensor<2x4xf32>
  llmc.return
}

// -----

// matmul_c3
llmc.program @init "graph" (%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %i: tensor<2x4xbf16>) {
  // expected-error @+1 {{init must have the result's type 'tensor<2x4xf32>', found 'tensor<2x4xbf16>'}}
  %y = llmc.matmul %a, %b init %i : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x4xbf16>) -> tensor<2x4xf32>
  llmc.return
}

// -----

llmc.program @result "graph" (%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2x4xf32>' are incompatible with return type(s) of operation 'tensor<4x2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = llmc.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<4x2xf32>
  llmc.return
}

// -----

// matmul_c4
llmc.program @packed "graph" (%a: tensor<2x3xbf16>, %b: tensor<4x3xbf16, #llmc.packed<blocked16x64x2>>) {
  // expected-error @+1 {{only a rhs that is a matrix and not transposed may be packed}}
  %y = llmc.matmul %a, %b {transposeRhs} : (tensor<2x3xbf16>, tensor<4x3xbf16, #llmc.packed<blocked16x64x2>>) -> tensor<2x4xbf16>
  llmc.return
}

// -----

// pack_c1
llmc.program @pack_rank "graph" (%a: tensor<2x3x4xf32>) {
  // expected-error @+1 {{a must be a row-major matrix, found 'tensor<2x3x4xf32>'}}
  %y = llmc.pack %a : (tensor<2x3x4xf32>) -> tensor<2x3x4xbf16>
  llmc.return
}

// -----

// pack_c1
llmc.program @pack_shape "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{the result must have shape (3, 2), found 'tensor<2x3xbf16>'}}
  %y = llmc.pack %a {transpose} : (tensor<2x3xf32>) -> tensor<2x3xbf16>
  llmc.return
}

// -----

// pack_c2
llmc.program @pack_type "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{no layout for this element type}}
  %y = llmc.pack %a : (tensor<2x3xf32>) -> tensor<2x3xf32, #llmc.packed<blocked16x64x2>>
  llmc.return
}
