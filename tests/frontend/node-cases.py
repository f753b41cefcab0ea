#!/usr/bin/env python3
"""ONNX's own node tests: every case of an operator that the importer's table has either gives ONNX's values or is refused for a reason listed here.

Integer inputs (shapes, axes, indices) become constants, as they are in exported models; floats stay inputs.
"""
import collections
import re
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

from Importing import Importer, flat, output_array, save, trainable

warnings.simplefilter("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402

OPERATORS = set("""
    Abs Add And Attention Cast CastLike Clip Concat Constant ConstantOfShape Cos CumSum Div Dropout Equal Erf Exp Expand Flatten Floor Gather
    GatherND Gelu Gemm Greater GreaterOrEqual Identity IsNaN LayerNormalization Less LessOrEqual Log LogSoftmax MatMul Max Mean Min Mod Mul Neg
    NonZero Not Or Pad Pow RMSNormalization Range Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape RotaryEmbedding Round
    SequenceAt Shape Sigmoid Sin Size Slice Softmax SoftmaxCrossEntropyLoss Split SplitToSequence Sqrt Squeeze Sub Sum Swish Tanh Tile Transpose
    Trilu Unsqueeze Where Xor""".split())
# Every refusal a case may meet, as words of its message.
REFUSALS = [
    r"element type \w+ is not supported", r"has element type \w+, which is not supported", r"casts to \w+, which is not supported",
    r"is no tensor", r"past keys and values", r"softcap is not supported", r"queries over \d+ keys is not supported",
    r"is supported with causal attention only", r"do not fit together", r"is an output of Attention that is not supported",
    r"weights of classes are not supported", r"reduction 'none' is not supported", r"mode (edge|reflect|wrap) is not supported",
    r"must be known when the model is compiled", r"leaves nothing to train", r"is empty$", r"reduces an empty tensor",
]
# Cases whose values are a matter of the generator of random numbers.
RANDOM = re.compile(r"test_training_dropout(?!.*zero_ratio)")


def in_known_opset(model):
    """Cases of opsets before 7 and after 26 are read in the nearest opset of the table, where the same node means the same."""
    for opset in model.opset_import:
        if opset.domain == "":
            opset.version = min(max(opset.version, 7), 26)


def without_statistics(model):
    """Norms and losses give their first output only, as in exported models."""
    node = model.graph.node[0]
    if node.op_type in ("LayerNormalization", "SoftmaxCrossEntropyLoss", "Dropout") and len(node.output) > 1:
        del node.output[1:]
        del model.graph.output[1:]


def with_constants(model, inputs):
    """Integer inputs as initializers; what remains to be fed."""
    feeds = {}
    graph = model.graph
    kept = []
    inputs = [numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for value in inputs]
    for info, value in zip(list(graph.input), inputs):
        array = np.asarray(value)
        is_known = isinstance(value, np.ndarray | np.generic) and array.dtype.kind in "iub"
        is_setting = graph.node[0].op_type in ("Dropout", "Clip", "Range", "Pad") and array.ndim == 0
        if is_known or (is_setting and array.dtype.kind == "f"):
            graph.initializer.append(numpy_helper.from_array(array, info.name))
        else:
            kept.append(info)
            feeds[info.name] = value
    del graph.input[:]
    graph.input.extend(kept)
    return feeds


def compare(case, answer, expected):
    outputs = {output["name"]: output_array(output) for output in answer["outputs"]}
    expected = [numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for value in expected]
    names = [info.name for info in case.model.graph.output if info.name != "test_loss"]
    for name, value in zip(names, expected):
        if not isinstance(value, np.ndarray | np.generic | float | int):
            continue
        want = np.asarray(value).astype(np.float64)
        if outputs[name].shape != want.shape:
            return f"{name} has shape {outputs[name].shape}, expected {want.shape}"
        is_half = np.asarray(value).dtype.itemsize == 2
        if not np.allclose(outputs[name], want, rtol=2e-2 if is_half else case.rtol, atol=2e-2 if is_half else max(case.atol, 1e-6), equal_nan=True):
            return f"{name} differs by {np.abs(outputs[name] - want).max()}"
    return None


def run(importer, folder, case):
    model = case.model
    inputs, expected = case.data_sets[0]
    in_known_opset(model)
    without_statistics(model)
    feeds = with_constants(model, inputs)
    if any(not isinstance(value, np.ndarray | np.generic | float | int) or np.asarray(value).dtype.kind in "OSU" for value in feeds.values()):
        return "refused", "sequences or strings as inputs"
    path = save(trainable(model), f"{folder}/model.onnx")
    answer = importer(path, inputs={name: flat(value) for name, value in feeds.items()}, loss="test_loss", asExported=True)
    if "error" in answer:
        for pattern in REFUSALS:
            if re.search(pattern, answer["error"]):
                return "refused", pattern
        return "wrong", answer["error"]
    if "outputs" not in answer:
        return "wrong", str(answer)[:300]
    difference = compare(case, answer, expected)
    return ("wrong", difference) if difference else ("right", "")


def main():
    importer = Importer()
    results, reasons, right = collections.Counter(), collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in collect_testcases(None):
            operators = {node.op_type for node in case.model.graph.node}
            if not operators <= OPERATORS or "_expanded" in case.name or RANDOM.match(case.name):
                continue
            kind, reason = run(importer, folder, case)
            results[kind] += 1
            if kind == "wrong":
                print(f"{case.name}: {reason}")
            elif kind == "refused":
                reasons[reason] += 1
            else:
                right.update(operators)
    for reason, count in reasons.most_common():
        print(f"  refused {count}: {reason}")
    missing = OPERATORS - set(right)
    print(f"{results['right']} right, {results['refused']} refused, {results['wrong']} wrong; no case is right for {sorted(missing)}")
    return 1 if results["wrong"] or results["right"] < 300 else 0


if __name__ == "__main__":
    sys.exit(main())
