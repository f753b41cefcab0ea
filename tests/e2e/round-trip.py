"""The way back: a fixture is trained, the trained model comes out as ONNX, runs in onnxruntime, compiles again, and all agree."""
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, numpy_helper
from Plans import Check, Fixture, load_file, tool


def is_half(model):
    return any(tensor.data_type == TensorProto.FLOAT16 for tensor in model.graph.initializer)


def in_f32(model):
    """The same values and operators with float16 read as float: llmc computes in f32, where onnxruntime would round every operator's result.
    A GELU keeps its constants as float16 rounded them, where llmc takes the exact ones: 9.5e-6 of these logits."""
    widen = lambda tensor: numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT16:
            tensor.CopyFrom(widen(tensor))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == TensorProto.FLOAT16:
                attribute.t.CopyFrom(widen(attribute.t))
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT16:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    del model.graph.value_info[:]
    return model


def open_session(path):
    """onnxruntime on a model file; on an f32 copy of it where it stores float16."""
    model = onnx.load(path, load_external_data=False)
    source = in_f32(model).SerializeToString() if is_half(model) else path
    return onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])


def main():
    fixture, check = Fixture(sys.argv[1]), Check()
    logits_name = fixture.ref["logits_output"]
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        fixture.compile(path("p.plan"), "--dropout", 0)
        fixture.write_inputs(path("in.safetensors"))
        tool("llmc-run", path("p.plan"), "--inputs", path("in.safetensors"), "--steps", 5, "--threads", 2, "--export-onnx", path("trained.onnx"),
             "--export-weights", path("w.safetensors"), *fixture.optimizer_flags())
        # Nothing but the weights may differ from the model that came in.
        session = open_session(path("trained.onnx"))
        feeds = {name: fixture.tensors[source] for name, source in fixture.ref["feeds"].items()}
        theirs = session.run([logits_name], {i.name: feeds[i.name] for i in session.get_inputs()})[0]

        fixture.model = path("trained.onnx")
        fixture.compile(path("again.plan"), "--dropout", 0)
        tool("llmc-run", path("again.plan"), "--inputs", path("in.safetensors"), "--steps", 0, "--threads", 2, "--export-outputs", path("o.safetensors"),
             "--export-weights", path("w2.safetensors"))
        ours = load_file(path("o.safetensors"))[logits_name]
        check.at_most("logits against onnxruntime", np.abs(ours - theirs).max(), 1e-5)
        check.at_most("training moved the logits", 1e-3, np.abs(ours - fixture.tensors["logits"]).max())
        first, second = load_file(path("w.safetensors")), load_file(path("w2.safetensors"))
        check.equal("weights by name", sorted(first), sorted(second))
        # float16 initializers have f32 masters, which the trained model rounds.
        stored = np.float16 if is_half(onnx.load(path("trained.onnx"), load_external_data=False)) else np.float32
        for name in first:
            expected = first[name].astype(stored).astype(np.float32)
            check.equal(f"{name} comes back bit for bit", bool(np.array_equal(expected, second[name])), True)
    check.end()


main()
