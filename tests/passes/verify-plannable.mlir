// RUN: llmc-opt %s -llmc-verify-plannable -split-input-file -verify-diagnostics

// An op that is no launch.
module attributes {llmc.state_bytes = 128 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.program @f "forward" (%x: tensor<4xf32> {llmc.name = "x"}) -> (tensor<4xf32> {llmc.name = "y"})
      attributes {llmc.arena_bytes = 0 : i64, llmc.buffers = [#llmc.buffer<state, 0, 16>]} {
    // expected-error@+1 {{'llmc.neg' op has no kernel}}
    %y = llmc.neg %x {llmc.buffers = [#llmc.buffer<state, 64, 16>]} : tensor<4xf32>
    llmc.return %y : tensor<4xf32>
  }
}

// -----

// A value without a place.
module attributes {llmc.state_bytes = 128 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.program @f "forward" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"})
      attributes {llmc.arena_bytes = 0 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    // expected-error@+1 {{has no buffer for each of its 1 values}}
    %y = llmc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    llmc.return %y : tensor<4x4xf32>
  }
}

// -----

// A place that is too small.
module attributes {llmc.state_bytes = 128 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.program @f "forward" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"})
      attributes {llmc.arena_bytes = 0 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    // expected-error@+1 {{needs 64 bytes, has #llmc.buffer<state, 64, 32>}}
    %y = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<state, 64, 32>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    llmc.return %y : tensor<4x4xf32>
  }
}

// -----

// A place beyond its space.
module attributes {llmc.state_bytes = 128 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.program @f "forward" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"})
      attributes {llmc.arena_bytes = 0 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    // expected-error@+1 {{lies at #llmc.buffer<state, 128, 64>, which is not aligned or beyond the space's 128 bytes}}
    %y = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<state, 128, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    llmc.return %y : tensor<4x4xf32>
  }
}

// -----

// Two values that live at the same time, in one place.
module attributes {llmc.state_bytes = 128 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.program @f "forward" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"})
      attributes {llmc.arena_bytes = 128 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    // expected-note@+1 {{computed here}}
    %a = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<arena, 0, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %b = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<arena, 0, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error@+1 {{operand 0 at #llmc.buffer<arena, 0, 64> has been overwritten}}
    %y = llmc.matmul %a, %b {llmc.buffers = [#llmc.buffer<state, 64, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    llmc.return %y : tensor<4x4xf32>
  }
}

// -----

// A kernel that cannot write over its operand.
module attributes {llmc.state_bytes = 128 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.program @f "forward" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"})
      attributes {llmc.arena_bytes = 128 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    %a = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<state, 64, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error@+1 {{result 0 at #llmc.buffer<state, 64, 64> overlaps operand 0 at #llmc.buffer<state, 64, 64>}}
    %y = llmc.matmul %a, %x {llmc.buffers = [#llmc.buffer<state, 64, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    llmc.return %y : tensor<4x4xf32>
  }
}

// -----

// A kernel that must write over its operand.
module attributes {llmc.state_bytes = 128 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.program @f "forward" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"})
      attributes {llmc.arena_bytes = 128 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    %a = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<arena, 0, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error@+1 {{result 0 must lie in its operand's buffer #llmc.buffer<arena, 0, 64>, lies at #llmc.buffer<state, 64, 64>}}
    %y = llmc.matmul %x, %x init %a {llmc.buffers = [#llmc.buffer<state, 64, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    llmc.return %y : tensor<4x4xf32>
  }
}

// -----

// A new value that is not where the variable is.
module attributes {llmc.state_bytes = 128 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.variable @w "parameter" tensor<4x4xf32> {llmc.buffer = #llmc.buffer<state, 64, 64>}
  llmc.program @f "step" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> ()
      attributes {llmc.arena_bytes = 128 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    %a = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<arena, 0, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error@+1 {{the value lies at #llmc.buffer<arena, 0, 64>, the variable at #llmc.buffer<state, 64, 64>}}
    llmc.set @w, %a : tensor<4x4xf32>
    llmc.return
  }
}

// -----

// A result outside of the state, and not in the arena of the forward program.
module attributes {llmc.state_bytes = 64 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.program @f "step" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"})
      attributes {llmc.arena_bytes = 128 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    %y = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<arena, 0, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error@+1 {{result 0 does not lie in the state}}
    llmc.return %y : tensor<4x4xf32>
  }
}

// -----

// A variable that somebody wrote over.
module attributes {llmc.state_bytes = 192 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.variable @w "parameter" tensor<4x4xf32> {llmc.buffer = #llmc.buffer<state, 64, 64>}
  llmc.program @f "forward" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"})
      attributes {llmc.arena_bytes = 128 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    %y = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<state, 64, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error@+1 {{variable "w" does not hold its value at the end of the program}}
    llmc.return %y : tensor<4x4xf32>
  }
}

// -----

// A view that lies elsewhere.
module attributes {llmc.state_bytes = 128 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.program @f "forward" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> ()
      attributes {llmc.arena_bytes = 128 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    // expected-error@+1 {{is a view of #llmc.buffer<state, 0, 64> but lies at #llmc.buffer<state, 64, 64>}}
    %y = llmc.reshape %x {llmc.buffers = [#llmc.buffer<state, 64, 64>]} : (tensor<4x4xf32>) -> tensor<16xf32>
    llmc.return
  }
}

// -----

// Collectives out of order.
module attributes {llmc.state_bytes = 64 : i64, llmc.gradient_bytes = 64 : i64} {
  llmc.variable @g "gradient" tensor<4x4xf32> {llmc.buffer = #llmc.buffer<gradients, 0, 64>}
  llmc.program @f "update-ranks" () -> () attributes {llmc.arena_bytes = 0 : i64} {
    %g = llmc.get @g {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    // expected-error@+1 {{has position 1 where 0 is next}}
    %s = llmc.all_reduce_start %g at 1 {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    %r = llmc.all_reduce_wait %s at 1 {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    llmc.set @g, %r : tensor<4x4xf32>
    llmc.return
  }
}

// -----

// A message with a hole.
module attributes {llmc.state_bytes = 64 : i64, llmc.gradient_bytes = 192 : i64} {
  llmc.variable @g "gradient" tensor<4x4xf32> {llmc.buffer = #llmc.buffer<gradients, 0, 64>}
  llmc.variable @h "gradient" tensor<4x4xf32> {llmc.buffer = #llmc.buffer<gradients, 128, 64>}
  llmc.program @f "update-ranks" () -> () attributes {llmc.arena_bytes = 0 : i64} {
    %g = llmc.get @g {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    %h = llmc.get @h {llmc.buffers = [#llmc.buffer<gradients, 128, 64>]} : tensor<4x4xf32>
    // expected-error@+1 {{part 1 lies at #llmc.buffer<gradients, 128, 64>, not behind #llmc.buffer<gradients, 0, 64>}}
    %s:2 = llmc.all_reduce_start %g, %h at 0 {llmc.buffers = [#llmc.buffer<gradients, 0, 64>, #llmc.buffer<gradients, 128, 64>]} : tensor<4x4xf32>, tensor<4x4xf32>
    %r:2 = llmc.all_reduce_wait %s#0, %s#1 at 0 {llmc.buffers = [#llmc.buffer<gradients, 0, 64>, #llmc.buffer<gradients, 128, 64>]} : tensor<4x4xf32>, tensor<4x4xf32>
    llmc.set @g, %r#0 : tensor<4x4xf32>
    llmc.set @h, %r#1 : tensor<4x4xf32>
    llmc.return
  }
}

// -----

// Reading what is in flight.
module attributes {llmc.state_bytes = 64 : i64, llmc.gradient_bytes = 64 : i64} {
  llmc.variable @g "gradient" tensor<4x4xf32> {llmc.buffer = #llmc.buffer<gradients, 0, 64>}
  llmc.program @f "update-ranks" () -> () attributes {llmc.arena_bytes = 64 : i64} {
    %g = llmc.get @g {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    // expected-note@+1 {{started here}}
    %s = llmc.all_reduce_start %g at 0 {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    // expected-error@+1 {{reads a message that is in flight}}
    %y = llmc.matmul %s, %s {llmc.buffers = [#llmc.buffer<arena, 0, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %r = llmc.all_reduce_wait %s at 0 {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    llmc.set @g, %r : tensor<4x4xf32>
    llmc.return
  }
}

// -----

// Writing over what is in flight.
module attributes {llmc.state_bytes = 128 : i64, llmc.gradient_bytes = 0 : i64} {
  llmc.program @f "step-ranks" (%x: tensor<4x4xf32> {llmc.name = "x"}) -> (tensor<4x4xf32> {llmc.name = "y"})
      attributes {llmc.arena_bytes = 64 : i64, llmc.buffers = [#llmc.buffer<state, 0, 64>]} {
    %g = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<arena, 0, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-note@+1 {{computed here}}
    %s = llmc.all_reduce_start %g at 0 {llmc.buffers = [#llmc.buffer<arena, 0, 64>]} : tensor<4x4xf32>
    %z = llmc.matmul %x, %x {llmc.buffers = [#llmc.buffer<arena, 0, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error@+1 {{operand 0 at #llmc.buffer<arena, 0, 64> has been overwritten}}
    %r = llmc.all_reduce_wait %s at 0 {llmc.buffers = [#llmc.buffer<arena, 0, 64>]} : tensor<4x4xf32>
    %y = llmc.matmul %r, %r {llmc.buffers = [#llmc.buffer<state, 64, 64>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    llmc.return %y : tensor<4x4xf32>
  }
}

// -----

// A wait without its start.
module attributes {llmc.state_bytes = 64 : i64, llmc.gradient_bytes = 64 : i64} {
  llmc.variable @g "gradient" tensor<4x4xf32> {llmc.buffer = #llmc.buffer<gradients, 0, 64>}
  llmc.program @f "update-ranks" () -> () attributes {llmc.arena_bytes = 0 : i64} {
    %g = llmc.get @g {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    // expected-error@+1 {{waits for no start at position 0}}
    %r = llmc.all_reduce_wait %g at 0 {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    llmc.set @g, %r : tensor<4x4xf32>
    llmc.return
  }
}

// -----

// A start without its wait.
module attributes {llmc.state_bytes = 64 : i64, llmc.gradient_bytes = 64 : i64} {
  llmc.variable @g "gradient" tensor<4x4xf32> {llmc.buffer = #llmc.buffer<gradients, 0, 64>}
  llmc.program @f "update-ranks" () -> () attributes {llmc.arena_bytes = 0 : i64} {
    %g = llmc.get @g {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    %s = llmc.all_reduce_start %g at 0 {llmc.buffers = [#llmc.buffer<gradients, 0, 64>]} : tensor<4x4xf32>
    // expected-error@+1 {{comes with 1 collectives in flight}}
    llmc.return
  }
}
