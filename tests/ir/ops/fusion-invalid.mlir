// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// fusion_c1
llmc.program @form "graph" (%x: tensor<6x8xf32>) {
  // expected-error @+1 {{body values must have dimensions of the space (6, 8) or 1, found 'tensor<3x2x8xf32>'}}
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 6 : i64, colBlock = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<3x2x8xf32>):
    llmc.yield %a : tensor<3x2x8xf32>
  }
  llmc.return
}

// -----

// fusion_c1
llmc.program @elements "graph" (%x: tensor<6x8xf32>) {
  // expected-error @+1 {{input 0 must have the elements of its argument 'tensor<6x1xf32>', found 'tensor<6x8xf32>'}}
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 6 : i64, colBlock = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x1xf32>):
    llmc.yield %a : tensor<6x1xf32>
  }
  llmc.return
}

// -----

// fusion_c1
llmc.program @other_op "graph" (%x: tensor<6x8xf32>) {
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 6 : i64, colBlock = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    // expected-error @+1 {{a fusion holds elementwise ops, constants, reduce_sum and reduce_max only}}
    %0 = llmc.softmax %a : tensor<6x8xf32>
    llmc.yield %0 : tensor<6x8xf32>
  }
  llmc.return
}

// -----

// fusion_c2
llmc.program @axes "graph" (%x: tensor<6x8xf32>) {
  %y = llmc.fusion(%x) {space = array<i64: 2, 3, 8>, rowBlock = 6 : i64, colBlock = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<2x3x8xf32>):
    // expected-error @+1 {{a fusion reduces over the last axis, or over all others}}
    %0 = llmc.reduce_sum %a {axes = array<i64: 1>} : (tensor<2x3x8xf32>) -> tensor<2x1x8xf32>
    %1 = llmc.sub %a, %0 : (tensor<2x3x8xf32>, tensor<2x1x8xf32>) -> tensor<2x3x8xf32>
    llmc.yield %1 : tensor<2x3x8xf32>
  }
  llmc.return
}

// -----

// fusion_c2
llmc.program @used_column "graph" (%x: tensor<6x8xf32>) {
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 6 : i64, colBlock = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    // expected-error @+1 {{a column reduction may only be yielded: it is partial sums}}
    %0 = llmc.reduce_sum %a {axes = array<i64: 0>} : (tensor<6x8xf32>) -> tensor<1x8xf32>
    %1 = llmc.sub %a, %0 : (tensor<6x8xf32>, tensor<1x8xf32>) -> tensor<6x8xf32>
    llmc.yield %1 : tensor<6x8xf32>
  }
  llmc.return
}

// -----

// fusion_c2
llmc.program @narrow_column "graph" (%x: tensor<6x1xf32>) {
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 6 : i64, colBlock = 8 : i64} : (tensor<6x1xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x1xf32>):
    // expected-error @+1 {{a column reduction must be of floats over the whole space, found 'tensor<6x1xf32>'}}
    %0 = llmc.reduce_sum %a {axes = array<i64: 0>} : (tensor<6x1xf32>) -> tensor<1x1xf32>
    llmc.yield %0 : tensor<1x1xf32>
  }
  llmc.return
}

// -----

// fusion_c2
llmc.program @split_row "graph" (%x: tensor<6x8xf32>) {
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 6 : i64, colBlock = 4 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    // expected-error @+1 {{a row reduction needs whole rows, found colBlock 4 of 8}}
    %0 = llmc.reduce_max %a {axes = array<i64: 1>} : (tensor<6x8xf32>) -> tensor<6x1xf32>
    %1 = llmc.sub %a, %0 : (tensor<6x8xf32>, tensor<6x1xf32>) -> tensor<6x8xf32>
    llmc.yield %1 : tensor<6x8xf32>
  }
  llmc.return
}

// -----

// fusion_c3
llmc.program @yielded_form "graph" (%x: tensor<8xf32>) {
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 6 : i64, colBlock = 8 : i64} : (tensor<8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<1x8xf32>):
    // expected-error @+1 {{value 0 must have the whole space, (rows, 1) or be a column reduction, found 'tensor<1x8xf32>'}}
    llmc.yield %a : tensor<1x8xf32>
  }
  llmc.return
}

// -----

// fusion_c3
llmc.program @result_size "graph" (%x: tensor<6x8xf32>) {
  // expected-error @+1 {{result 0 must have 16 elements of 'f32', found 'tensor<6x8xf32>'}}
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 4 : i64, colBlock = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    %0 = llmc.reduce_sum %a {axes = array<i64: 0>} : (tensor<6x8xf32>) -> tensor<1x8xf32>
    llmc.yield %0 : tensor<1x8xf32>
  }
  llmc.return
}

// -----

// fusion_c3
llmc.program @count "graph" (%x: tensor<6x8xf32>) {
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 4 : i64, colBlock = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    // expected-error @+1 {{must yield one value per result, 1, found 2}}
    llmc.yield %a, %a : tensor<6x8xf32>, tensor<6x8xf32>
  }
  llmc.return
}

// -----

llmc.program @space "graph" (%x: tensor<6x8xf32>) {
  // expected-error @+1 {{space must have positive dimensions, found ()}}
  %y = llmc.fusion(%x) {space = array<i64>, rowBlock = 4 : i64, colBlock = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    llmc.yield %a : tensor<6x8xf32>
  }
  llmc.return
}

// -----

llmc.program @blocks "graph" (%x: tensor<6x8xf32>) {
  // expected-error @+1 {{rowBlock and colBlock must be positive, found 0 and 8}}
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 0 : i64, colBlock = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    llmc.yield %a : tensor<6x8xf32>
  }
  llmc.return
}

// -----

llmc.program @arguments "graph" (%x: tensor<6x8xf32>) {
  // expected-error @+1 {{the body must have one argument per input, 1, found 2}}
  %y = llmc.fusion(%x) {space = array<i64: 6, 8>, rowBlock = 4 : i64, colBlock = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>, %b: tensor<6x8xf32>):
    llmc.yield %a : tensor<6x8xf32>
  }
  llmc.return
}
