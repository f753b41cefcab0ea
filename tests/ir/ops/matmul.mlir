// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s -canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: llmc.program @forms "graph"
llmc.program @forms "graph" (%a: tensor<2x3xf32>, %b: tensor<4x3xf32>, %c: tensor<4xf32>, %i: tensor<2x4xf32>, %h: tensor<2x3xbf16>, %w: tensor<3x4xbf16>) {
  // CHECK: llmc.matmul %{{.*}}, %{{.*}} {transposeRhs} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  %0 = llmc.matmul %a, %b {transposeRhs} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  // CHECK: llmc.matmul %{{.*}}, %{{.*}} bias %{{.*}} init %{{.*}} {transposeRhs}
  %1 = llmc.matmul %a, %b bias %c init %i {transposeRhs} : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: llmc.matmul %{{.*}}, %{{.*}} : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
  %2 = llmc.matmul %h, %w : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
  llmc.return
}

// A transpose of the last two dimensions becomes a flag.
// CANON-LABEL: llmc.program @absorb "graph"
// CANON-SAME: (%[[A:.*]]: tensor<5x3x2xf32>, %[[B:.*]]: tensor<5x4x3xf32>)
llmc.program @absorb "graph" (%a: tensor<5x3x2xf32>, %b: tensor<5x4x3xf32>) -> (tensor<5x2x4xf32>, tensor<5x2x4xf32>) {
  %at = llmc.transpose %a {permutation = array<i64: 0, 2, 1>} : (tensor<5x3x2xf32>) -> tensor<5x2x3xf32>
  %bt = llmc.transpose %b {permutation = array<i64: 0, 2, 1>} : (tensor<5x4x3xf32>) -> tensor<5x3x4xf32>
  // CANON: llmc.matmul %[[A]], %[[B]] {transposeLhs, transposeRhs} : (tensor<5x3x2xf32>, tensor<5x4x3xf32>) -> tensor<5x2x4xf32>
  %y = llmc.matmul %at, %bt : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
  // Turned twice is not turned.
  // CANON: llmc.matmul %[[A]], %[[B]] {transposeLhs, transposeRhs} :
  %z = llmc.matmul %a, %bt {transposeLhs} : (tensor<5x3x2xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
  llmc.return %y, %z : tensor<5x2x4xf32>, tensor<5x2x4xf32>
}

// Another permutation stays.
// CANON-LABEL: llmc.program @other "graph"
llmc.program @other "graph" (%a: tensor<3x3x3xf32>, %b: tensor<3x3x3xf32>) -> (tensor<3x3x3xf32>) {
  // CANON: %[[T:.*]] = llmc.transpose
  // CANON: llmc.matmul %[[T]], %{{.*}} : (tensor<3x3x3xf32>, tensor<3x3x3xf32>)
  %at = llmc.transpose %a {permutation = array<i64: 1, 0, 2>} : (tensor<3x3x3xf32>) -> tensor<3x3x3xf32>
  %y = llmc.matmul %at, %b : (tensor<3x3x3xf32>, tensor<3x3x3xf32>) -> tensor<3x3x3xf32>
  llmc.return %y : tensor<3x3x3xf32>
}

// CHECK-LABEL: llmc.program @packed
// CHECK-NEXT: llmc.pack %arg1 {transpose} : (tensor<70x40xf32>) -> tensor<40x70xbf16, #llmc.packed<blocked16x64x2>>
// CHECK-NEXT: llmc.matmul %arg0, %0 : (tensor<50x40xbf16>, tensor<40x70xbf16, #llmc.packed<blocked16x64x2>>) -> tensor<50x70xf32>
llmc.program @packed "graph" (%a: tensor<50x40xbf16>, %w: tensor<70x40xf32>) -> tensor<50x70xf32> {
  %p = llmc.pack %w {transpose} : (tensor<70x40xf32>) -> tensor<40x70xbf16, #llmc.packed<blocked16x64x2>>
  %y = llmc.matmul %a, %p : (tensor<50x40xbf16>, tensor<40x70xbf16, #llmc.packed<blocked16x64x2>>) -> tensor<50x70xf32>
  llmc.return %y : tensor<50x70xf32>
}
