// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// CHECK: llmc.variable @wte "parameter" tensor<7x3xf32> = dense<0.000000e+00> : tensor<7x3xf32> {decays}
llmc.variable @wte "parameter" tensor<7x3xf32> = dense<0.000000e+00> : tensor<7x3xf32> {decays}
// CHECK: llmc.variable @"wte/m" "moment" tensor<7x3xf32>{{$}}
llmc.variable @"wte/m" "moment" tensor<7x3xf32>
// CHECK: llmc.variable @mask "constant" tensor<2xi64> = dense<1> : tensor<2xi64> {source = "onnx::Mul_12"}
llmc.variable @mask "constant" tensor<2xi64> = dense<1> : tensor<2xi64> {source = "onnx::Mul_12"}
// CHECK: llmc.variable @k "part" tensor<7x1xf32> = dense<0.000000e+00> : tensor<7x1xf32> {llmc.piece = {axis = 1 : i64, of = @wte, start = 2 : i64}}
llmc.variable @k "part" tensor<7x1xf32> = dense<0.000000e+00> : tensor<7x1xf32> {llmc.piece = {axis = 1 : i64, of = @wte, start = 2 : i64}}

// CHECK: llmc.program @graph "graph"(%{{.*}}: tensor<7x3xf32> {llmc.name = "g"}) -> (tensor<f32> {llmc.name = "norm", llmc.role = "grad_norm"}) attributes {note = "kept"} {
llmc.program @graph "graph" (%g: tensor<7x3xf32> {llmc.name = "g"}) -> (tensor<f32> {llmc.name = "norm", llmc.role = "grad_norm"}) attributes {note = "kept"} {
  // CHECK: %[[P:.*]] = llmc.get @wte : tensor<7x3xf32>
  %p = llmc.get @wte : tensor<7x3xf32>
  // CHECK: llmc.scalar "lr" : tensor<f32>
  %lr = llmc.scalar "lr" : tensor<f32>
  // CHECK: llmc.adamw %[[P]], %{{.*}}, %{{.*}}, %{{.*}} clip %{{.*}} {decays} :
  %p1, %m1, %v1 = llmc.adamw %p, %g, %p, %p clip %lr {decays} : (tensor<7x3xf32>, tensor<7x3xf32>, tensor<7x3xf32>, tensor<7x3xf32>, tensor<f32>) -> (tensor<7x3xf32>, tensor<7x3xf32>, tensor<7x3xf32>)
  // CHECK: llmc.sgd %{{.*}}, %{{.*}} : (tensor<7x3xf32>, tensor<7x3xf32>) -> tensor<7x3xf32>
  %p2 = llmc.sgd %p1, %g : (tensor<7x3xf32>, tensor<7x3xf32>) -> tensor<7x3xf32>
  // CHECK: llmc.global_norm %{{.*}}, %{{.*}} : (tensor<7x3xf32>, tensor<f32>) -> tensor<f32>
  %n = llmc.global_norm %g, %lr : (tensor<7x3xf32>, tensor<f32>) -> tensor<f32>
  // CHECK: llmc.set @wte, %{{.*}} : tensor<7x3xf32>
  llmc.set @wte, %p2 : tensor<7x3xf32>
  // CHECK: llmc.return %{{.*}} : tensor<f32>
  llmc.return %n : tensor<f32>
}
