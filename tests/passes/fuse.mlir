// RUN: llmc-opt %s -llmc-fuse | FileCheck %s
// RUN: llmc-opt %s -llmc-fuse=single | FileCheck %s --check-prefix=SINGLE

// Elementwise ops on whole tensors run over one dimension; constants live in the kernel.
// CHECK-LABEL: @chain
// CHECK: llmc.fusion(%{{.*}}) {{.*}}space = array<i64: 48>
// CHECK: llmc.constant dense<2.0
// CHECK: llmc.yield
// CHECK-NEXT: }
// CHECK-NEXT: llmc.return
// SINGLE-LABEL: @chain
// SINGLE-COUNT-2: llmc.fusion
llmc.program @chain "forward" (%x: tensor<2x3x8xf32> {llmc.name = "x"}) -> (tensor<2x3x8xf32> {llmc.name = "y"}) {
  %two = llmc.constant dense<2.0> : tensor<f32>
  %a = llmc.mul %x, %two : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  %b = llmc.exp %a : tensor<2x3x8xf32>
  llmc.return %b : tensor<2x3x8xf32>
}

// A vector along the last dimension keeps it apart; a table over the last two keeps those together.
// CHECK-LABEL: @broadcasts
// CHECK: space = array<i64: 6, 8>
// CHECK: ^bb0(%{{.*}}: tensor<6x8xf32>, %{{.*}}: tensor<1x8xf32>)
// CHECK: space = array<i64: 2, 24>
// CHECK: ^bb0(%{{.*}}: tensor<2x24xf32>, %{{.*}}: tensor<1x24xf32>)
llmc.program @broadcasts "forward" (%x: tensor<2x3x8xf32> {llmc.name = "x"}, %v: tensor<8xf32> {llmc.name = "v"}, %t: tensor<3x8xf32> {llmc.name = "t"})
    -> (tensor<2x3x8xf32> {llmc.name = "a"}, tensor<2x3x8xf32> {llmc.name = "b"}) {
  %a = llmc.add %x, %v : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  %w = llmc.get @w : tensor<2x8x8xf32>
  %m = llmc.matmul %a, %w : (tensor<2x3x8xf32>, tensor<2x8x8xf32>) -> tensor<2x3x8xf32>
  %b = llmc.add %m, %t : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  llmc.return %a, %b : tensor<2x3x8xf32>, tensor<2x3x8xf32>
}
llmc.variable @w "parameter" tensor<2x8x8xf32> = dense<1.0> : tensor<2x8x8xf32>

// A softmax is one kernel: two row reductions and what hangs on them.
// CHECK-LABEL: @softmax
// CHECK: llmc.fusion(%{{.*}}) {{.*}}space = array<i64: 6, 8>
// CHECK-NOT: llmc.fusion
// CHECK: llmc.return
llmc.program @softmax "forward" (%x: tensor<6x8xf32> {llmc.name = "x"}) -> (tensor<6x8xf32> {llmc.name = "y"}) {
  %max = llmc.reduce_max %x {axes = array<i64: 1>} : (tensor<6x8xf32>) -> tensor<6x1xf32>
  %d = llmc.sub %x, %max : (tensor<6x8xf32>, tensor<6x1xf32>) -> tensor<6x8xf32>
  %e = llmc.exp %d : tensor<6x8xf32>
  %sum = llmc.reduce_sum %e {axes = array<i64: 1>} : (tensor<6x8xf32>) -> tensor<6x1xf32>
  %y = llmc.div %e, %sum : (tensor<6x8xf32>, tensor<6x1xf32>) -> tensor<6x8xf32>
  llmc.return %y : tensor<6x8xf32>
}

// Row and column sums in one kernel: the column sums are finished by a second one over the row blocks.
// CHECK-LABEL: @columns
// CHECK: %[[F:.*]]:2 = llmc.fusion{{.*}}rowBlock = 4 : i64{{.*}} -> (tensor<64x8xf32>, tensor<16x8xf32>)
// CHECK: llmc.fusion(%[[F]]#1) {{.*}}space = array<i64: 16, 8>
llmc.program @columns "forward" (%x: tensor<64x8xf32> {llmc.name = "x"}) -> (tensor<64x8xf32> {llmc.name = "y"}, tensor<1x8xf32> {llmc.name = "s"}) {
  %sum = llmc.reduce_sum %x {axes = array<i64: 1>} : (tensor<64x8xf32>) -> tensor<64x1xf32>
  %y = llmc.mul %x, %sum : (tensor<64x8xf32>, tensor<64x1xf32>) -> tensor<64x8xf32>
  %s = llmc.reduce_sum %y {axes = array<i64: 0>} : (tensor<64x8xf32>) -> tensor<1x8xf32>
  llmc.return %y, %s : tensor<64x8xf32>, tensor<1x8xf32>
}

// What goes through a matmul and comes back must not become one kernel.
// CHECK-LABEL: @detour
// CHECK: llmc.fusion
// CHECK: llmc.matmul
// CHECK: llmc.fusion
// CHECK: llmc.return
llmc.program @detour "forward" (%x: tensor<8x8xf32> {llmc.name = "x"}) -> (tensor<8x8xf32> {llmc.name = "y"}) {
  %a = llmc.exp %x : tensor<8x8xf32>
  %m = llmc.matmul %a, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = llmc.add %a, %m : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  llmc.return %b : tensor<8x8xf32>
}

