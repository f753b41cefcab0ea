# llmc-gpt from outside: the checker and onnxruntime load what it writes, a forward pass in numpy f64 gives the same logits and
# loss, the same flags give the same bytes, and wrong flags are refused in these words.
import math
import os
import unittest

import numpy as np
import onnx
import onnxruntime

from ToolCase import ToolCase

HELP = "\nRun with --help for more information."
TINY = ["--layers", "2", "--heads", "3", "--width", "15", "--vocab", "37", "--context", "9", "--seq", "7", "--batch", "2"]


def norm(x, weights, name):
    centered = x - x.mean(-1, keepdims=True)
    scaled = centered / np.sqrt((centered ** 2).mean(-1, keepdims=True) + 1e-5)
    return scaled * weights[name + ".weight"] + weights[name + ".bias"]


def linear(x, weights, name):
    return x @ weights[name + ".weight"] + weights[name + ".bias"]


def attention(x, weights, name, heads):
    batch, sequence, width = x.shape
    joint = linear(x, weights, name + ".c_attn").reshape(batch, sequence, 3, heads, width // heads)
    q, k, v = joint.transpose(2, 0, 3, 1, 4)
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(width // heads)
    scores = np.where(np.tril(np.ones((sequence, sequence), bool)), scores, -np.inf)
    probabilities = np.exp(scores - scores.max(-1, keepdims=True))
    probabilities /= probabilities.sum(-1, keepdims=True)
    merged = (probabilities @ v).transpose(0, 2, 1, 3).reshape(batch, sequence, width)
    return linear(merged, weights, name + ".c_proj")


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gpt(weights, ids, targets, layers, heads):
    """Logits and mean loss of GPT-2 in f64."""
    x = weights["transformer.wte.weight"][ids] + weights["transformer.wpe.weight"][:ids.shape[1]]
    for layer in range(layers):
        name = f"transformer.h.{layer}"
        x = x + attention(norm(x, weights, name + ".ln_1"), weights, name + ".attn", heads)
        x = x + linear(gelu(linear(norm(x, weights, name + ".ln_2"), weights, name + ".mlp.c_fc")), weights,
                       name + ".mlp.c_proj")
    logits = norm(x, weights, "transformer.ln_f") @ weights["transformer.wte.weight"].T
    log_sums = np.log(np.exp(logits).sum(-1))
    counted = targets != -100
    chosen = np.take_along_axis(logits, np.where(counted, targets, 0)[..., None], -1)[..., 0]
    return logits, (log_sums - chosen)[counted].mean()


class LlmcGpt(ToolCase):
    tool = "llmc-gpt"

    def make(self, name, *flags):
        printed = self.succeed(*flags, "-o", name)
        onnx.checker.check_model(self.path(name), full_check=True)
        return printed

    def weights(self, name):
        graph = onnx.load(self.path(name)).graph
        return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def run_model(self, name, ids, targets):
        session = onnxruntime.InferenceSession(self.path(name), providers=["CPUExecutionProvider"])
        return session.run(["loss", "logits"], {"input_ids": ids, "targets": targets})

    def test_both_styles_are_gpt2(self):
        random = np.random.default_rng(0)
        ids, targets = random.integers(0, 37, (2, 7)), random.integers(0, 37, (2, 7))
        targets[0, 3:5] = -100
        self.make("fused.onnx", *TINY)
        self.make("textbook.onnx", *TINY, "--style", "textbook")
        weights = {name: value.astype(np.float64) for name, value in self.weights("fused.onnx").items()}
        # Gains and biases that are not 1 and 0 would hide nothing: perturb every weight, in both files alike.
        for name in weights:
            if name.startswith("transformer.") and name != "transformer.causal_mask":
                weights[name] = weights[name] + random.normal(0, 0.05, weights[name].shape)
        self.set_weights("fused.onnx", weights)
        for layer in range(2):
            module = f"transformer.h.{layer}.attn."
            for kind in ("weight", "bias"):
                for part, third in zip(("query", "key", "value"), np.split(weights[module + "c_attn." + kind], 3, -1)):
                    weights[module + part + "." + kind] = third
        self.set_weights("textbook.onnx", weights)

        expected_logits, expected_loss = gpt(weights, ids, targets, layers=2, heads=3)
        for name in ("fused.onnx", "textbook.onnx"):
            loss, logits = self.run_model(name, ids, targets)
            np.testing.assert_allclose(logits, expected_logits, atol=2e-6, rtol=1e-5, err_msg=name)
            self.assertAlmostEqual(float(loss), float(expected_loss), delta=1e-5)

    def set_weights(self, name, weights):
        model = onnx.load(self.path(name))
        for tensor in model.graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) > 0:
                tensor.raw_data = weights[tensor.name].astype("<f4").tobytes()
        onnx.save(model, self.path(name))

    def test_operators_are_those_of_opset_18(self):
        for style, norms in (("fused", {"LayerNormalization", "Split"}), ("textbook", {"ReduceMean", "Sub", "Sqrt"})):
            self.make("x.onnx", *TINY, "--style", style)
            model = onnx.load(self.path("x.onnx"))
            self.assertEqual([(entry.domain, entry.version) for entry in model.opset_import], [("", 18)])
            used = {node.op_type for node in model.graph.node}
            common = {"Add", "Div", "Gather", "MatMul", "Mul", "Pow", "Reshape", "Slice", "Softmax", "SoftmaxCrossEntropyLoss",
                      "Tanh", "Transpose", "Where"}
            self.assertEqual(used, common | norms)

    def test_first_loss_is_about_log_of_the_vocabulary(self):
        # A vocabulary that divides by nothing, one row, and a sequence as long as the context (no Slice).
        printed = self.make("x.onnx", "--layers", "1", "--heads", "2", "--width", "64", "--vocab", "50257", "--context", "33",
                            "--batch", "1")
        self.assertEqual(printed, "x.onnx: 1 layers, 2 heads, width 64, vocabulary 50257, context 33; inputs (1, 33)\n"
                                  "3268672 parameters, 13.1 MB\n")
        random = np.random.default_rng(1)
        loss, logits = self.run_model("x.onnx", random.integers(0, 50257, (1, 33)), random.integers(0, 50257, (1, 33)))
        self.assertEqual(logits.shape, (1, 33, 50257))
        self.assertAlmostEqual(float(loss), math.log(50257), delta=0.1)

    def test_large_models_keep_their_weights_beside_them(self):
        printed = self.make("gpt2.onnx", "--preset", "gpt2", "--batch", "1", "--seq", "8")
        self.assertIn("124439808 parameters, 497.8 MB in gpt2.onnx.data", printed)
        self.assertEqual(self.files(), ["gpt2.onnx", "gpt2.onnx.data"])
        self.assertLess(os.path.getsize(self.path("gpt2.onnx")), 1 << 20)
        end = 0
        for tensor in onnx.load(self.path("gpt2.onnx"), load_external_data=False).graph.initializer:
            place = {entry.key: entry.value for entry in tensor.external_data}
            if not place:
                continue
            self.assertEqual(place["location"], "gpt2.onnx.data")
            self.assertEqual(int(place["offset"]) % 4096, 0)
            self.assertGreaterEqual(int(place["offset"]), end)
            end = int(place["offset"]) + int(place["length"])
        self.assertEqual(os.path.getsize(self.path("gpt2.onnx.data")), end)
        random = np.random.default_rng(2)
        loss, _ = self.run_model("gpt2.onnx", random.integers(0, 50257, (1, 8)), random.integers(0, 50257, (1, 8)))
        self.assertAlmostEqual(float(loss), math.log(50257), delta=1.0)

    def test_same_flags_same_bytes(self):
        os.mkdir(self.path("elsewhere"))
        self.make("x.onnx", *TINY, "--seed", "7")
        self.make("elsewhere/y.onnx", *TINY, "--seed", "7")
        self.make("z.onnx", *TINY, "--seed", "8")
        self.assertEqual(self.read("x.onnx"), self.read("elsewhere/y.onnx"))
        self.assertNotEqual(self.read("x.onnx"), self.read("z.onnx"))

    def test_files_that_cannot_be_written(self):
        os.mkdir(self.path("folder"))
        self.fail(1, "llmc-gpt: no/x.onnx: cannot create: No such file or directory", *TINY, "-o", "no/x.onnx")
        self.fail(1, "llmc-gpt: folder: cannot write: it exists and is not a regular file", *TINY, "-o", "folder")
        os.mkdir(self.path("x.onnx.data"))
        self.fail(1, "llmc-gpt: x.onnx.data: cannot write: it exists and is not a regular file", "--preset", "gpt2-xl", "-o",
                  "x.onnx")

    def test_wrong_flags(self):
        self.fail(2, "llmc-gpt: --output is required" + HELP)
        self.fail(2, "llmc-gpt: --width 100 is not a multiple of --heads 6" + HELP, "--width", "100", "-o", "x.onnx")
        self.fail(2, "llmc-gpt: --seq 257 is more than --context 256" + HELP, "--seq", "257", "-o", "x.onnx")
        self.fail(2, "llmc-gpt: --batch: Value 0 not in range 1 to 1000000" + HELP, "--batch", "0", "-o", "x.onnx")
        self.fail(2, "llmc-gpt: --preset: gpt5 not in {small,gpt2,gpt2-medium,gpt2-large,gpt2-xl}" + HELP, "--preset", "gpt5",
                  "-o", "x.onnx")
        self.fail(2, "llmc-gpt: --style: plain not in {fused,textbook}" + HELP, "--style", "plain", "-o", "x.onnx")
        self.fail(2, "llmc-gpt: --seed: Value -1 not in range 0 to 9223372036854775807" + HELP, "--seed", "-1", "-o", "x.onnx")

    def test_help_and_version(self):
        self.assertIn("llmc-gpt --preset gpt2 --batch 4 --seq 256 -o gpt2.onnx", self.succeed("--help"))
        self.assertRegex(self.succeed("--version"), r"^llmc-gpt \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
