// RUN: llmc-opt %s -split-input-file -llmc-raise-norm -verify-diagnostics | FileCheck %s

// The mean is computed twice and the variance from it, as "LLMs from scratch" does.
// CHECK-LABEL: llmc.program @layer_norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8xf32>, %[[SCALE:.*]]: tensor<8xf32>, %[[SHIFT:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[Y:.*]] = llmc.layer_norm %[[X]], %[[SCALE]], %[[SHIFT]] {epsilon = 5.000000e-01 : f64}
// CHECK-NEXT: llmc.return %[[Y]]
llmc.program @layer_norm "graph" (%x: tensor<2x4x8xf32>, %scale: tensor<8xf32>, %shift: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %mean = llmc.reduce_mean %x {axes = array<i64: 2>} : (tensor<2x4x8xf32>) -> tensor<2x4x1xf32>
  %again = llmc.reduce_mean %x {axes = array<i64: 2>} : (tensor<2x4x8xf32>) -> tensor<2x4x1xf32>
  %d = llmc.sub %x, %again : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %square = llmc.mul %d, %d : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %kept = llmc.reduce_mean %square {axes = array<i64: 2>} : (tensor<2x4x8xf32>) -> tensor<2x4x1xf32>
  %dropped = llmc.reshape %kept : (tensor<2x4x1xf32>) -> tensor<2x4xf32>
  %var = llmc.reshape %dropped : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %centered = llmc.sub %x, %mean : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %epsilon = llmc.constant dense<5.000000e-01> : tensor<f32>
  %sum = llmc.add %var, %epsilon : (tensor<2x4x1xf32>, tensor<f32>) -> tensor<2x4x1xf32>
  %std = llmc.sqrt %sum : tensor<2x4x1xf32>
  %n = llmc.div %centered, %std : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %scaled = llmc.mul %scale, %n : (tensor<8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  // expected-remark@below {{raised layer_norm over rows of 8}}
  %y = llmc.add %scaled, %shift : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  llmc.return %y : tensor<2x4x8xf32>
}

// -----

// As Llama writes it, with epsilon in a variable that never changes.
// CHECK-LABEL: llmc.program @rms_norm
// CHECK: llmc.rms_norm %{{.*}}, %{{.*}} {epsilon = 2.500000e-01 : f64}
// CHECK-NEXT: llmc.return
llmc.variable @epsilon "constant" tensor<1xf32> = dense<2.500000e-01> : tensor<1xf32>
llmc.program @rms_norm "graph" (%x: tensor<4x8xf32>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  %square = llmc.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %mean = llmc.reduce_mean %square {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %epsilon = llmc.get @epsilon : tensor<1xf32>
  %sum = llmc.add %mean, %epsilon : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %root = llmc.sqrt %sum : tensor<4x1xf32>
  %one = llmc.constant dense<1.000000e+00> : tensor<f32>
  %inverse = llmc.div %one, %root : (tensor<f32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %n = llmc.mul %x, %inverse : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  // expected-remark@below {{raised rms_norm over rows of 8}}
  %y = llmc.mul %scale, %n : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  llmc.return %y : tensor<4x8xf32>
}

// -----

// Another row is divided than the one whose root it is.
// CHECK-LABEL: llmc.program @other_row
// CHECK-NOT: norm
// CHECK: llmc.return
llmc.program @other_row "graph" (%x: tensor<4x8xf32>, %z: tensor<4x8xf32>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  %square = llmc.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %mean = llmc.reduce_mean %square {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  // expected-remark@below {{declined: no norm, a factor is neither the row nor its scale}}
  %inverse = llmc.rsqrt %mean : tensor<4x1xf32>
  %n = llmc.mul %z, %inverse : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %y = llmc.mul %scale, %n : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  llmc.return %y : tensor<4x8xf32>
}

// -----

// Nothing scales the row.
// CHECK-LABEL: llmc.program @no_scale
// CHECK-NOT: norm
// CHECK: llmc.return
llmc.program @no_scale "graph" (%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %square = llmc.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %mean = llmc.reduce_mean %square {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  // expected-remark@below {{declined: no norm, there is no scale}}
  %inverse = llmc.rsqrt %mean : tensor<4x1xf32>
  %n = llmc.mul %x, %inverse : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  llmc.return %n : tensor<4x8xf32>
}

// -----

// A mean over rows and columns is no row's.
// CHECK-LABEL: llmc.program @all_elements
// CHECK-NOT: norm
// CHECK: llmc.return
llmc.program @all_elements "graph" (%x: tensor<4x8xf32>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  %square = llmc.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %mean = llmc.reduce_mean %square {axes = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<1x1xf32>
  %inverse = llmc.rsqrt %mean : tensor<1x1xf32>
  %n = llmc.mul %x, %inverse : (tensor<4x8xf32>, tensor<1x1xf32>) -> tensor<4x8xf32>
  %y = llmc.mul %scale, %n : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  llmc.return %y : tensor<4x8xf32>
}
