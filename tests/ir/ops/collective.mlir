// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// CHECK-LABEL: llmc.program @sums
llmc.program @sums "graph" (%a: tensor<7x3xf32>, %b: tensor<3xf32>) {
  // CHECK: %[[S:.*]]:2 = llmc.all_reduce_start %{{.*}}, %{{.*}} at 0 : tensor<7x3xf32>, tensor<3xf32>
  %s:2 = llmc.all_reduce_start %a, %b at 0 : tensor<7x3xf32>, tensor<3xf32>
  // CHECK: llmc.all_reduce_wait %[[S]]#0, %[[S]]#1 at 0 : tensor<7x3xf32>, tensor<3xf32>
  %y:2 = llmc.all_reduce_wait %s#0, %s#1 at 0 : tensor<7x3xf32>, tensor<3xf32>
  llmc.return
}
