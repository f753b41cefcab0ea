#!/usr/bin/env python3
"""Operators in the forms that older opsets gave them (attributes where inputs are now, other defaults) against numpy, at the borders of each form.

Each case is a node, the opset, its inputs and what numpy computes; inputs whose names start with "k" are constants.
"""
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from Importing import Importer, flat, output_array, save, trainable

RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
M = RANDOM.standard_normal((4, 5)).astype(np.float32)
ELEMENT = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64, np.dtype(bool): TensorProto.BOOL}


def ints(*values):
    return np.array(values, np.int64)


def softmax(x, axes):
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return e / e.sum(axis=axes, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


# (operator, opset, {input: value}, attributes, [expected outputs])
CASES = [
    ("Softmax", 7, {"x": X}, {}, [softmax(X, (1, 2))]),
    ("Softmax", 12, {"x": X}, {"axis": 2}, [softmax(X, 2)]),
    ("Softmax", 13, {"x": X}, {}, [softmax(X, 2)]),
    ("Softmax", 18, {"x": X}, {"axis": 1}, [softmax(X, 1)]),
    ("LogSoftmax", 11, {"x": X}, {"axis": 1}, [np.log(softmax(X, (1, 2)))]),
    ("LogSoftmax", 13, {"x": X}, {"axis": 0}, [np.log(softmax(X, 0))]),
    ("Slice", 9, {"x": X}, {"starts": [1, -2], "ends": [9223372036854775807, 4], "axes": [1, 2]}, [X[:, 1:, -2:4]]),
    ("Slice", 10, {"x": X, "k1": ints(3), "k2": ints(-9223372036854775808), "k3": ints(2), "k4": ints(-2)}, {}, [X[:, :, 3::-2]]),
    ("Squeeze", 11, {"x": X[:1]}, {"axes": [-3]}, [X[0]]),
    ("Squeeze", 13, {"x": X[:1], "k1": ints(0)}, {}, [X[0]]),
    ("Unsqueeze", 7, {"x": X}, {"axes": [0, 2]}, [X.reshape(1, 2, 1, 3, 4)]),
    ("Unsqueeze", 13, {"x": X, "k1": ints(-1)}, {}, [X[..., None]]),
    ("Split", 7, {"x": X}, {"axis": 2, "split": [1, 3]}, [X[..., :1], X[..., 1:]]),
    ("Split", 13, {"x": X, "k1": ints(2, 2)}, {"axis": 2}, [X[..., :2], X[..., 2:]]),
    ("Split", 18, {"x": X}, {"axis": 1, "num_outputs": 2}, [X[:, :2], X[:, 2:]]),
    ("Clip", 7, {"x": X}, {"min": -0.5, "max": 0.25}, [np.clip(X, -0.5, 0.25)]),
    ("Clip", 11, {"x": X, "k1": np.float32(0)}, {}, [np.maximum(X, 0)]),
    ("Pad", 7, {"x": X}, {"pads": [0, 0, 1, 0, 0, -2], "value": 2.0}, [np.pad(X[..., :2], ((0, 0), (0, 0), (1, 0)), constant_values=2)]),
    ("Pad", 18, {"x": X, "k1": ints(1, 2), "k2": np.float32(3), "k3": ints(-2)}, {}, [np.pad(X, ((0, 0), (1, 2), (0, 0)), constant_values=3)]),
    ("ReduceSum", 11, {"x": X}, {"axes": [0, -1], "keepdims": 0}, [X.sum(axis=(0, 2))]),
    ("ReduceSum", 13, {"x": X, "k1": ints(1)}, {}, [X.sum(axis=1, keepdims=True)]),
    ("ReduceSum", 13, {"x": X}, {"noop_with_empty_axes": 1}, [X]),
    ("ReduceMean", 17, {"x": X}, {"axes": [-1]}, [X.mean(axis=-1, keepdims=True)]),
    ("ReduceMean", 18, {"x": X, "k1": ints(-1)}, {}, [X.mean(axis=-1, keepdims=True)]),
    ("ReduceMax", 17, {"x": X}, {}, [X.max(keepdims=True)]),
    ("ReduceMax", 20, {"x": X, "k1": ints(0, 1)}, {"keepdims": 0}, [X.max(axis=(0, 1))]),
    ("ReduceMin", 11, {"x": X}, {"axes": [1], "keepdims": 0}, [X.min(axis=1)]),
    ("ReduceProd", 13, {"k0": ints(2, 3, 4)}, {"keepdims": 0}, [np.int64(24)]),
    ("Dropout", 7, {"x": X}, {"ratio": 0.5}, [X]),
    ("Dropout", 11, {"x": X}, {"ratio": 0.5}, [X]),
    ("Dropout", 13, {"x": X, "k1": np.float32(0.5)}, {}, [X]),
    ("Dropout", 22, {"x": X, "k1": np.float32(0.5), "k2": np.bool_(False)}, {}, [X]),
    ("Add", 7, {"x": X, "y": X[0, 0]}, {}, [X + X[0, 0]]),
    ("Gemm", 7, {"x": M, "y": M, "z": M[0, :4]}, {"transB": 1, "alpha": 2.0, "beta": 0.5}, [2 * M @ M.T + 0.5 * M[0, :4]]),
    ("Gemm", 11, {"x": M, "y": M}, {"transA": 1}, [M.T @ M]),
    ("Gemm", 13, {"x": M.T.copy(), "y": M, "z": M[0]}, {}, [M.T @ M + M[0]]),
    ("Gemm", 13, {"x": M.T.copy(), "y": M[:, :1], "z": np.float32(3)}, {}, [M.T @ M[:, :1] + 3]),
    ("MatMul", 9, {"x": X, "y": M}, {}, [X @ M]),
    ("MatMul", 9, {"x": X[0, 0], "y": M}, {}, [X[0, 0] @ M]),
    ("MatMul", 13, {"x": X, "y": X[0, 0]}, {}, [X @ X[0, 0]]),
    ("MatMul", 13, {"x": X[0, 0], "y": X[0, 1]}, {}, [X[0, 0] @ X[0, 1]]),
    ("MatMul", 13, {"x": X[0], "y": X.transpose(0, 2, 1).copy()}, {}, [X[0] @ X.transpose(0, 2, 1)]),
    ("Gather", 11, {"x": X, "k1": ints(2, -3)}, {"axis": 1}, [X[:, [2, 0]]]),
    ("Gather", 11, {"x": X, "k1": ints(0, 3, 1).reshape(3, 1)}, {"axis": 2}, [X[:, :, [[0], [3], [1]]]]),
    ("Gather", 13, {"x": X, "k1": np.int64(-1)}, {"axis": 1}, [X[:, -1]]),
    ("Gather", 7, {"x": M, "ids": ints(3, 0, 3)}, {}, [M[[3, 0, 3]]]),
    ("Tile", 7, {"x": X, "k1": ints(2, 1, 3)}, {}, [np.tile(X, (2, 1, 3))]),
    ("Expand", 8, {"x": X[:, :1], "k1": ints(3, 1)}, {}, [np.broadcast_to(X[:, :1], (2, 3, 4))]),
    ("Reshape", 13, {"x": X, "k1": ints(0, -1)}, {}, [X.reshape(2, 12)]),
    ("Reshape", 14, {"x": X, "k1": ints(-1, 6)}, {"allowzero": 1}, [X.reshape(4, 6)]),
    ("Flatten", 9, {"x": X}, {"axis": 2}, [X.reshape(6, 4)]),
    ("Flatten", 13, {"x": X}, {"axis": -1}, [X.reshape(6, 4)]),
    ("Trilu", 14, {"x": X, "k1": np.int64(1)}, {}, [np.triu(X, 1)]),
    ("Trilu", 14, {"x": X}, {"upper": 0}, [np.tril(X)]),
    ("Where", 9, {"k0": X > 0, "x": X, "y": X[0]}, {}, [np.where(X > 0, X, X[0])]),
    ("Max", 8, {"x": X, "y": X[0], "z": X[1]}, {}, [np.maximum(np.maximum(X, X[0]), X[1])]),
    ("Sum", 8, {"x": X, "y": X[0], "z": X[1]}, {}, [X + X[0] + X[1]]),
    ("Mean", 8, {"x": X, "y": X[0]}, {}, [(X + X[0]) / 2]),
    ("Pow", 12, {"x": X, "k1": np.int64(3)}, {}, [X**3]),
    ("Cast", 9, {"x": X}, {"to": TensorProto.INT64}, [X.astype(np.int64)]),
    ("CastLike", 15, {"x": X, "k1": np.bool_(True)}, {}, [X != 0]),
    ("Shape", 13, {"x": X}, {}, [ints(2, 3, 4)]),
    ("Shape", 15, {"x": X}, {"start": -2, "end": 10}, [ints(3, 4)]),
    ("Gelu", 20, {"x": X}, {"approximate": "tanh"}, [gelu(X)]),
    ("Swish", 24, {"x": X}, {"alpha": 2.0}, [X / (1 + np.exp(-2 * X))]),
    ("ConstantOfShape", 9, {"k0": ints(2, 3)}, {"value": numpy_helper.from_array(np.array([2], np.int64))}, [np.full((2, 3), 2)]),
]
# Forms that are refused: (operator, opset, inputs, attributes, words of the error).
REFUSED = [
    ("Gelu", 19, {"x": X}, {}, "No Op registered for Gelu"),
    ("Slice", 13, {"x": X, "k1": ints(0), "k2": ints(1), "k3": ints(0, 1)}, {}, "starts, ends, axes and steps differ in number"),
    ("Gather", 13, {"x": X, "k1": ints(4)}, {"axis": 1}, "index 4 lies outside a dimension of 3"),
    ("Reshape", 13, {"x": X, "k1": ints(5, -1)}, {}, "shape [2, 3, 4] cannot become [5, -1]"),
    ("Expand", 13, {"x": X, "k1": ints(5)}, {}, "shape [2, 3, 4] does not expand to [5]"),
    ("Concat", 13, {"x": X, "y": M}, {"axis": 0}, "parts differ in element type or rank"),
    ("Softmax", 13, {"x": X}, {"axis": 3}, "axis 3 is none of 3 dimensions"),
    ("Add", 13, {"x": X, "y": M}, {}, "shapes [2, 3, 4] and [4, 5] do not broadcast"),
    ("Reshape", 13, {"x": X, "ids": ints(24)}, {}, "input 'ids' must be known when the model is compiled"),
    ("Split", 18, {"x": X, "k1": ints(3)}, {"axis": 2}, "parts [3] do not add up to 4"),
    ("Tile", 13, {"x": X, "k1": ints(2)}, {}, "needs one repeat for each of 3 dimensions"),
    ("Squeeze", 13, {"x": X, "k1": ints(0)}, {}, "dimension 0 of [2, 3, 4] is not 1"),
    ("Dropout", 13, {"x": X, "k1": np.float32(1.5), "k2": np.bool_(True)}, {}, "a rate in [0, 1)"),
    ("Range", 11, {"k0": np.int64(0), "k1": np.int64(4), "k2": np.int64(0)}, {}, "delta that is not 0"),
    ("ArgMax", 13, {"x": X}, {}, "has no gradient and is not supported"),
    ("NonZero", 13, {"x": X}, {}, "input 'x' must be known when the model is compiled"),
]


def build(folder, operator, opset, inputs, attributes, expected):
    """The model, and what to feed it. `expected` gives the outputs' shapes."""
    expected = [np.asarray(value) for value in expected]
    names = [f"out{i}" for i in range(len(expected))]
    node = helper.make_node(operator, list(inputs), names, name="the node", **attributes)
    fed = {name: np.asarray(value) for name, value in inputs.items() if not name.startswith("k")}
    infos = [[helper.make_tensor_value_info(name, ELEMENT.get(value.dtype, TensorProto.FLOAT), value.shape) for name, value in values]
             for values in (fed.items(), zip(names, expected))]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in inputs.items() if name.startswith("k")]
    graph = helper.make_graph([node], "g", *infos, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return save(trainable(model), f"{folder}/model.onnx"), {name: flat(value) for name, value in fed.items()}


def check_case(importer, folder, operator, opset, inputs, attributes, expected):
    path, feeds = build(folder, operator, opset, inputs, attributes, expected)
    answer = importer(path, inputs=feeds, loss="test_loss")
    if "outputs" not in answer:
        return str(answer)[:300]
    outputs = {output["name"]: output_array(output) for output in answer["outputs"]}
    for i, value in enumerate(expected):
        want = np.asarray(value).astype(np.float64)
        if outputs[f"out{i}"].shape != want.shape or not np.allclose(outputs[f"out{i}"], want, rtol=1e-5, atol=1e-6):
            return f"output {i} is {outputs[f'out{i}'].ravel()[:4]} of shape {outputs[f'out{i}'].shape}, expected {want.ravel()[:4]} of {want.shape}"
    return None


def main():
    importer = Importer()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for operator, opset, inputs, attributes, expected in CASES:
            if wrong := check_case(importer, folder, operator, opset, inputs, attributes, expected):
                failures += 1
                print(f"{operator} of opset {opset}: {wrong}")
        for operator, opset, inputs, attributes, words in REFUSED:
            path, _ = build(folder, operator, opset, inputs, attributes, [np.float32(0)])
            error = importer(path, loss="test_loss").get("error", "")
            if words not in error or not ("the node" in error):
                failures += 1
                print(f"{operator} of opset {opset}: expected '{words}', found '{error}'")
    print(f"{len(CASES)} forms, {len(REFUSED)} refusals, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
