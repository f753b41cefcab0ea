// RUN: llmc-opt %s -llmc-build-gradients -llmc-build-programs | FileCheck %s
// RUN: llmc-opt %s -llmc-build-gradients -llmc-build-programs=optimizer=sgd | FileCheck %s --check-prefix=SGD

// CHECK-DAG: llmc.variable @"w/m" "moment" tensor<2xf32>
// CHECK-DAG: llmc.variable @"w/v" "moment" tensor<2xf32>
// CHECK-DAG: llmc.variable @"w/gradient" "gradient" tensor<2xf32>
// SGD-NOT: "moment"

// The forward program has every output and no dropout.
// CHECK-LABEL: llmc.program @forward "forward"
// CHECK-SAME: llmc.role = "loss"
// CHECK-SAME: llmc.name = "y"
// CHECK-NOT: llmc.dropout

// Without clipping no update waits for the norm.
// CHECK-LABEL: llmc.program @"step-fused"
// CHECK-SAME: llmc.role = "loss"
// CHECK-SAME: llmc.role = "grad_norm"
// CHECK: llmc.dropout
// CHECK: llmc.global_norm
// CHECK: llmc.adamw {{.*}} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) ->
// CHECK: llmc.set @w
// SGD: llmc.sgd

// CHECK-LABEL: llmc.program @step
// CHECK: llmc.adamw {{.*}} clip

// CHECK-LABEL: llmc.program @accumulate
// CHECK: %[[KEPT:.*]] = llmc.get @"w/gradient"
// CHECK: %[[SUM:.*]] = llmc.add %[[KEPT]]
// CHECK: llmc.set @"w/gradient", %[[SUM]]

// CHECK-LABEL: llmc.program @update
// CHECK: llmc.get @"w/gradient"
// CHECK: llmc.set @w
llmc.variable @w "parameter" tensor<2xf32> = dense<1.0> : tensor<2xf32> {decays}
llmc.program @graph "graph" (%x: tensor<2xf32> {llmc.name = "x"})
    -> (tensor<1xf32> {llmc.name = "loss", llmc.role = "loss"}, tensor<2xf32> {llmc.name = "y"}) {
  %w = llmc.get @w : tensor<2xf32>
  %y = llmc.mul %w, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %low = llmc.scalar "seed_lo" : tensor<i32>
  %high = llmc.scalar "seed_hi" : tensor<i32>
  %step = llmc.scalar "step" : tensor<i32>
  %d = llmc.dropout %y, %low, %high, %step {node = 0 : i64, rate = 1.0e-01 : f64} : (tensor<2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2xf32>
  %loss = llmc.reduce_sum %d {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<1xf32>
  llmc.return %loss, %y : tensor<1xf32>, tensor<2xf32>
}
