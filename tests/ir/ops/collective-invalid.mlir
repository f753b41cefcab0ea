// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// all_reduce_c1
llmc.program @types "graph" (%a: tensor<3xf32>, %b: tensor<3xbf16>) {
  // expected-error @+1 {{parts must have one element type, 'f32', found 'tensor<3xbf16>' as part 1}}
  %s:2 = llmc.all_reduce_start %a, %b at 0 : tensor<3xf32>, tensor<3xbf16>
  llmc.return
}

// -----

// all_reduce_c1
llmc.program @none "graph" () {
  // expected-error @+1 {{needs at least one part}}
  "llmc.all_reduce_wait"() {position = 0 : i64} : () -> ()
  llmc.return
}

// -----

// all_reduce_c2
llmc.program @position "graph" (%a: tensor<3xf32>) {
  // expected-error @+1 {{position must not be negative, found -1}}
  %y = llmc.all_reduce_wait %a at -1 : tensor<3xf32>
  llmc.return
}
