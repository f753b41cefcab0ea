// RUN: llmc-opt %s -split-input-file -llmc-chunk-loss="chunk-bytes=25600 stored-bytes=2" -verify-diagnostics | FileCheck %s
// RUN: llmc-opt %s -split-input-file -llmc-chunk-loss="chunk-bytes=25600 stored-bytes=2 max-chunks=2" 2>/dev/null | FileCheck %s --check-prefix=TWO

// TWO-LABEL: llmc.program @tied
// TWO-COUNT-2: llmc.softmax_cross_entropy_grad
// TWO-NOT: llmc.softmax_cross_entropy_grad
// TWO: llmc.return

// 128 rows of 200 logits are 102400 bytes: four chunks of 32 rows, each from logits to gradient before the next; the
// gradient's products by chunks, and the tied table's sum only where the embedding's rows are added.
// CHECK-LABEL: llmc.program @tied
// CHECK: %[[L0:.*]] = llmc.matmul %{{.*}}, %arg1 {transposeRhs} : (tensor<32x80xf32>, tensor<200x80xf32>) -> tensor<32x200xf32>
// CHECK: %[[A:.*]], %[[LSE:.*]] = llmc.softmax_cross_entropy %[[L0]], %{{.*}} scale
// CHECK-NEXT: %[[G0:.*]] = llmc.softmax_cross_entropy_grad %{{.*}}, %[[L0]], %{{.*}}, %[[LSE]]
// CHECK: llmc.slice %arg0 {sizes = array<i64: 32, 80>, starts = array<i64: 32, 0>
// CHECK: llmc.matmul
// CHECK: llmc.add
// CHECK-COUNT-2: llmc.softmax_cross_entropy_grad
// CHECK: llmc.matmul %[[G0]], %arg1
// CHECK: %[[DX:.*]] = llmc.place
// CHECK: %[[E:.*]] = llmc.exp %[[DX]]
// CHECK: %[[W0:.*]] = llmc.matmul %[[G0]], %{{.*}} {transposeLhs}
// CHECK: %[[W1:.*]] = llmc.matmul %{{.*}}, %{{.*}} init %[[W0]] {transposeLhs}
// CHECK: %[[W2:.*]] = llmc.matmul %{{.*}}, %{{.*}} init %[[W1]] {transposeLhs}
// CHECK: %[[W3:.*]] = llmc.matmul %{{.*}}, %{{.*}} init %[[W2]] {transposeLhs}
// CHECK-NEXT: llmc.embedding_grad %arg3, %[[E]] init %[[W3]]
llmc.program @tied "step" (%x: tensor<128x80xf32>, %w: tensor<200x80xf32>, %labels: tensor<128xi64>, %ids: tensor<128xi64>, %scale: tensor<f32>)
    -> (tensor<f32>, tensor<200x80xf32>) {
  %logits = llmc.matmul %x, %w {transposeRhs} : (tensor<128x80xf32>, tensor<200x80xf32>) -> tensor<128x200xf32>
  %loss, %lse = llmc.softmax_cross_entropy %logits, %labels scale %scale {ignoreIndex = -100 : i64} : (tensor<128x200xf32>, tensor<128xi64>, tensor<f32>) -> (tensor<f32>, tensor<128x1xf32>)
  // expected-remark@below {{applied: the loss in 4 chunks of 32 rows}}
  %d = llmc.softmax_cross_entropy_grad %scale, %logits, %labels, %lse {ignoreIndex = -100 : i64} : (tensor<f32>, tensor<128x200xf32>, tensor<128xi64>, tensor<128x1xf32>) -> tensor<128x200xf32>
  %dx = llmc.matmul %d, %w : (tensor<128x200xf32>, tensor<200x80xf32>) -> tensor<128x80xf32>
  %dw = llmc.matmul %d, %x {transposeLhs} : (tensor<128x200xf32>, tensor<128x80xf32>) -> tensor<200x80xf32>
  %e = llmc.exp %dx : tensor<128x80xf32>
  %g = llmc.embedding_grad %ids, %e init %dw : (tensor<128xi64>, tensor<128x80xf32>, tensor<200x80xf32>) -> tensor<200x80xf32>
  llmc.return %loss, %g : tensor<f32>, tensor<200x80xf32>
}

// -----

// An output reads the logits whole.
// CHECK-LABEL: llmc.program @output
// CHECK: llmc.matmul %arg0, %arg1 {transposeRhs} : (tensor<128x64xf32>, tensor<200x64xf32>) -> tensor<128x200xf32>
llmc.program @output "step" (%x: tensor<128x64xf32>, %w: tensor<200x64xf32>, %labels: tensor<128xi64>, %scale: tensor<f32>) -> (tensor<f32>, tensor<128x200xf32>, tensor<128x64xf32>) {
  %logits = llmc.matmul %x, %w {transposeRhs} : (tensor<128x64xf32>, tensor<200x64xf32>) -> tensor<128x200xf32>
  %loss, %lse = llmc.softmax_cross_entropy %logits, %labels scale %scale {ignoreIndex = -100 : i64} : (tensor<128x200xf32>, tensor<128xi64>, tensor<f32>) -> (tensor<f32>, tensor<128x1xf32>)
  // expected-remark@below {{declined: computing the loss in chunks: llmc.return reads the logits whole}}
  %d = llmc.softmax_cross_entropy_grad %scale, %logits, %labels, %lse {ignoreIndex = -100 : i64} : (tensor<f32>, tensor<128x200xf32>, tensor<128xi64>, tensor<128x1xf32>) -> tensor<128x200xf32>
  %dx = llmc.matmul %d, %w : (tensor<128x200xf32>, tensor<200x64xf32>) -> tensor<128x64xf32>
  llmc.return %loss, %logits, %dx : tensor<f32>, tensor<128x200xf32>, tensor<128x64xf32>
}

// -----

llmc.program @small "step" (%x: tensor<8x64xf32>, %w: tensor<200x64xf32>, %labels: tensor<8xi64>, %scale: tensor<f32>) -> (tensor<f32>, tensor<8x64xf32>) {
  %logits = llmc.matmul %x, %w {transposeRhs} : (tensor<8x64xf32>, tensor<200x64xf32>) -> tensor<8x200xf32>
  %loss, %lse = llmc.softmax_cross_entropy %logits, %labels scale %scale {ignoreIndex = -100 : i64} : (tensor<8x200xf32>, tensor<8xi64>, tensor<f32>) -> (tensor<f32>, tensor<8x1xf32>)
  // expected-remark@below {{declined: computing the loss in chunks: the logits are small}}
  %d = llmc.softmax_cross_entropy_grad %scale, %logits, %labels, %lse {ignoreIndex = -100 : i64} : (tensor<f32>, tensor<8x200xf32>, tensor<8xi64>, tensor<8x1xf32>) -> tensor<8x200xf32>
  %dx = llmc.matmul %d, %w : (tensor<8x200xf32>, tensor<200x64xf32>) -> tensor<8x64xf32>
  llmc.return %loss, %dx : tensor<f32>, tensor<8x64xf32>
}
