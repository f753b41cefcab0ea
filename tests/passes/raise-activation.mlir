// RUN: llmc-opt %s -split-input-file -llmc-raise-activation -verify-diagnostics | FileCheck %s

// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the numbers rounded as f32 stores them.
// CHECK-LABEL: llmc.program @by_tanh
// CHECK-NEXT: %[[Y:.*]] = llmc.gelu %arg0 {approximate}
// CHECK-NEXT: llmc.return %[[Y]]
llmc.program @by_tanh "graph" (%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = llmc.constant dense<5.000000e-01> : tensor<f32>
  %k = llmc.constant dense<0.044714998> : tensor<f32>
  %c = llmc.constant dense<0.797884583> : tensor<f32>
  %one = llmc.constant dense<1.000000e+00> : tensor<f32>
  %xh = llmc.mul %x, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %x2 = llmc.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %x3 = llmc.mul %x2, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %kx = llmc.mul %x3, %k : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %sum = llmc.add %x, %kx : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %u = llmc.mul %c, %sum : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = llmc.tanh %u : tensor<4x8xf32>
  %gate = llmc.add %t, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  // expected-remark@below {{raised gelu by tanh}}
  %y = llmc.mul %xh, %gate : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  llmc.return %y : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: llmc.program @by_erf
// CHECK-NEXT: llmc.gelu %arg0 : tensor<4x8xf32>
// CHECK-NEXT: llmc.return
llmc.program @by_erf "graph" (%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = llmc.constant dense<5.000000e-01> : tensor<f32>
  %root = llmc.constant dense<1.41421354> : tensor<f32>
  %one = llmc.constant dense<1.000000e+00> : tensor<f32>
  %u = llmc.div %x, %root : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %t = llmc.erf %u : tensor<4x8xf32>
  %gate = llmc.add %t, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %halved = llmc.mul %half, %gate : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@below {{raised gelu by erf}}
  %y = llmc.mul %x, %halved : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  llmc.return %y : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: llmc.program @silu
// CHECK-NEXT: llmc.silu %arg0
// CHECK-NEXT: llmc.mul
llmc.program @silu "graph" (%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = llmc.sigmoid %x : tensor<4x8xf32>
  // expected-remark@below {{raised silu}}
  %y = llmc.mul %x, %s : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %gated = llmc.mul %y, %z : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  llmc.return %gated : tensor<4x8xf32>
}

// -----

// The gate is another value's.
// CHECK-LABEL: llmc.program @other_gate
// CHECK-NOT: silu
// CHECK: llmc.return
llmc.program @other_gate "graph" (%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = llmc.sigmoid %z : tensor<4x8xf32>
  %y = llmc.mul %x, %s : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  llmc.return %y : tensor<4x8xf32>
}

// -----

// erf(x), not erf(x / sqrt 2).
// CHECK-LABEL: llmc.program @other_slope
// CHECK-NOT: gelu
// CHECK: llmc.return
llmc.program @other_slope "graph" (%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = llmc.constant dense<5.000000e-01> : tensor<f32>
  %one = llmc.constant dense<1.000000e+00> : tensor<f32>
  // expected-remark@below {{declined: erf is no part of a gelu}}
  %t = llmc.erf %x : tensor<4x8xf32>
  %gate = llmc.add %t, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %halved = llmc.mul %half, %gate : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = llmc.mul %x, %halved : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  llmc.return %y : tensor<4x8xf32>
}
