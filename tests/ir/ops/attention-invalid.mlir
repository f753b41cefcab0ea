// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// attention_c1
llmc.program @count "graph" (%q: tensor<2x5x12xf32>) {
  // expected-error @+1 {{inputs must be q, k and v, or one packed, found 2}}
  %o, %lse = llmc.attention(%q, %q) {heads = 4 : i64, kvHeads = 4 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x12xf32>, tensor<2x5x12xf32>) -> (tensor<2x5x12xf32>, tensor<2x4x5xf32>)
  llmc.return
}

// -----

// attention_c1
llmc.program @rank "graph" (%q: tensor<10x12xf32>) {
  // expected-error @+1 {{inputs must be (batch, tokens, columns), found 'tensor<10x12xf32>'}}
  %o, %lse = llmc.attention(%q) {heads = 2 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<10x12xf32>) -> (tensor<2x5x4xf32>, tensor<2x2x5xf32>)
  llmc.return
}

// -----

// attention_c1
llmc.program @columns "graph" (%q: tensor<2x5x13xf32>) {
  // expected-error @+1 {{the columns of input 0 must be a multiple of 6, found 'tensor<2x5x13xf32>'}}
  %o, %lse = llmc.attention(%q) {heads = 2 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x13xf32>) -> (tensor<2x5x4xf32>, tensor<2x2x5xf32>)
  llmc.return
}

// -----

// attention_c1
llmc.program @values "graph" (%q: tensor<2x5x12xf32>, %k: tensor<2x7x6xf32>, %v: tensor<2x6x6xf32>) {
  // expected-error @+1 {{input 2 must be 'tensor<2x7x6xf32>', found 'tensor<2x6x6xf32>'}}
  %o, %lse = llmc.attention(%q, %k, %v) {heads = 4 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x12xf32>, tensor<2x7x6xf32>, tensor<2x6x6xf32>) -> (tensor<2x5x12xf32>, tensor<2x4x5xf32>)
  llmc.return
}

// -----

// attention_c1
llmc.program @out "graph" (%q: tensor<2x5x12xf32>) {
  // expected-error @+1 {{out must have shape (2, 5, 4), found 'tensor<2x5x12xf32>'}}
  %o, %lse = llmc.attention(%q) {heads = 2 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x12xf32>) -> (tensor<2x5x12xf32>, tensor<2x2x5xf32>)
  llmc.return
}

// -----

// attention_c1
llmc.program @lse "graph" (%q: tensor<2x5x12xf32>) {
  // expected-error @+1 {{lse must have shape (2, 2, 5), found 'tensor<2x5x2xf32>'}}
  %o, %lse = llmc.attention(%q) {heads = 2 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x12xf32>) -> (tensor<2x5x4xf32>, tensor<2x5x2xf32>)
  llmc.return
}

// -----

// attention_c1
llmc.program @gradients "graph" (%q: tensor<2x5x12xf32>, %o: tensor<2x5x4xf32>, %lse: tensor<2x2x5xf32>) {
  // expected-error @+1 {{results must have the inputs' types}}
  %d = llmc.attention_grad(%q) out %o lse %lse dOut %o {heads = 2 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x12xf32>, tensor<2x5x4xf32>, tensor<2x2x5xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  llmc.return
}

// -----

// attention_c2
llmc.program @heads "graph" (%q: tensor<2x5x12xf32>, %k: tensor<2x7x6xf32>) {
  // expected-error @+1 {{heads must be a multiple of kvHeads, found 4 and 3}}
  %o, %lse = llmc.attention(%q, %k, %k) {heads = 4 : i64, kvHeads = 3 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x12xf32>, tensor<2x7x6xf32>, tensor<2x7x6xf32>) -> (tensor<2x5x12xf32>, tensor<2x4x5xf32>)
  llmc.return
}

// -----

// attention_c3
llmc.program @mask_rank "graph" (%q: tensor<2x5x12xf32>, %m: tensor<1x1x1x1x5xf32>) {
  // expected-error @+1 {{mask must have at most four dimensions, found 'tensor<1x1x1x1x5xf32>'}}
  %o, %lse = llmc.attention(%q) mask %m {heads = 2 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x12xf32>, tensor<1x1x1x1x5xf32>) -> (tensor<2x5x4xf32>, tensor<2x2x5xf32>)
  llmc.return
}

// -----

// attention_c3
llmc.program @mask "graph" (%q: tensor<2x5x12xf32>, %m: tensor<5x7xf32>) {
  // expected-error @+1 {{mask must broadcast to (2, 2, 5, 5), found 'tensor<5x7xf32>'}}
  %o, %lse = llmc.attention(%q) mask %m {heads = 2 : i64, kvHeads = 2 : i64, window = 0 : i64, scale = 5.000000e-01 : f64} : (tensor<2x5x12xf32>, tensor<5x7xf32>) -> (tensor<2x5x4xf32>, tensor<2x2x5xf32>)
  llmc.return
}