// Math on single elements is repeated in each kernel that needs it; where memory needs it, it is a kernel of its own.
// CHECK-LABEL: @scalars
// CHECK: llmc.fusion(%{{.*}}, %{{.*}})
// CHECK: llmc.log
// CHECK: llmc.mul
// CHECK: llmc.return
llmc.program @scalars "forward" (%x: tensor<48xf32> {llmc.name = "x"}) -> (tensor<48xf32> {llmc.name = "y"}) {
  %lr = llmc.scalar "lr" : tensor<f32>
  %l = llmc.log %lr : tensor<f32>
  %y = llmc.mul %x, %l : (tensor<48xf32>, tensor<f32>) -> tensor<48xf32>
  llmc.return %y : tensor<48xf32>
}

// Variables are read first and written last.
// CHECK-LABEL: @variables
// CHECK-NEXT: llmc.get @u
// CHECK-NEXT: llmc.get @v
// CHECK-NEXT: llmc.fusion
// CHECK: llmc.set @v
// CHECK-NEXT: llmc.return
llmc.program @variables "step" (%x: tensor<48xf32> {llmc.name = "x"}) -> (tensor<48xf32> {llmc.name = "y"}) {
  %u = llmc.get @u : tensor<48xf32>
  %a = llmc.mul %x, %u : (tensor<48xf32>, tensor<48xf32>) -> tensor<48xf32>
  llmc.set @v, %a : tensor<48xf32>
  %v = llmc.get @v : tensor<48xf32>
  %y = llmc.mul %a, %v : (tensor<48xf32>, tensor<48xf32>) -> tensor<48xf32>
  llmc.return %y : tensor<48xf32>
}
llmc.variable @u "parameter" tensor<48xf32> = dense<1.0> : tensor<48xf32>
llmc.variable @v "parameter" tensor<48xf32> = dense<1.0> : tensor<48xf32>

// Column sums are complete after their kernel: what reads them through a free reshape is another one.
// CHECK-LABEL: @columns_behind_a_reshape
// CHECK: llmc.fusion
// CHECK: llmc.reduce_sum
// CHECK-NEXT: llmc.yield
// CHECK: llmc.fusion
// CHECK: llmc.div
// CHECK: llmc.return
llmc.program @columns_behind_a_reshape "forward" (%x: tensor<8x1xf32> {llmc.name = "x"}) -> (tensor<8x1xf32> {llmc.name = "y"}) {
  %e = llmc.exp %x : tensor<8x1xf32>
  %s = llmc.reduce_sum %e {axes = array<i64: 0>} : (tensor<8x1xf32>) -> tensor<1x1xf32>
  %r = llmc.reshape %s : (tensor<1x1xf32>) -> tensor<1xf32>
  %y = llmc.div %e, %r : (tensor<8x1xf32>, tensor<1xf32>) -> tensor<8x1xf32>
  llmc.return %y : tensor<8x1xf32>
}

// An iota counts along its own dimension, also behind a free broadcast.
// CHECK-LABEL: @iota_behind_a_broadcast
// CHECK: llmc.fusion(%{{.*}}) {{.*}}space = array<i64: 4, 8>
// CHECK: llmc.iota {dim = 1 : i64} : tensor<1x8xi64>
// CHECK: llmc.return
llmc.program @iota_behind_a_broadcast "forward" (%x: tensor<4x8xi64> {llmc.name = "x"}) -> (tensor<4x8xi64> {llmc.name = "y"}) {
  %i = llmc.iota {dim = 1 : i64} : tensor<1x8xi64>
  %b = llmc.broadcast_to %i : (tensor<1x8xi64>) -> tensor<4x8xi64>
  %y = llmc.add %x, %b : (tensor<4x8xi64>, tensor<4x8xi64>) -> tensor<4x8xi64>
  llmc.return %y : tensor<4x8xi64>
}

// A column sum over many rows walks whole rows, and a second kernel adds up what the row blocks leave.
// CHECK-LABEL: llmc.program @many_rows
// CHECK: %[[P:.*]] = llmc.fusion(%arg0) {colBlock = 64 : i64, rowBlock = 20 : i64, space = array<i64: 320, 64>}
// CHECK: (tensor<320x64xf32>) -> tensor<16x64xf32>
// CHECK: llmc.fusion(%[[P]]) {colBlock = 64 : i64, rowBlock = 16 : i64, space = array<i64: 16, 64>}
llmc.program @many_rows "graph" (%x: tensor<320x64xf32>) -> tensor<1x64xf32> {
  %s = llmc.mul %x, %x : (tensor<320x64xf32>, tensor<320x64xf32>) -> tensor<320x64xf32>
  %y = llmc.reduce_sum %s {axes = array<i64: 0>} : (tensor<320x64xf32>) -> tensor<1x64xf32>
  llmc.return %y : tensor<1x64xf32>
}
