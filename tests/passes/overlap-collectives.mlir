// RUN: llmc-opt %s -llmc-overlap-collectives -verify-diagnostics | FileCheck %s
// RUN: llmc-opt %s -llmc-overlap-collectives -llmc-schedule -mlir-disable-threading | FileCheck %s --check-prefix=ON
// RUN: llmc-opt %s -llmc-schedule -mlir-disable-threading | FileCheck %s --check-prefix=OFF

// expected-remark@+1 {{applied: 2 messages may travel while other launches run}}
llmc.program @messages "step-ranks" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"}) {
  %g0 = llmc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s0 = llmc.all_reduce_start %g0 at 0 : tensor<4x4xf32>
  %r0 = llmc.all_reduce_wait %s0 at 0 : tensor<4x4xf32>
  %g1 = llmc.matmul %x, %x {transposeLhs} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s1 = llmc.all_reduce_start %g1 at 1 : tensor<4x4xf32>
  %r1 = llmc.all_reduce_wait %s1 at 1 : tensor<4x4xf32>
  %z = llmc.matmul %x, %x {transposeRhs} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = llmc.matmul %r0, %r1 init %z : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  llmc.return %y : tensor<4x4xf32>
}
// CHECK-LABEL: llmc.program @messages
// CHECK: llmc.all_reduce_start %{{.*}} at 0 : tensor
// CHECK-NEXT: llmc.all_reduce_wait %{{.*}} at 0 {llmc.deferred} : tensor
// CHECK: llmc.all_reduce_start %{{.*}} at 1 : tensor
// CHECK-NEXT: llmc.all_reduce_wait %{{.*}} at 1 {llmc.deferred} : tensor

// ON: llmc.all_reduce_start {{.*}} at 0
// ON-NEXT: llmc.matmul {{.*}} {transposeLhs}
// ON-NEXT: llmc.all_reduce_start {{.*}} at 1
// ON-NEXT: llmc.all_reduce_wait {{.*}} at 0

// OFF: llmc.all_reduce_start {{.*}} at 0
// OFF-NEXT: llmc.all_reduce_wait {{.*}} at 0
// OFF-NEXT: llmc.matmul {{.*}} {transposeLhs}
// OFF-NEXT: llmc.all_reduce_start {{.*}} at 1
// OFF-NEXT: llmc.all_reduce_wait {{.*}} at 1

// No program of ranks: nothing to say.
llmc.program @alone "step" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "z"}) {
  %z = llmc.neg %x : tensor<4x4xf32>
  llmc.return %z : tensor<4x4xf32>
}
// CHECK-LABEL: llmc.program @alone
// CHECK-NOT: llmc.deferred
