// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// elementwise_c1
llmc.program @broadcast_to "graph" (%a: tensor<2x3xf32>) {
  // expected-error @+1 {{operand 'tensor<2x3xf32>' does not broadcast to the result 'tensor<2x4xf32>'}}
  %y = llmc.broadcast_to %a : (tensor<2x3xf32>) -> tensor<2x4xf32>
  llmc.return
}

// -----

// elementwise_c1
llmc.program @shapes "graph" (%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{operand 'tensor<2xf32>' does not broadcast to the result 'tensor<2x3xf32>'}}
  %y = llmc.add %a, %b : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  llmc.return
}

// -----

// elementwise_c2
llmc.program @types "graph" (%a: tensor<3xf32>, %b: tensor<3xbf16>) {
  // expected-error @+1 {{float operands must have one element type, found 'f32' and 'bf16'}}
  %y = llmc.add %a, %b : (tensor<3xf32>, tensor<3xbf16>) -> tensor<3xf32>
  llmc.return
}
