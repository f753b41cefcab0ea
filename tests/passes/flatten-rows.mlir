// RUN: llmc-opt %s -split-input-file -llmc-flatten-rows -verify-diagnostics | FileCheck %s

// The residual add becomes one of rows, and the norm behind it; the reshapes between contractions are gone.
// CHECK-LABEL: llmc.program @residual
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>, %[[MM:.*]]: tensor<6x8xf32>, %[[BIAS:.*]]: tensor<1x1x8xf32>
// CHECK-NEXT: %[[ROWS:.*]] = llmc.reshape %[[X]] : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
// CHECK-NEXT: %[[VECTOR:.*]] = llmc.reshape %[[BIAS]] : (tensor<1x1x8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[BIASED:.*]] = llmc.add %[[MM]], %[[VECTOR]] : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
// CHECK-NEXT: %[[SUM:.*]] = llmc.add %[[ROWS]], %[[BIASED]]
// CHECK-NEXT: %[[NORM:.*]] = llmc.layer_norm %[[SUM]], %{{.*}} {epsilon = 1.000000e-05 : f64}
// CHECK-NEXT: llmc.matmul %[[NORM]]
llmc.program @residual "graph" (%x: tensor<2x3x8xf32>, %mm: tensor<6x8xf32>, %bias: tensor<1x1x8xf32>, %scale: tensor<8xf32>, %w: tensor<8x8xf32>) -> tensor<6x8xf32> {
  %a = llmc.reshape %mm : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  // expected-remark@below {{flattened add to 'tensor<6x8xf32>'}}
  %b = llmc.add %a, %bias : (tensor<2x3x8xf32>, tensor<1x1x8xf32>) -> tensor<2x3x8xf32>
  // expected-remark@below {{flattened add to 'tensor<6x8xf32>'}}
  %sum = llmc.add %x, %b : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  // expected-remark@below {{flattened layer_norm to 'tensor<6x8xf32>'}}
  %norm = llmc.layer_norm %sum, %scale {epsilon = 1.000000e-05 : f64} : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  %rows = llmc.reshape %norm : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  %y = llmc.matmul %rows, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  llmc.return %y : tensor<6x8xf32>
}

// -----

// Upwards from what is read as rows; the positions (T, C) are added before.
// CHECK-LABEL: llmc.program @upwards
// CHECK-NEXT: %[[SUM:.*]] = llmc.add %arg0, %arg1 : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
// CHECK-NEXT: %[[ROWS:.*]] = llmc.reshape %[[SUM]]
// CHECK-NEXT: llmc.gelu %[[ROWS]] {approximate} : tensor<6x8xf32>
// CHECK-NEXT: llmc.return
llmc.program @upwards "graph" (%x: tensor<2x3x8xf32>, %positions: tensor<3x8xf32>) -> tensor<6x8xf32> {
  // expected-remark@below {{declined: an operand differs between rows by more than its last dimension}}
  %sum = llmc.add %x, %positions : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  // expected-remark@below {{flattened gelu to 'tensor<6x8xf32>'}}
  %g = llmc.gelu %sum {approximate} : tensor<2x3x8xf32>
  %rows = llmc.reshape %g : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  llmc.return %rows : tensor<6x8xf32>
}

// -----

// Row statistics (…, 1) are rows too; dropout draws by the row-major index, which a reshape keeps.
// CHECK-LABEL: llmc.program @statistics
// CHECK: llmc.mul %{{.*}}, %{{.*}} : (tensor<6x8xf32>, tensor<6x1xf32>) -> tensor<6x8xf32>
// CHECK: llmc.dropout {{.*}} : (tensor<6x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x8xf32>
llmc.program @statistics "graph" (%mm: tensor<6x8xf32>, %s: tensor<2x3x1xf32>, %lo: tensor<i32>, %hi: tensor<i32>, %step: tensor<i32>) -> tensor<2x3x8xf32> {
  %a = llmc.reshape %mm : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  // expected-remark@below {{flattened mul}}
  %b = llmc.mul %a, %s : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  // expected-remark@below {{flattened dropout}}
  %y = llmc.dropout %b, %lo, %hi, %step {node = 0 : i64, rate = 1.000000e-01 : f64} : (tensor<2x3x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x8xf32>
  llmc.return %y : tensor<2x3x8xf32>
}

// -----

// Nothing beside it has rows.
// CHECK-LABEL: llmc.program @untouched
// CHECK-NEXT: llmc.exp %arg0 : tensor<2x3x8xf32>
llmc.program @untouched "graph" (%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %y = llmc.exp %x : tensor<2x3x8xf32>
  llmc.return %y : tensor<2x3x8xf32>
}

// -----

// An index along a dimension is another one along rows.
// CHECK-LABEL: llmc.program @index
// CHECK-NEXT: llmc.iota {dim = 1 : i64} : tensor<2x3x8xi64>
llmc.program @index "graph" () -> tensor<6x8xi64> {
  %i = llmc.iota {dim = 1 : i64} : tensor<2x3x8xi64>
  %rows = llmc.reshape %i : (tensor<2x3x8xi64>) -> tensor<6x8xi64>
  llmc.return %rows : tensor<6x8xi64>
}
