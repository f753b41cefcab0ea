// RUN: llmc-opt %s -llmc-plan-memory -llmc-verify-plannable -split-input-file -verify-diagnostics | FileCheck %s

// The state: parameters, constants, moments, inputs, hyperparameters, outputs; kept gradients have their own space. A new value is computed
// where the old one lies, and a result where its reader will look for it.
// CHECK: module attributes {llmc.gradient_bytes = 64 : i64, llmc.state_bytes = 448 : i64}
// CHECK: llmc.variable @w "parameter" tensor<4xf32> {llmc.buffer = #llmc.buffer<state, 0, 16>}
// CHECK: llmc.variable @"w/m" "moment" tensor<4xf32> {llmc.buffer = #llmc.buffer<state, 128, 16>}
// CHECK: llmc.variable @c "constant" tensor<4xf32> {llmc.buffer = #llmc.buffer<state, 64, 16>}
// CHECK: llmc.variable @"w/gradient" "gradient" tensor<4xf32> {llmc.buffer = #llmc.buffer<gradients, 0, 16>}
module {
  llmc.variable @w "parameter" tensor<4xf32>
  llmc.variable @"w/m" "moment" tensor<4xf32>
  llmc.variable @c "constant" tensor<4xf32>
  llmc.variable @"w/gradient" "gradient" tensor<4xf32>
  // CHECK: llmc.program @step "step"
  // CHECK-SAME: attributes {llmc.arena_bytes = 0 : i64, llmc.buffers = [#llmc.buffer<state, 192, 16>, #llmc.buffer<state, 256, 16>], llmc.lower_bound_bytes = 0 : i64}
  // expected-remark@+1 {{applied: 0 values in an arena of 0 bytes, the largest live sum is 0, 0 copies}}
  llmc.program @step "step" (%x: tensor<4xf32> {llmc.name = "x"}, %z: tensor<4xf32> {llmc.name = "z"}) -> (tensor<4xf32> {llmc.name = "y"}) {
    %w = llmc.get @w : tensor<4xf32>
    %g = llmc.get @"w/gradient" : tensor<4xf32>
    %lr = llmc.scalar "lr" : tensor<f32>
    // CHECK: llmc.fusion
    // CHECK-SAME: llmc.buffers = [#llmc.buffer<state, 0, 16>, #llmc.buffer<state, 384, 16>]
    %w1, %y = llmc.fusion(%w, %g, %lr) {space = array<i64: 4>, rowBlock = 1 : i64, colBlock = 4 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %l: tensor<1xf32>):
      %0 = llmc.mul %b, %l : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
      %1 = llmc.sub %a, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      llmc.yield %1, %0 : tensor<4xf32>, tensor<4xf32>
    }
    llmc.set @w, %w1 : tensor<4xf32>
    llmc.return %y : tensor<4xf32>
  }
}

// -----

// Values whose lives do not meet share memory; an elementwise result takes the place of the operand that dies; views are no memory.
// CHECK-LABEL: llmc.program @chain
// CHECK-SAME: llmc.arena_bytes = 2048 : i64
// CHECK-SAME: llmc.lower_bound_bytes = 2048 : i64
// CHECK: llmc.matmul {{.*}} {llmc.buffers = [#llmc.buffer<arena, [[A:[0-9]+]], 1024>]}
// CHECK: llmc.matmul {{.*}} {llmc.buffers = [#llmc.buffer<arena, [[B:[0-9]+]], 1024>]}
// CHECK: llmc.reshape {{.*}} {llmc.buffers = [#llmc.buffer<arena, [[B]], 1024>]}
// CHECK: llmc.fusion{{.*}} {colBlock = 256 : i64, llmc.buffers = [#llmc.buffer<arena, [[B]], 1024>]
// CHECK: llmc.matmul {{.*}} {llmc.buffers = [#llmc.buffer<arena, [[A]], 1024>]}
// expected-remark@+1 {{applied: 3 values in an arena of 2048 bytes, the largest live sum is 2048, 0 copies}}
llmc.program @chain "step" (%x: tensor<16x16xf32> {llmc.name = "x"}) -> (tensor<16x16xf32> {llmc.name = "y"}) {
  %a = llmc.matmul %x, %x : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %b = llmc.matmul %a, %x : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %v = llmc.reshape %b : (tensor<16x16xf32>) -> tensor<256xf32>
  %c = llmc.fusion(%v) {space = array<i64: 256>, rowBlock = 1 : i64, colBlock = 256 : i64} : (tensor<256xf32>) -> tensor<16x16xf32> {
  ^bb0(%0: tensor<256xf32>):
    %1 = llmc.neg %0 : tensor<256xf32>
    llmc.yield %1 : tensor<256xf32>
  }
  %d = llmc.matmul %c, %x : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = llmc.matmul %d, %x : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  llmc.return %y : tensor<16x16xf32>
}

