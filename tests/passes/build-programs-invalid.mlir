// RUN: llmc-opt %s -llmc-build-gradients -llmc-build-programs -verify-diagnostics

// Another variable stands where the moment of w goes.
// expected-error@below {{its state needs the name 'w/m', which another variable or program has}}
llmc.variable @w "parameter" tensor<2xf32> = dense<1.0> : tensor<2xf32>
llmc.variable @"w/m" "constant" tensor<2xf32> = dense<1.0> : tensor<2xf32>
llmc.program @graph "graph" () -> (tensor<1xf32> {llmc.name = "loss", llmc.role = "loss"}) {
  %w = llmc.get @w : tensor<2xf32>
  %m = llmc.get @"w/m" : tensor<2xf32>
  %y = llmc.mul %w, %m : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %loss = llmc.reduce_sum %y {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<1xf32>
  llmc.return %loss : tensor<1xf32>
}
