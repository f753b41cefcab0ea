// RUN: llmc-opt %s -llmc-materialize-constants -split-input-file -verify-diagnostics | FileCheck %s

// Equal constants are one variable, in all programs; those inside a fusion stay, unused ones go.
// CHECK: llmc.variable @w "parameter"
// CHECK-NEXT: llmc.variable @constant.0 "constant" tensor<2x2xf32> = dense<{{.*}}> : tensor<2x2xf32>
// CHECK-NOT: llmc.variable
llmc.variable @w "parameter" tensor<2x2xf32> = dense<0.0> : tensor<2x2xf32>
llmc.program @forward "forward" (%x: tensor<2x2xf32> {llmc.name = "x"}) -> (tensor<2x2xf32> {llmc.name = "y"}) {
  // expected-remark@+1 {{info: a kernel reads this constant, so it lies in memory as "constant.0"}}
  %c = llmc.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %unused = llmc.constant dense<7.0> : tensor<f32>
  %y = llmc.matmul %x, %c : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %z = llmc.fusion(%y) {space = array<i64: 4>, rowBlock = 1 : i64, colBlock = 4 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32> {
  ^bb0(%a: tensor<4xf32>):
    %two = llmc.constant dense<2.0> : tensor<f32>
    %0 = llmc.mul %a, %two : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    llmc.yield %0 : tensor<4xf32>
  }
  llmc.return %z : tensor<2x2xf32>
}
// CHECK-LABEL: llmc.program @forward
// CHECK-NOT: dense<7
// CHECK: %[[C:.*]] = llmc.get @constant.0 : tensor<2x2xf32>
// CHECK: llmc.matmul %{{.*}}, %[[C]]
// CHECK: llmc.constant dense<2.0

llmc.program @other "update" () -> (tensor<2x2xf32> {llmc.name = "c"}) {
  %c = llmc.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  llmc.return %c : tensor<2x2xf32>
}
// CHECK-LABEL: llmc.program @other
// CHECK: %[[C:.*]] = llmc.get @constant.0
// CHECK: llmc.return %[[C]]

// -----

// A name that is taken is left alone.
// CHECK: llmc.variable @constant.0 "parameter"
// CHECK: llmc.variable @constant.1 "constant"
llmc.variable @constant.0 "parameter" tensor<2xf32> = dense<0.0> : tensor<2xf32>
llmc.program @forward "forward" () -> (tensor<2xf32> {llmc.name = "y"}) {
  // expected-remark@+1 {{"constant.1"}}
  %c = llmc.constant dense<1.0> : tensor<2xf32>
  llmc.return %c : tensor<2xf32>
}
