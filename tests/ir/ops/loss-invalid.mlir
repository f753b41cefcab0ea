// RUN: llmc-opt %s -verify-diagnostics -split-input-file

// loss_c1
llmc.program @labels "graph" (%x: tensor<6x7xf32>, %l: tensor<5xi64>) {
  // expected-error @+1 {{labels must have one entry per row of logits, 6, found 'tensor<5xi64>'}}
  %loss, %lse = llmc.softmax_cross_entropy %x, %l {ignoreIndex = -100 : i64} : (tensor<6x7xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<6x1xf32>)
  llmc.return
}

// -----

llmc.program @logits "graph" (%x: tensor<2x3x7xf32>, %l: tensor<6xi64>) {
  // expected-error @+1 {{logits must be (rows, vocabulary), found 'tensor<2x3x7xf32>'}}
  %loss, %lse = llmc.softmax_cross_entropy %x, %l {ignoreIndex = -100 : i64} : (tensor<2x3x7xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6x1xf32>)
  llmc.return
}

// -----

llmc.program @lse "graph" (%x: tensor<6x7xf32>, %l: tensor<6xi64>) {
  // expected-error @+1 {{lse must have shape (6, 1), found 'tensor<6xf32>'}}
  %loss, %lse = llmc.softmax_cross_entropy %x, %l {ignoreIndex = -100 : i64} : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>)
  llmc.return
}

// -----

llmc.program @loss "graph" (%x: tensor<6x7xf32>, %l: tensor<6xi64>) {
  // expected-error @+1 {{loss must have rank 0, found 'tensor<1xf32>'}}
  %loss, %lse = llmc.softmax_cross_entropy %x, %l {ignoreIndex = -100 : i64} : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<1xf32>, tensor<6x1xf32>)
  llmc.return
}

// -----

llmc.program @scale "graph" (%x: tensor<6x7xf32>, %l: tensor<6xi64>, %s: tensor<1xf32>) {
  // expected-error @+1 {{scale must have rank 0, found 'tensor<1xf32>'}}
  %loss, %lse = llmc.softmax_cross_entropy %x, %l scale %s {ignoreIndex = -100 : i64} : (tensor<6x7xf32>, tensor<6xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<6x1xf32>)
  llmc.return
}

// -----

llmc.program @gradient "graph" (%d: tensor<f32>, %x: tensor<6x7xf32>, %l: tensor<6xi64>, %lse: tensor<6x1xf32>) {
  // expected-error @+1 {{dLogits must have the type of logits 'tensor<6x7xf32>', found 'tensor<6x7xbf16>'}}
  %y = llmc.softmax_cross_entropy_grad %d, %x, %l, %lse {ignoreIndex = -100 : i64} : (tensor<f32>, tensor<6x7xf32>, tensor<6xi64>, tensor<6x1xf32>) -> tensor<6x7xbf16>
  llmc.return
}
