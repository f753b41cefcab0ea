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
// expected-error @+1 {{kind must be parameter, constant, moment, gradient or part, found "weight"}}
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

// -----

// variable_c4
// expected-error @+1 {{a part has a piece (axis, of, start) and nothing else has, found kind "part"}}
llmc.variable @w "part" tensor<7x3xf32>

// -----

// variable_c4
llmc.variable @whole "parameter" tensor<7x9xf32>
// expected-error @+1 {{a part has a piece (axis, of, start) and nothing else has, found kind "moment"}}
llmc.variable @w "moment" tensor<7x3xf32> {llmc.piece = {axis = 1 : i64, of = @whole, start = 0 : i64}}

// -----

// variable_c5
// expected-error @+1 {{found no variable @whole}}
llmc.variable @w "part" tensor<7x3xf32> {llmc.piece = {axis = 1 : i64, of = @whole, start = 0 : i64}}

// -----

// variable_c5
llmc.variable @whole "parameter" tensor<7x9xf32>
// expected-error @+1 {{'tensor<7x3xf32>' from 7 on along dimension 1 does not lie inside of 'tensor<7x9xf32>'}}
llmc.variable @w "part" tensor<7x3xf32> {llmc.piece = {axis = 1 : i64, of = @whole, start = 7 : i64}}

// -----

// variable_c5
llmc.variable @whole "parameter" tensor<7x9xf32>
// expected-error @+1 {{'tensor<7x3xf32>' from 0 on along dimension 0 does not lie inside of 'tensor<7x9xf32>'}}
llmc.variable @w "part" tensor<7x3xf32> {llmc.piece = {axis = 0 : i64, of = @whole, start = 0 : i64}}

// -----

// variable_c5
llmc.variable @whole "parameter" tensor<9xf32>
// expected-error @+1 {{does not lie inside of 'tensor<9xf32>'}}
llmc.variable @w "part" tensor<3xf64> {llmc.piece = {axis = 0 : i64, of = @whole, start = 0 : i64}}
