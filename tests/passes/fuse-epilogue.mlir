// RUN: llmc-opt %s -split-input-file -llmc-fuse-epilogue -verify-diagnostics | FileCheck %s

// CHECK-LABEL: llmc.program @bias
// CHECK-NEXT: llmc.matmul %arg0, %arg1 bias %arg2 : (tensor<6x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: llmc.return
llmc.program @bias "graph" (%x: tensor<6x8xf32>, %w: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<6x4xf32> {
  %mm = llmc.matmul %x, %w : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %rows = llmc.broadcast_to %b : (tensor<4xf32>) -> tensor<6x4xf32>
  // expected-remark@below {{fused the bias into the matmul}}
  %y = llmc.add %rows, %mm : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  llmc.return %y : tensor<6x4xf32>
}

// -----

// The product is read elsewhere too.
// CHECK-LABEL: llmc.program @read_twice
// CHECK: llmc.add
llmc.program @read_twice "graph" (%x: tensor<6x8xf32>, %w: tensor<8x4xf32>, %b: tensor<4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %mm = llmc.matmul %x, %w : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %y = llmc.add %mm, %b : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  llmc.return %mm, %y : tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// A tied table: the head's gradient first, then the embedding's rows on top of it.
// CHECK-LABEL: llmc.program @tied
// CHECK: %[[HEAD:.*]] = llmc.matmul
// CHECK-NEXT: llmc.embedding_grad %arg0, %arg1 init %[[HEAD]]
llmc.program @tied "graph" (%ids: tensor<6xi64>, %d: tensor<6x8xf32>, %dlogits: tensor<6x5xf32>, %x: tensor<6x8xf32>) -> tensor<5x8xf32> {
  // expected-remark@below {{sums into an existing value}}
  %embedding = llmc.embedding_grad %ids, %d : (tensor<6xi64>, tensor<6x8xf32>) -> tensor<5x8xf32>
  %head = llmc.matmul %dlogits, %x {transposeLhs} : (tensor<6x5xf32>, tensor<6x8xf32>) -> tensor<5x8xf32>
  %sum = llmc.add %embedding, %head : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  llmc.return %sum : tensor<5x8xf32>
}

// -----

// Three products into one sum; the last product is the one that starts from the others.
// CHECK-LABEL: llmc.program @three
// CHECK-NEXT: %[[A:.*]] = llmc.matmul %arg0, %arg1 :
// CHECK-NEXT: %[[B:.*]] = llmc.matmul %arg1, %arg0 init %[[A]]
// CHECK-NEXT: %[[C:.*]] = llmc.matmul %arg1, %arg1 init %[[B]]
// CHECK-NEXT: llmc.return %[[C]]
llmc.program @three "graph" (%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = llmc.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  // expected-remark@below {{sums into an existing value}}
  %b = llmc.matmul %w, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %ab = llmc.add %b, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  // expected-remark@below {{sums into an existing value}}
  %c = llmc.matmul %w, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %abc = llmc.add %ab, %c : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  llmc.return %abc : tensor<8x8xf32>
}

// -----

// A kept gradient takes the sum in place; a parameter, an input and a value that is read again may not be written over.
// CHECK-LABEL: llmc.program @variables
// CHECK: llmc.matmul %arg0, %arg0 init %{{.*}}
// CHECK: llmc.set @gradient
// CHECK: llmc.add
// CHECK: llmc.add
// CHECK: llmc.add
llmc.variable @gradient "gradient" tensor<8x8xf32>
llmc.variable @weight "parameter" tensor<8x8xf32> = dense<0.000000e+00> : tensor<8x8xf32>
llmc.program @variables "graph" (%x: tensor<8x8xf32>, %z: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  // expected-remark@below {{sums into an existing value}}
  %mm = llmc.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %old = llmc.get @gradient : tensor<8x8xf32>
  %new = llmc.add %old, %mm : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  llmc.set @gradient, %new : tensor<8x8xf32>
  %mm1 = llmc.matmul %x, %z : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %w = llmc.get @weight : tensor<8x8xf32>
  %a = llmc.add %w, %mm1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %mm2 = llmc.matmul %z, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = llmc.add %z, %mm2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = llmc.exp %x : tensor<8x8xf32>
  %mm3 = llmc.matmul %z, %z : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = llmc.add %e, %mm3 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  llmc.return %a, %b, %c, %e : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A chain starts from the kept gradient; it is read early, so that the products stay where they are.
// CHECK-LABEL: llmc.program @chain
// CHECK-NEXT: %[[OLD:.*]] = llmc.get @gradient
// CHECK-NEXT: %[[HEAD:.*]] = llmc.matmul %arg1, %arg2 init %[[OLD]] {transposeLhs}
// CHECK-NEXT: %[[OUT:.*]] = llmc.exp %arg2
// CHECK-NEXT: %[[NEW:.*]] = llmc.embedding_grad %arg0, %arg2 init %[[HEAD]]
// CHECK-NEXT: llmc.set @gradient, %[[NEW]]
llmc.variable @gradient "gradient" tensor<5x8xf32>
llmc.program @chain "graph" (%ids: tensor<6xi64>, %dlogits: tensor<6x5xf32>, %x: tensor<6x8xf32>) -> tensor<6x8xf32> {
  // expected-remark@below {{sums into an existing value}}
  %head = llmc.matmul %dlogits, %x {transposeLhs} : (tensor<6x5xf32>, tensor<6x8xf32>) -> tensor<5x8xf32>
  %out = llmc.exp %x : tensor<6x8xf32>
  // expected-remark@below {{sums into an existing value}}
  %embedding = llmc.embedding_grad %ids, %x : (tensor<6xi64>, tensor<6x8xf32>) -> tensor<5x8xf32>
  %sum = llmc.add %head, %embedding : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %old = llmc.get @gradient : tensor<5x8xf32>
  %new = llmc.add %old, %sum : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  llmc.set @gradient, %new : tensor<5x8xf32>
  llmc.return %out : tensor<6x8xf32>
}
