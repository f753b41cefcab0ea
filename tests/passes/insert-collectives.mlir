// RUN: llmc-opt %s -llmc-insert-collectives='bucket-bytes=48 small-bytes=16' -split-input-file -verify-diagnostics | FileCheck %s

// Gradients travel in the order in which they are computed, as many as 48 bytes hold; the small ones take the loss along. With clipping
// everything reads the sums behind the last wait.
llmc.variable @a "parameter" tensor<4xf32>
llmc.variable @b "parameter" tensor<4xf32>
llmc.variable @c "parameter" tensor<16xf32>
// expected-remark@+2 {{declined: weights are not sent at the start}}
// expected-remark@+1 {{applied: 3 gradients of 96 bytes are summed over ranks in 2 messages}}
llmc.program @step "step" (%x: tensor<4xf32> {llmc.name = "x"}, %z: tensor<16xf32> {llmc.name = "z"})
    -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}, tensor<f32> {llmc.name = "grad_norm", llmc.role = "grad_norm"}) {
  %zero = llmc.constant dense<0.0> : tensor<f32>
  // expected-remark@+1 {{applied: message 1: 3 values, 36 bytes}}
  %loss = llmc.exp %zero : tensor<f32>
  // expected-remark@+1 {{applied: message 0: 1 values, 64 bytes}}
  %gc = llmc.neg %z : tensor<16xf32>
  %gb = llmc.neg %x : tensor<4xf32>
  %ga = llmc.exp %gb : tensor<4xf32>
  // expected-remark@+1 {{declined: every rank computes the norm of the same sums}}
  %norm = llmc.global_norm %ga, %gb, %gc : (tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> tensor<f32>
  %a = llmc.get @a : tensor<4xf32>
  %a1 = llmc.sgd %a, %ga clip %norm : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  llmc.set @a, %a1 : tensor<4xf32>
  %b = llmc.get @b : tensor<4xf32>
  %b1 = llmc.sgd %b, %gb clip %norm : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  llmc.set @b, %b1 : tensor<4xf32>
  %c = llmc.get @c : tensor<16xf32>
  %c1 = llmc.sgd %c, %gc clip %norm : (tensor<16xf32>, tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  llmc.set @c, %c1 : tensor<16xf32>
  llmc.return %loss, %norm : tensor<f32>, tensor<f32>
}
// CHECK-LABEL: llmc.program @step "step"
// CHECK-NOT: all_reduce
// CHECK-LABEL: llmc.program @"step-ranks" "step-ranks"
// CHECK: %[[LOSS:.*]] = llmc.exp
// CHECK: %[[GC:.*]] = llmc.neg
// CHECK-NEXT: %[[S0:.*]] = llmc.all_reduce_start %[[GC]] at 0 : tensor<16xf32>
// CHECK-NEXT: %[[W0:.*]] = llmc.all_reduce_wait %[[S0]] at 0
// CHECK-NEXT: %[[GB:.*]] = llmc.neg
// CHECK-NEXT: %[[GA:.*]] = llmc.exp %[[GB]]
// CHECK-NEXT: %[[S1:.*]]:3 = llmc.all_reduce_start %[[LOSS]], %[[GB]], %[[GA]] at 1 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: %[[W1:.*]]:3 = llmc.all_reduce_wait %[[S1]]#0, %[[S1]]#1, %[[S1]]#2 at 1
// CHECK-NEXT: %[[NORM:.*]] = llmc.global_norm %[[W1]]#2, %[[W1]]#1, %[[W0]] :
// CHECK: llmc.sgd %{{.*}}, %[[W1]]#2 clip %[[NORM]]
// CHECK: llmc.return %[[W1]]#0, %[[NORM]]

// -----

// Without clipping an update follows its message's wait.
llmc.variable @a "parameter" tensor<4xf32>
llmc.variable @b "parameter" tensor<16xf32>
// expected-remark@+2 {{declined: weights are not sent at the start}}
// expected-remark@+1 {{applied: 2 gradients of 80 bytes}}
llmc.program @fused "step-fused" (%x: tensor<4xf32> {llmc.name = "x"}, %z: tensor<16xf32> {llmc.name = "z"})
    -> (tensor<f32> {llmc.name = "grad_norm", llmc.role = "grad_norm"}) {
  // expected-remark@+1 {{applied: message 0}}
  %ga = llmc.neg %x : tensor<4xf32>
  // expected-remark@+1 {{applied: message 1}}
  %gb = llmc.exp %z : tensor<16xf32>
  // expected-remark@+1 {{declined: every rank computes the norm of the same sums}}
  %norm = llmc.global_norm %ga, %gb : (tensor<4xf32>, tensor<16xf32>) -> tensor<f32>
  %a = llmc.get @a : tensor<4xf32>
  %a1 = llmc.sgd %a, %ga : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  llmc.set @a, %a1 : tensor<4xf32>
  %b = llmc.get @b : tensor<16xf32>
  %b1 = llmc.sgd %b, %gb : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  llmc.set @b, %b1 : tensor<16xf32>
  llmc.return %norm : tensor<f32>
}
// CHECK-LABEL: llmc.program @"step-fused-ranks"
// CHECK: llmc.all_reduce_start {{.*}} at 0
// CHECK-NEXT: %[[W0:.*]] = llmc.all_reduce_wait {{.*}} at 0
// CHECK-NEXT: %[[A:.*]] = llmc.get @a
// CHECK-NEXT: %[[A1:.*]] = llmc.sgd %[[A]], %[[W0]]
// CHECK-NEXT: llmc.set @a, %[[A1]]
// CHECK: llmc.all_reduce_start {{.*}} at 1
// CHECK-NEXT: %[[W1:.*]] = llmc.all_reduce_wait {{.*}} at 1
// CHECK-NEXT: llmc.get @b
// CHECK-NEXT: llmc.sgd
// CHECK-NEXT: llmc.set @b
// CHECK-NEXT: llmc.global_norm %[[W0]], %[[W1]]

// -----

// Kept gradients are summed where they are kept, and lie in the order of the messages.
llmc.variable @a "parameter" tensor<4xf32>
llmc.variable @b "parameter" tensor<4xf32>
llmc.variable @"a/gradient" "gradient" tensor<4xf32>
llmc.variable @"b/gradient" "gradient" tensor<4xf32>
// expected-remark@+2 {{declined: weights are not sent at the start}}
// expected-remark@+1 {{applied: 2 gradients}}
llmc.program @step "step" (%x: tensor<4xf32> {llmc.name = "x"}) -> (tensor<f32> {llmc.name = "grad_norm", llmc.role = "grad_norm"}) {
  // expected-remark@+1 {{applied: message 0}}
  %gb = llmc.neg %x : tensor<4xf32>
  %ga = llmc.exp %x : tensor<4xf32>
  // expected-remark@+1 {{declined: every rank computes the norm of the same sums}}
  %norm = llmc.global_norm %ga, %gb : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  llmc.return %norm : tensor<f32>
}
// expected-remark@+1 {{applied: 2 gradients}}
llmc.program @update "update" () -> (tensor<f32> {llmc.name = "grad_norm", llmc.role = "grad_norm"}) {
  %ga = llmc.get @"a/gradient" : tensor<4xf32>
  // expected-remark@+1 {{applied: message 0}}
  %gb = llmc.get @"b/gradient" : tensor<4xf32>
  // expected-remark@+1 {{declined: every rank computes the norm of the same sums}}
  %norm = llmc.global_norm %ga, %gb : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  llmc.return %norm : tensor<f32>
}
// CHECK: llmc.variable @"b/gradient"
// CHECK: llmc.variable @"a/gradient"
// CHECK-LABEL: llmc.program @"update-ranks"
// CHECK: %[[GA:.*]] = llmc.get @"a/gradient"
// CHECK-NEXT: %[[GB:.*]] = llmc.get @"b/gradient"
// CHECK-NEXT: %[[S:.*]]:2 = llmc.all_reduce_start %[[GB]], %[[GA]] at 0
// CHECK-NEXT: %[[W:.*]]:2 = llmc.all_reduce_wait %[[S]]#0, %[[S]]#1 at 0
// CHECK-NEXT: llmc.set @"b/gradient", %[[W]]#0
// CHECK-NEXT: llmc.set @"a/gradient", %[[W]]#1
// CHECK-NEXT: llmc.global_norm %[[W]]#1, %[[W]]#0

// -----

// Nothing to sum.
// expected-remark@+1 {{declined: no program computes the norm of gradients}}
module {
  llmc.program @forward "forward" (%x: tensor<4xf32> {llmc.name = "x"}) -> (tensor<4xf32> {llmc.name = "y"}) {
    llmc.return %x : tensor<4xf32>
  }
}
// CHECK-NOT: ranks
