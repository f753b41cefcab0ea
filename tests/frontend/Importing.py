"""The test tool import-evaluate as an object, and small models to feed it."""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FIXTURES = pathlib.Path(os.environ["LLMC_FIXTURES"])


class Importer:
    def __init__(self):
        tool = os.path.join(os.environ["LLMC_BIN"], "import-evaluate")
        self.process = subprocess.Popen([tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, path, **request):
        """The tool's answer; "crash" in it when the tool died."""
        try:
            self.process.stdin.write(json.dumps({"path": str(path), **request}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.__init__()
        return {"crash": code}


def flat(array):
    """Values as the tool reads them."""
    values = np.asarray(array)
    if values.dtype == bool or np.issubdtype(values.dtype, np.integer):
        return [int(v) for v in values.ravel()]
    return [float(v) if np.isfinite(v) else str(float(v)) for v in values.astype(np.float64).ravel()]


def output_array(output):
    return np.array([float(v) for v in output["values"]], dtype=np.float64).reshape(output["shape"])


def trainable(model):
    """The model with something to train beside what it computes: a loss, the sum of an initializer of its own."""
    graph = model.graph
    graph.initializer.append(numpy_helper.from_array(np.array([0.5, 0.25], np.float32), "test_w"))
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    graph.node.append(helper.make_node("ReduceSum", ["test_w"], ["test_loss"], name="test_sum", keepdims=0))
    graph.output.append(helper.make_tensor_value_info("test_loss", TensorProto.FLOAT, []))
    model.ir_version = max(model.ir_version, 4) if opset >= 9 else model.ir_version
    return model


def save(model, path):
    onnx.save(model, str(path))
    return path
