// RUN: llmc-opt %s -llmc-schedule -split-input-file -verify-diagnostics | FileCheck %s

// An update comes as soon as nothing reads the old value, gets go to their first user.
llmc.variable @w "parameter" tensor<64x64xf32> = dense<0.0> : tensor<64x64xf32>
llmc.variable @v "parameter" tensor<64x64xf32> = dense<0.0> : tensor<64x64xf32>
// expected-remark@+1 {{applied: updates at once}}
llmc.program @step "step-fused" (%x: tensor<64x64xf32> {llmc.name = "x"}) -> (tensor<64x64xf32> {llmc.name = "y"}) {
  %w = llmc.get @w : tensor<64x64xf32>
  %v = llmc.get @v : tensor<64x64xf32>
  %dw = llmc.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = llmc.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dv = llmc.matmul %h, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = llmc.matmul %h, %v : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %w1 = llmc.fusion(%w, %dw) {space = array<i64: 4096>, rowBlock = 1 : i64, colBlock = 4096 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<4096xf32>, %b: tensor<4096xf32>):
    %0 = llmc.sub %a, %b : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
    llmc.yield %0 : tensor<4096xf32>
  }
  llmc.set @w, %w1 : tensor<64x64xf32>
  %v1 = llmc.fusion(%v, %dv) {space = array<i64: 4096>, rowBlock = 1 : i64, colBlock = 4096 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<4096xf32>, %b: tensor<4096xf32>):
    %0 = llmc.sub %a, %b : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
    llmc.yield %0 : tensor<4096xf32>
  }
  llmc.set @v, %v1 : tensor<64x64xf32>
  llmc.return %y : tensor<64x64xf32>
}
// CHECK-LABEL: llmc.program @step
// CHECK: %[[DW:.*]] = llmc.matmul %{{.*}}, %{{.*}}
// CHECK: %[[W:.*]] = llmc.get @w
// CHECK-NEXT: %[[H:.*]] = llmc.matmul %{{.*}}, %[[W]]
// CHECK-NEXT: llmc.fusion(%[[W]], %[[DW]])
// CHECK: llmc.set @w
// CHECK: %[[V:.*]] = llmc.get @v
// CHECK: llmc.fusion(%[[V]]
// CHECK: llmc.set @v
// CHECK: llmc.return

// -----

// A value that dies early is used early when that lowers the peak.
// expected-remark@+1 {{applied: what frees memory first: at most 270336 live bytes, 528384 in}}
llmc.program @peak "forward" (%x: tensor<4x256xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"}) {
  %a = llmc.matmul %x, %x {transposeLhs} : (tensor<4x256xf32>, tensor<4x256xf32>) -> tensor<256x256xf32>
  %b = llmc.matmul %x, %x {transposeLhs} : (tensor<4x256xf32>, tensor<4x256xf32>) -> tensor<256x256xf32>
  %xa = llmc.matmul %x, %a : (tensor<4x256xf32>, tensor<256x256xf32>) -> tensor<4x256xf32>
  %xb = llmc.matmul %x, %b : (tensor<4x256xf32>, tensor<256x256xf32>) -> tensor<4x256xf32>
  %y = llmc.matmul %xa, %xb {transposeRhs} : (tensor<4x256xf32>, tensor<4x256xf32>) -> tensor<4x4xf32>
  llmc.return %y : tensor<4x4xf32>
}
// CHECK-LABEL: llmc.program @peak
// CHECK: %[[A:.*]] = llmc.matmul %{{.*}}, %{{.*}} {transposeLhs}
// CHECK-NEXT: llmc.matmul %{{.*}}, %[[A]]
// CHECK-NEXT: %[[B:.*]] = llmc.matmul %{{.*}}, %{{.*}} {transposeLhs}
// CHECK-NEXT: llmc.matmul %{{.*}}, %[[B]]

// -----

