// RUN: llmc-opt %s -llmc-recompute -split-input-file -verify-diagnostics | FileCheck %s

// %g waits at the peak (%big) for its second use; what it is computed from is alive there anyway. The view of it is made again too.
// CHECK-LABEL: llmc.program @waits
// expected-remark@+1 {{applied: 1 values are computed again: at most 25600 live bytes instead of 26624}}
llmc.program @waits "step" (%x: tensor<16x16xf32> {llmc.name = "x"}, %w: tensor<16x64xf32> {llmc.name = "w"}) -> (tensor<16x16xf32> {llmc.name = "y"}) {
  %h = llmc.matmul %x, %x : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK: %[[H:.*]] = llmc.matmul
  // CHECK: %[[G:.*]] = llmc.fusion(%[[H]])
  // expected-remark@+1 {{applied: computed again for llmc.matmul, 1024 bytes less at the peak}}
  %g = llmc.fusion(%h) {space = array<i64: 256>, rowBlock = 1 : i64, colBlock = 256 : i64} : (tensor<16x16xf32>) -> tensor<16x16xf32> {
  ^bb0(%0: tensor<256xf32>):
    %1 = llmc.gelu %0 : tensor<256xf32>
    llmc.yield %1 : tensor<256xf32>
  }
  // CHECK: llmc.matmul %[[G]]
  %big = llmc.matmul %g, %w : (tensor<16x16xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  // CHECK: %[[TOP:.*]] = llmc.matmul
  %top = llmc.matmul %big, %w {transposeLhs} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<64x64xf32>
  %small = llmc.matmul %big, %top : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %s = llmc.matmul %small, %w {transposeRhs} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x16xf32>
  // CHECK: %[[AGAIN:.*]] = llmc.fusion(%[[H]])
  // CHECK: llmc.gelu
  // CHECK: %[[VIEW:.*]] = llmc.reshape %[[AGAIN]]
  // CHECK: llmc.matmul %{{.*}}, %[[VIEW]] {transposeRhs}
  %v = llmc.reshape %g : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %a = llmc.matmul %s, %v {transposeRhs} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = llmc.matmul %a, %h : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  llmc.return %y : tensor<16x16xf32>
}

// -----

// Of a fusion only the part that is needed runs again, from its other results: no reduction.
// CHECK-LABEL: llmc.program @part
// expected-remark@+1 {{applied: 1 values are computed again}}
llmc.program @part "step" (%x: tensor<16x16xf32> {llmc.name = "x"}, %w: tensor<16x64xf32> {llmc.name = "w"}) -> (tensor<16x16xf32> {llmc.name = "y"}) {
  %h = llmc.matmul %x, %x : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK: %[[N:.*]]:2 = llmc.fusion
  // expected-remark@+1 {{applied: computed again}}
  %n:2 = llmc.fusion(%h, %x) {space = array<i64: 16, 16>, rowBlock = 16 : i64, colBlock = 16 : i64} : (tensor<16x16xf32>, tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x1xf32>) {
  ^bb0(%0: tensor<16x16xf32>, %2: tensor<16x16xf32>):
    %1 = llmc.reduce_sum %0 {axes = array<i64: 1>} : (tensor<16x16xf32>) -> tensor<16x1xf32>
    %3 = llmc.mul %2, %1 : (tensor<16x16xf32>, tensor<16x1xf32>) -> tensor<16x16xf32>
    llmc.yield %3, %1 : tensor<16x16xf32>, tensor<16x1xf32>
  }
  %big = llmc.matmul %n#0, %w : (tensor<16x16xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %top = llmc.matmul %big, %w {transposeLhs} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<64x64xf32>
  %small = llmc.matmul %big, %top : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %s = llmc.matmul %small, %w {transposeRhs} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x16xf32>
  // CHECK: llmc.fusion(%{{.*}}, %[[N]]#1)
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: llmc.mul
  // CHECK-NEXT: llmc.yield
  %a = llmc.matmul %s, %n#0 {transposeRhs} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = llmc.matmul %a, %n#1 : (tensor<16x16xf32>, tensor<16x1xf32>) -> tensor<16x1xf32>
  %z = llmc.matmul %y, %y {transposeRhs} : (tensor<16x1xf32>, tensor<16x1xf32>) -> tensor<16x16xf32>
  llmc.return %z : tensor<16x16xf32>
}

// -----

// Not where the old value of a variable is gone, nor where the operand died long before, nor where nothing waits.
llmc.variable @p "parameter" tensor<16x16xf32>
// CHECK-LABEL: llmc.program @gone
llmc.program @gone "step" (%x: tensor<16x16xf32> {llmc.name = "x"}, %w: tensor<16x64xf32> {llmc.name = "w"}) -> (tensor<16x16xf32> {llmc.name = "y"}) {
  %p = llmc.get @p : tensor<16x16xf32>
  %h = llmc.matmul %x, %x : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK-COUNT-2: llmc.fusion
  // CHECK-NOT: llmc.fusion
  %g = llmc.fusion(%p) {space = array<i64: 256>, rowBlock = 1 : i64, colBlock = 256 : i64} : (tensor<16x16xf32>) -> tensor<16x16xf32> {
  ^bb0(%0: tensor<256xf32>):
    %1 = llmc.gelu %0 : tensor<256xf32>
    llmc.yield %1 : tensor<256xf32>
  }
  %f = llmc.fusion(%h) {space = array<i64: 256>, rowBlock = 1 : i64, colBlock = 256 : i64} : (tensor<16x16xf32>) -> tensor<16x16xf32> {
  ^bb0(%0: tensor<256xf32>):
    %1 = llmc.gelu %0 : tensor<256xf32>
    llmc.yield %1 : tensor<256xf32>
  }
  %gf = llmc.matmul %g, %f : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %big = llmc.matmul %gf, %w : (tensor<16x16xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %top = llmc.matmul %big, %w {transposeLhs} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<64x64xf32>
  %small = llmc.matmul %big, %top : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %s = llmc.matmul %small, %w {transposeRhs} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x16xf32>
  %p1 = llmc.matmul %s, %s : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  llmc.set @p, %p1 : tensor<16x16xf32>
  %a = llmc.matmul %s, %g {transposeRhs} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = llmc.matmul %a, %f : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  llmc.return %y : tensor<16x16xf32>
}