// -----

// An output that only the forward program has lies at the start of its arena, till the end of the program; what another program has too, and
// the loss, lie in the state.
// CHECK: module attributes {llmc.gradient_bytes = 0 : i64, llmc.state_bytes = 256 : i64}
module {
  // CHECK: llmc.program @forward
  // CHECK-SAME: llmc.arena_bytes = 128 : i64
  // expected-remark@+1 {{applied: 3 values in an arena of 128 bytes, the largest live sum is 128, 0 copies}}
  llmc.program @forward "forward" (%x: tensor<4x4xf32> {llmc.name = "x"})
      -> (tensor<4x4xf32> {llmc.name = "loss", llmc.role = "loss"}, tensor<4x4xf32> {llmc.name = "norm"}, tensor<4x4xf32> {llmc.name = "logits"}) {
    // CHECK: llmc.matmul {{.*}}llmc.buffers = [#llmc.buffer<arena, 64, 64>]
    %a = llmc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: llmc.matmul {{.*}}llmc.buffers = [#llmc.buffer<arena, 0, 64>]
    %logits = llmc.matmul %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: llmc.matmul {{.*}}llmc.buffers = [#llmc.buffer<arena, 64, 64>]
    %b = llmc.matmul %logits, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: llmc.matmul {{.*}}llmc.buffers = [#llmc.buffer<state, 64, 64>]
    %loss = llmc.matmul %b, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: llmc.matmul {{.*}}llmc.buffers = [#llmc.buffer<state, 128, 64>]
    %norm = llmc.matmul %loss, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    llmc.return %loss, %norm, %logits : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
  }
  // CHECK: llmc.program @step
  // expected-remark@+1 {{applied: 0 values in an arena of 0 bytes}}
  llmc.program @step "step" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "norm"}, tensor<4x4xf32> {llmc.name = "update"}) {
    // CHECK: llmc.matmul {{.*}}llmc.buffers = [#llmc.buffer<state, 128, 64>]
    %norm = llmc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: llmc.matmul {{.*}}llmc.buffers = [#llmc.buffer<state, 192, 64>]
    %update = llmc.matmul %norm, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    llmc.return %norm, %update : tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

// An operand that is needed after the launch that overwrites it is copied; so are an argument that is a result, and a value that is set twice.
llmc.variable @p "parameter" tensor<4x4xf32>
llmc.variable @q "parameter" tensor<4x4xf32>
// CHECK-LABEL: llmc.program @copies
// expected-remark@+1 {{4 copies}}
llmc.program @copies "step" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"}, tensor<4x4xf32> {llmc.name = "x1"}) {
  %a = llmc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[A:.*]] = llmc.matmul
  // CHECK: %[[E:.*]] = llmc.empty {llmc.buffers = [#llmc.buffer<state, 0, 64>]}
  // CHECK: %[[COPY:.*]] = llmc.place_into %[[A]], %[[E]]
  // CHECK: llmc.matmul {{.*}} init %[[COPY]] {llmc.buffers = [#llmc.buffer<state, 0, 64>]}
  // expected-remark@+1 {{info: 64 bytes are copied: the launch overwrites it and it is needed later}}
  %b = llmc.matmul %x, %x init %a : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  llmc.set @p, %b : tensor<4x4xf32>
  // CHECK: llmc.place_into {{.*}}llmc.buffers = [#llmc.buffer<state, 64, 64>]
  // expected-remark@+1 {{the new value of q cannot be computed in its place}}
  llmc.set @q, %b : tensor<4x4xf32>
  %c = llmc.matmul %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark@+2 {{result 1 is no value of its own}}
  // expected-remark@+1 {{result 0 is no value of its own}}
  llmc.return %b, %x : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// What is added to a kept gradient is added in its place.
llmc.variable @"w/gradient" "gradient" tensor<4x4xf32>
// CHECK-LABEL: llmc.program @accumulate
// expected-remark@+1 {{0 copies}}
llmc.program @accumulate "accumulate" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> () {
  %g = llmc.get @"w/gradient" : tensor<4x4xf32>
  // CHECK: llmc.matmul {{.*}} {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]
  %g1 = llmc.matmul %x, %x init %g : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  llmc.set @"w/gradient", %g1 : tensor<4x4xf32>
  llmc.return
}

// -----

// Where somebody still reads the old value, the new one is computed elsewhere and copied.
llmc.variable @w "parameter" tensor<4x4xf32>
// CHECK-LABEL: llmc.program @late_reader
// expected-remark@+1 {{1 copies}}
llmc.program @late_reader "step" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"}) {
  %w = llmc.get @w : tensor<4x4xf32>
  // CHECK: llmc.matmul {{.*}} {llmc.buffers = [#llmc.buffer<arena, 0, 64>]
  %w1 = llmc.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: llmc.matmul
  %y = llmc.matmul %w1, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: llmc.place_into {{.*}}llmc.buffers = [#llmc.buffer<state, 0, 64>]
  // expected-remark@+1 {{copied}}
  llmc.set @w, %w1 : tensor<4x4xf32>
  llmc.return %y : tensor<4x4xf32>
}

// -----

// Parts are placed into one memory, which may be a result's.
// CHECK-LABEL: llmc.program @parts
// expected-remark@+1 {{0 copies}}
llmc.program @parts "step" (%x: tensor<2x3xf32> {llmc.name = "x"}) -> (tensor<2x6xf32> {llmc.name = "y"}) {
  // CHECK: llmc.empty {llmc.buffers = [#llmc.buffer<state, 64, 48>]}
  %e = llmc.empty : tensor<2x6xf32>
  %1 = llmc.place_into %x, %e {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  // CHECK-COUNT-2: llmc.buffers = [#llmc.buffer<state, 64, 48>]
  %2 = llmc.place_into %x, %1 {starts = array<i64: 0, 3>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  llmc.return %2 : tensor<2x6xf32>
}

// -----

llmc.variable @w "parameter" tensor<4x4xf32>
llmc.program @stale "step" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"}) {
  %w = llmc.get @w : tensor<4x4xf32>
  %w1 = llmc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  llmc.set @w, %w1 : tensor<4x4xf32>
  // expected-error@+1 {{reads the old value of @w after its new value was set}}
  %y = llmc.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  llmc.return %y : tensor<4x4xf32>
}

// -----

// expected-error@+1 {{argument 0 has no llmc.name}}
llmc.program @nameless "forward" (%x: tensor<4xf32>) -> () {
  llmc.return
}

// -----

llmc.program @a "forward" (%x: tensor<4xf32> {llmc.name = "x"}) -> () {
  llmc.return
}
// expected-error@+1 {{argument "x" has 32 bytes, in another program 16}}
llmc.program @b "step" (%x: tensor<8xf32> {llmc.name = "x"}) -> () {
  llmc.return
}

// -----

// A message lies in one piece from its first part on. What it brings back for a result of the program is copied there.
// expected-remark@+1 {{applied: 4 values in an arena of 256 bytes, the largest live sum is 192, 1 copies}}
llmc.program @message "step-ranks" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "loss"}, tensor<4x4xf32> {llmc.name = "y"}) {
  %g0 = llmc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = llmc.matmul %x, %g0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %u = llmc.matmul %t, %t : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %g1 = llmc.matmul %u, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s:2 = llmc.all_reduce_start %g0, %g1 at 0 : tensor<4x4xf32>, tensor<4x4xf32>
  %r:2 = llmc.all_reduce_wait %s#0, %s#1 at 0 : tensor<4x4xf32>, tensor<4x4xf32>
  %y = llmc.matmul %r#0, %r#1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark@+1 {{info: 64 bytes are copied: result 0 is no value of its own}}
  llmc.return %r#0, %y : tensor<4x4xf32>, tensor<4x4xf32>
}
// CHECK-LABEL: llmc.program @message
// CHECK: llmc.all_reduce_start {{.*}} {llmc.buffers = [#llmc.buffer<arena, [[AT:[0-9]+]], 64>, #llmc.buffer<arena, {{[0-9]+}}, 64>]}
// CHECK: llmc.all_reduce_wait {{.*}} {llmc.buffers = [#llmc.buffer<arena, [[AT]], 64>, #llmc.buffer<arena,
// CHECK: llmc.place_into

// -----

llmc.variable @"w/gradient" "gradient" tensor<4x4xf32>
llmc.program @mixed "update-ranks" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> () {
  %kept = llmc.get @"w/gradient" : tensor<4x4xf32>
  %g = llmc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error@+1 {{some of its parts lie in variables, others do not}}
  %s:2 = llmc.all_reduce_start %kept, %g at 0 : tensor<4x4xf32>, tensor<4x4xf32>
  %r:2 = llmc.all_reduce_wait %s#0, %s#1 at 0 : tensor<4x4xf32>, tensor<4x4xf32>
  llmc.set @"w/gradient", %r#0 : tensor<4x4xf32>
  llmc.return
}

// -----

llmc.program @again "step-ranks" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> () {
  %g = llmc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = llmc.all_reduce_start %g at 0 : tensor<4x4xf32>
  %r = llmc.all_reduce_wait %s at 0 : tensor<4x4xf32>
  // expected-error@+1 {{a value is part of two messages, or of one message twice}}
  %t = llmc.all_reduce_start %r at 1 : tensor<4x4xf32>
  %u = llmc.all_reduce_wait %t at 1 : tensor<4x4xf32>
  llmc.return
}
