// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// variable_c1
llmc.program @unknown "graph" () {
  // expected-error @+1 {{found no variable @wte}}
  %w = llmc.get @wte : tensor<7x3xf32>
  llmc.return
}

// -----

// variable_c1
llmc.variable @wte "parameter" tensor<7x3xf32>
llmc.program @type "graph" (%w: tensor<7xf32>) {
  // expected-error @+1 {{the value must have the type of variable @wte, 'tensor<7x3xf32>', found 'tensor<7xf32>'}}
  llmc.set @wte, %w : tensor<7xf32>
  llmc.return
}

// -----

// variable_c1
llmc.program @other "graph" () {
  // expected-error @+1 {{found no variable @other}}
  %w = llmc.get @other : tensor<7x3xf32>
  llmc.return
}

// -----

// variable_c2
// expected-error @+1 {{kind must be parameter, constant, moment or gradient, found "weight"}}
llmc.variable @wte "weight" tensor<7x3xf32>

// -----

// variable_c3
// expected-error @+1 {{value must have the variable's type 'tensor<7x3xf32>', found 'tensor<7xf32>'}}
llmc.variable @wte "parameter" tensor<7x3xf32> = dense<0.000000e+00> : tensor<7xf32>

// -----

// return_c1
llmc.program @returns "graph" (%a: tensor<2xf32>) -> (tensor<f32>) {
  // expected-error @+1 {{operand types must be the program's result types ('tensor<f32>'), found ('tensor<2xf32>')}}
  llmc.return %a : tensor<2xf32>
}
