// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// CHECK-LABEL: llmc.program @arithmetic "graph"
llmc.program @arithmetic "graph" (%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // CHECK: llmc.add %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %0 = llmc.add %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.sub
  %1 = llmc.sub %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.mul
  %2 = llmc.mul %b, %a : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.div
  %3 = llmc.div %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.pow
  %4 = llmc.pow %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.max
  %5 = llmc.max %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.min
  %6 = llmc.min %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.neg %{{.*}} : tensor<2x3xf32>
  %7 = llmc.neg %a : tensor<2x3xf32>
  // CHECK: llmc.abs
  %8 = llmc.abs %a : tensor<2x3xf32>
  // CHECK: llmc.round
  %9 = llmc.round %a : tensor<2x3xf32>
  // CHECK: llmc.floor
  %10 = llmc.floor %a : tensor<2x3xf32>
  llmc.return
}

// CHECK-LABEL: llmc.program @functions "graph"
llmc.program @functions "graph" (%a: tensor<2x3xbf16>) {
  // CHECK: llmc.exp %{{.*}} : tensor<2x3xbf16>
  %0 = llmc.exp %a : tensor<2x3xbf16>
  // CHECK: llmc.log
  %1 = llmc.log %a : tensor<2x3xbf16>
  // CHECK: llmc.sqrt
  %2 = llmc.sqrt %a : tensor<2x3xbf16>
  // CHECK: llmc.rsqrt
  %3 = llmc.rsqrt %a : tensor<2x3xbf16>
  // CHECK: llmc.tanh
  %4 = llmc.tanh %a : tensor<2x3xbf16>
  // CHECK: llmc.erf
  %5 = llmc.erf %a : tensor<2x3xbf16>
  // CHECK: llmc.sigmoid
  %6 = llmc.sigmoid %a : tensor<2x3xbf16>
  // CHECK: llmc.sin
  %7 = llmc.sin %a : tensor<2x3xbf16>
  // CHECK: llmc.cos
  %8 = llmc.cos %a : tensor<2x3xbf16>
  // CHECK: llmc.gelu %{{.*}} : tensor<2x3xbf16>
  %9 = llmc.gelu %a : tensor<2x3xbf16>
  // CHECK: llmc.gelu_grad %{{.*}}, %{{.*}} {approximate} : tensor<2x3xbf16>
  %10 = llmc.gelu_grad %a, %a {approximate} : tensor<2x3xbf16>
  // CHECK: llmc.silu
  %11 = llmc.silu %a : tensor<2x3xbf16>
  // CHECK: llmc.relu
  %12 = llmc.relu %a : tensor<2x3xbf16>
  llmc.return
}

// CHECK-LABEL: llmc.program @logic "graph"
llmc.program @logic "graph" (%a: tensor<2x3xi64>, %b: tensor<3xi64>, %c: tensor<2x3xi1>, %x: tensor<2x3xf32>, %s: tensor<i32>) {
  // CHECK: llmc.equal %{{.*}}, %{{.*}} : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi1>
  %0 = llmc.equal %a, %b : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi1>
  // CHECK: llmc.less
  %1 = llmc.less %a, %b : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi1>
  // CHECK: llmc.less_equal
  %2 = llmc.less_equal %a, %b : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi1>
  // CHECK: llmc.and
  %3 = llmc.and %0, %c : (tensor<2x3xi1>, tensor<2x3xi1>) -> tensor<2x3xi1>
  // CHECK: llmc.or
  %4 = llmc.or %1, %c : (tensor<2x3xi1>, tensor<2x3xi1>) -> tensor<2x3xi1>
  // CHECK: llmc.not
  %5 = llmc.not %c : tensor<2x3xi1>
  // CHECK: llmc.is_nan %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3xi1>
  %6 = llmc.is_nan %x : (tensor<2x3xf32>) -> tensor<2x3xi1>
  // CHECK: llmc.select
  %7 = llmc.select %c, %x, %x : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: llmc.cast %{{.*}} : (tensor<2x3xi64>) -> tensor<2x3xf32>
  %8 = llmc.cast %a : (tensor<2x3xi64>) -> tensor<2x3xf32>
  // CHECK: llmc.iota {dim = 1 : i64} : tensor<1x5xi64>
  %9 = llmc.iota {dim = 1 : i64} : tensor<1x5xi64>
  // CHECK: llmc.dropout
  %10 = llmc.dropout %x, %s, %s, %s {node = 0 : i64, rate = 1.000000e-01 : f64} : (tensor<2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  // CHECK: llmc.broadcast_to %{{.*}} : (tensor<3xi64>) -> tensor<2x3xi64>
  %11 = llmc.broadcast_to %b : (tensor<3xi64>) -> tensor<2x3xi64>
  llmc.return
}