// Each user of an empty has its own.
// expected-remark@+1 {{applied}}
llmc.program @empties "forward" (%x: tensor<2x3xf32> {llmc.name = "x"}) -> (tensor<2x4xf32> {llmc.name = "y"}, tensor<2x4xf32> {llmc.name = "z"}) {
  %e = llmc.empty : tensor<2x4xf32>
  %y = llmc.place_into %x, %e {starts = array<i64: 0, 1>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = llmc.place_into %x, %e {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  llmc.return %y, %z : tensor<2x4xf32>, tensor<2x4xf32>
}
// CHECK-LABEL: llmc.program @empties
// CHECK: llmc.empty
// CHECK-NEXT: llmc.place_into
// CHECK-NEXT: llmc.empty
// CHECK-NEXT: llmc.place_into

// -----

llmc.variable @w "parameter" tensor<4xf32>
llmc.program @twice "step" (%x: tensor<4xf32> {llmc.name = "x"}) -> () {
  llmc.set @w, %x : tensor<4xf32>
  // expected-error@+1 {{variable @w has been set in this program before}}
  llmc.set @w, %x : tensor<4xf32>
  llmc.return
}

// -----

// The old value is needed to compute what the new one waits for.
llmc.variable @w "parameter" tensor<4x4xf32>
// expected-error@+1 {{reads an old value of a variable to compute what is read before it: no order is right}}
llmc.program @circle "step" () -> (tensor<4x4xf32> {llmc.name = "y"}) {
  %old = llmc.get @w : tensor<4x4xf32>
  %1 = llmc.matmul %old, %old : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  llmc.set @w, %1 : tensor<4x4xf32>
  %new = llmc.get @w : tensor<4x4xf32>
  %2 = llmc.matmul %new, %old : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  llmc.return %2 : tensor<4x4xf32>
}

// -----

// Packing weights reads nothing that is computed: it waits for its reader, whatever the order was.
llmc.variable @w "parameter" tensor<64x64xf32> = dense<0.0> : tensor<64x64xf32>
// expected-remark@+1 {{applied: updates at once}}
llmc.program @pack "forward" (%x: tensor<64x64xbf16> {llmc.name = "x"}) -> (tensor<64x64xbf16> {llmc.name = "y"}) {
  %w = llmc.get @w : tensor<64x64xf32>
  %p = llmc.pack %w : (tensor<64x64xf32>) -> tensor<64x64xbf16, #llmc.packed<blocked16x64x2>>
  %a = llmc.matmul %x, %x : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %b = llmc.matmul %a, %x : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %y = llmc.matmul %b, %p : (tensor<64x64xbf16>, tensor<64x64xbf16, #llmc.packed<blocked16x64x2>>) -> tensor<64x64xbf16>
  llmc.return %y : tensor<64x64xbf16>
}
// CHECK-LABEL: llmc.program @pack
// CHECK: llmc.matmul
// CHECK-NEXT: llmc.matmul
// CHECK-NEXT: llmc.get @w
// CHECK-NEXT: llmc.pack
// CHECK-NEXT: llmc.matmul

// -----

// A message is started when it is complete, and waited for behind the next start at the earliest.
// expected-remark@+1 {{applied: updates at once}}
llmc.program @messages "step-ranks" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"}) {
  %g0 = llmc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %g1 = llmc.matmul %x, %x {transposeLhs} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s0 = llmc.all_reduce_start %g0 at 0 : tensor<4x4xf32>
  %s1 = llmc.all_reduce_start %g1 at 1 : tensor<4x4xf32>
  %r0 = llmc.all_reduce_wait %s0 at 0 {llmc.deferred} : tensor<4x4xf32>
  %r1 = llmc.all_reduce_wait %s1 at 1 {llmc.deferred} : tensor<4x4xf32>
  %z = llmc.matmul %x, %x {transposeRhs} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = llmc.matmul %r0, %r1 init %z : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  llmc.return %y : tensor<4x4xf32>
}
// CHECK-LABEL: llmc.program @messages
// CHECK: %[[G0:.*]] = llmc.matmul
// CHECK-NEXT: %[[S0:.*]] = llmc.all_reduce_start %[[G0]] at 0
// CHECK-NEXT: %[[G1:.*]] = llmc.matmul {{.*}} {transposeLhs}
// CHECK-NEXT: %[[S1:.*]] = llmc.all_reduce_start %[[G1]] at 1
// CHECK-NEXT: llmc.all_reduce_wait %[[S0]] at 0
// CHECK-NEXT: llmc.all_reduce_wait %[[S1]] at 1

// -----

// Where updates free gradients, each wait comes behind the next start, and the update at once.
llmc.variable @a "parameter" tensor<64x64xf32>
llmc.variable @b "parameter" tensor<64x64xf32>
llmc.variable @c "parameter" tensor<64x64xf32>
// expected-remark@+1 {{applied: updates at once: at most 32768 live bytes, 49152 in}}
llmc.program @updates "step-fused-ranks" (%x: tensor<64x64xf32> {llmc.name = "x"}) -> () {
  %g0 = llmc.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g1 = llmc.matmul %x, %x {transposeLhs} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g2 = llmc.matmul %x, %x {transposeRhs} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s0 = llmc.all_reduce_start %g0 at 0 : tensor<64x64xf32>
  %s1 = llmc.all_reduce_start %g1 at 1 : tensor<64x64xf32>
  %r0 = llmc.all_reduce_wait %s0 at 0 {llmc.deferred} : tensor<64x64xf32>
  %a = llmc.get @a : tensor<64x64xf32>
  %a1 = llmc.matmul %x, %r0 init %a : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  llmc.set @a, %a1 : tensor<64x64xf32>
  %s2 = llmc.all_reduce_start %g2 at 2 : tensor<64x64xf32>
  %r1 = llmc.all_reduce_wait %s1 at 1 {llmc.deferred} : tensor<64x64xf32>
  %b = llmc.get @b : tensor<64x64xf32>
  %b1 = llmc.matmul %x, %r1 init %b : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  llmc.set @b, %b1 : tensor<64x64xf32>
  %r2 = llmc.all_reduce_wait %s2 at 2 {llmc.deferred} : tensor<64x64xf32>
  %c = llmc.get @c : tensor<64x64xf32>
  %c1 = llmc.matmul %x, %r2 init %c : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  llmc.set @c, %c1 : tensor<64x64xf32>
  llmc.return
}
// CHECK-LABEL: llmc.program @updates
// CHECK: llmc.all_reduce_start {{.*}} at 0
// CHECK-NEXT: llmc.matmul {{.*}} {transposeLhs}
// CHECK-NEXT: llmc.all_reduce_start {{.*}} at 1
// CHECK-NEXT: llmc.all_reduce_wait {{.*}} at 0
// CHECK-NEXT: llmc.get @a
// CHECK-NEXT: llmc.matmul
// CHECK-NEXT: llmc.set @a
// CHECK-NEXT: llmc.matmul {{.*}} {transposeRhs}
// CHECK-NEXT: llmc.all_reduce_start {{.*}} at 2
// CHECK-NEXT: llmc.all_reduce_wait {{.*}} at 1
// CHECK: llmc.set @b
// CHECK-NEXT: llmc.all_reduce_wait {{.*}} at 2
