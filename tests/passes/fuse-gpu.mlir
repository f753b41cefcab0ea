// RUN: llmc-opt %s -llmc-fuse=gpu | FileCheck %s

// Hundreds of blocks for what is elementwise.
// CHECK-LABEL: @flat
// CHECK: llmc.fusion(%{{.*}}) {colBlock = 2048 : i64, rowBlock = 1 : i64, space = array<i64: 1048576>}
llmc.program @flat "forward" (%x: tensor<1024x1024xf32> {llmc.name = "x"}) -> (tensor<1024x1024xf32> {llmc.name = "y"}) {
  %b = llmc.exp %x : tensor<1024x1024xf32>
  llmc.return %b : tensor<1024x1024xf32>
}

// A short row belongs to a warp, a long one to a block.
// CHECK-LABEL: @rows
// CHECK: llmc.fusion(%{{.*}}) {colBlock = 768 : i64, rowBlock = 8 : i64, space = array<i64: 1024, 768>}
llmc.program @rows "forward" (%x: tensor<1024x768xf32> {llmc.name = "x"}) -> (tensor<1024x1xf32> {llmc.name = "y"}) {
  %b = llmc.reduce_sum %x {axes = array<i64: 1>} : (tensor<1024x768xf32>) -> tensor<1024x1xf32>
  llmc.return %b : tensor<1024x1xf32>
}
// CHECK-LABEL: @long
// CHECK: llmc.fusion(%{{.*}}) {colBlock = 50257 : i64, rowBlock = 1 : i64, space = array<i64: 64, 50257>}
llmc.program @long "forward" (%x: tensor<64x50257xf32> {llmc.name = "x"}) -> (tensor<64x1xf32> {llmc.name = "y"}) {
  %b = llmc.reduce_sum %x {axes = array<i64: 1>} : (tensor<64x50257xf32>) -> tensor<64x1xf32>
  llmc.return %b : tensor<64x1xf32>
}

// Many rows are summed in blocks of 128 columns, their partial sums by blocks of 32.
// CHECK-LABEL: @columns
// CHECK: llmc.fusion(%{{.*}}) {colBlock = 128 : i64, rowBlock = 386 : i64, space = array<i64: 65536, 768>} {{.*}} -> tensor<170x768xf32>
// CHECK: llmc.fusion(%{{.*}}) {colBlock = 32 : i64, rowBlock = 170 : i64, space = array<i64: 170, 768>} {{.*}} -> tensor<1x768xf32>
llmc.program @columns "forward" (%x: tensor<65536x768xf32> {llmc.name = "x"}) -> (tensor<1x768xf32> {llmc.name = "y"}) {
  %b = llmc.reduce_sum %x {axes = array<i64: 0>} : (tensor<65536x768xf32>) -> tensor<1x768xf32>
  llmc.return %b : tensor<1x768xf32>
}
