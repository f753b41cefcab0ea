#!/usr/bin/env python3
"""What the importer's options do, and the exact words with which it refuses: dimensions, losses, decay, dropout, roles, damaged exports, names."""
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from Importing import FIXTURES, Importer, output_array, save

RANDOM = np.random.default_rng(3)
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def expect_error(answer, words):
    check(words in answer.get("error", ""), f"expected '{words}', found {str(answer)[:400]}")


def weight(name, *shape):
    return numpy_helper.from_array(RANDOM.standard_normal(shape).astype(np.float32), name)


def model(nodes, inputs, outputs, weights, opset=18):
    """Nodes as (operator, inputs, outputs, attributes); inputs and outputs as (name, type, shape)."""
    made = [helper.make_node(op, ins, outs, name=f"n_{outs[0]}", **attributes) for op, ins, outs, attributes in nodes]
    infos = [[helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs)]
    return helper.make_model(helper.make_graph(made, "g", *infos, weights), opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def language_model(batch="batch", seq="seq"):
    return model([("Gather", ["wte", "ids"], ["x"], {}), ("LayerNormalization", ["x", "gain", "bias"], ["n"], {}), ("MatMul", ["n", "head"], ["logits"], {})],
                 [("ids", TensorProto.INT64, [batch, seq])], [("logits", TensorProto.FLOAT, [batch, seq, 7])],
                 [weight("wte", 7, 4), weight("gain", 4), weight("bias", 4), weight("head", 4, 7)])


def check_dimensions(ask):
    lm = language_model()
    answer = ask(lm, batch=2, seq=5)
    check([i["shape"] for i in answer["inputs"]] == [[2, 5], [2, 5]], f"inputs {answer['inputs']}")
    check([(i["name"], i["role"], i["vocabulary"]) for i in answer["inputs"]] == [("ids", "tokens", 7), ("targets", "labels", 7)], f"{answer['inputs']}")
    check(ask(lm, dims={"batch": 2, "seq": 5})["module"] == answer["module"], "--dim and --batch differ")
    expect_error(ask(lm, batch=2), "dimensions are open: dimension 1 ('seq') of input 'ids': give --seq N or --dim seq=N")
    expect_error(ask(lm, batch=2, dims={"batch": 3, "seq": 5}), "dimension 'batch' is given twice, as 3 and by --batch as 2")
    expect_error(ask(lm, batch=2, seq=5, dims={"length": 3}), "--dim length: no input has a dimension of this name; there are 'batch', 'seq'")
    expect_error(ask(lm, batch=2, seq=0), "dimension 1 of size 0 leaves nothing to train")
    expect_error(ask(language_model(2, 5), batch=3), "--batch 3: input 'ids' has shape [2, 5] in the model")
    check("ledger" in ask(language_model(2, 5), batch=2, seq=5), "flags that agree with the model are refused")
    vector = model([("MatMul", ["x", "w"], ["y"], {})], [("x", TensorProto.FLOAT, ["n", 4])], [("y", TensorProto.FLOAT, ["n", 3])], [weight("w", 4, 3)])
    expect_error(ask(vector), "dimension 0 ('n') of input 'x': give --dim n=N")
    expect_error(ask(vector, batch=2), "--batch 2: no integer input has such a dimension")
    declared = language_model(2, 5)
    declared.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    expect_error(ask(declared), "output 'logits' is declared as int64, the graph computes floats")


def check_losses(ask):
    def two(names):
        nodes = [("ReduceSum", ["w"], [names[0]], {"keepdims": 0}), ("ReduceMean", ["w"], [names[1]], {"keepdims": 1})]
        return model(nodes, [], [(names[0], TensorProto.FLOAT, []), (names[1], TensorProto.FLOAT, [1, 1])], [weight("w", 3, 4)])
    expect_error(ask(two(["a", "b"])), "several outputs may be the loss: 'a', 'b'; choose by --loss")
    answer = ask(two(["a", "b"]), loss="b", inputs={})
    check([(o["name"], o["role"], o["shape"]) for o in answer["outputs"]] == [("b", "loss", []), ("a", "", [])], f"{answer.get('outputs')}")
    expect_error(ask(two(["a", "b"]), loss="c"), "--loss 'c': there is no such output; there are 'a', 'b'")
    expect_error(ask(language_model(2, 5), loss="logits"), "--loss 'logits': a loss is one float, this output has shape [2, 5, 7]")
    constant = model([("ReduceSum", ["x"], ["y"], {"keepdims": 0})], [("x", TensorProto.FLOAT, [4])], [("y", TensorProto.FLOAT, [])], [weight("w", 4)])
    expect_error(ask(constant), "the loss depends on no weight: there is nothing to train")
    flat = model([("ReduceSum", ["w", "k"], ["y"], {"keepdims": 0})], [], [("y", TensorProto.FLOAT, [3])],
                 [weight("w", 3, 4), numpy_helper.from_array(np.array([1]), "k")])
    expect_error(ask(flat), "no output is a loss or logits: 'y'; there is nothing to differentiate")
    named = language_model(2, 5)
    named.graph.input[0].name = "targets"
    named.graph.node[0].input[1] = "targets"
    expect_error(ask(named), "already a value named 'targets'")
    norm = language_model(2, 5)
    norm.graph.node.append(helper.make_node("Identity", ["n"], ["grad_norm"]))
    norm.graph.output.append(helper.make_tensor_value_info("grad_norm", TensorProto.FLOAT, [2, 5, 4]))
    expect_error(ask(norm), "output 'grad_norm' has the name of what training adds")
    rows = language_model(2, 5)
    rows.graph.node.append(helper.make_node("Identity", ["n"], ["loss"]))
    rows.graph.output.append(helper.make_tensor_value_info("loss", TensorProto.FLOAT, [2, 5, 4]))
    expect_error(ask(rows), "output 'loss' is no scalar, and the loss that would be added has this name")
    # The appended loss: mean cross-entropy against the targets, those of -100 left out.
    answer = ask(language_model(1, 3), inputs={"ids": [0, 3, 6], "targets": [1, -100, 2]})
    loss, logits = (output_array(output) for output in answer["outputs"])
    rows = logits[0] - logits[0].max(axis=1, keepdims=True)
    log_softmax = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    check(abs(loss + (log_softmax[0, 1] + log_softmax[2, 2]) / 2) < 1e-6, f"appended loss {loss}")


def check_label_roles(ask):
    """The role of labels says how the graph reads them: only a shift by one token is one that the session may count."""
    def role(logits, labels, ints=TensorProto.INT64, **attributes):
        """Cross-entropy of logits[:, from:to] against labels after some operators."""
        begin, end = logits
        numbers = [numpy_helper.from_array(np.array(value, np.int64), name)
                   for name, value in (("from", [begin]), ("to", [end]), ("one", [1]), ("four", [4]), ("axis", [1]), ("end", [1 << 62]), ("rows", [-1, 7]),
                                       ("flat", [-1]), ("pads", [0, 0, 0, 1]), ("ignored", -100), ("other", -1), ("zero", [0]))]
        nodes = [("Gather", ["wte", "ids"], ["x"], {}), ("MatMul", ["x", "head"], ["logits"], {}), ("Slice", ["logits", "from", "to", "axis"], ["part"], {}),
                 ("Reshape", ["part", "rows"], ["scores"], {}), *labels, ("Reshape", ["used", "flat"], ["targets"], {}),
                 ("SoftmaxCrossEntropyLoss", ["scores", "targets"], ["loss"], attributes)]
        answer = ask(model(nodes, [("ids", TensorProto.INT64, [2, 8]), ("labels", ints, [2, 8])], [("loss", TensorProto.FLOAT, [])],
                           [weight("wte", 7, 4), weight("head", 4, 7), *numbers]))
        check("module" in answer, str(answer)[:400])
        return answer["inputs"][1]["role"], answer["module"]
    drop = ("Slice", ["labels", "one", "end", "axis"], ["used"], {})
    check(role((0, 8), [("Identity", ["labels"], ["used"], {})])[0] == "labels", "whole labels")
    check(role((0, 7), [drop], ignore_index=-100)[0] == "labels_unshifted", "the first label dropped")
    pad = [("Pad", ["labels", "pads", "ignored"], ["padded"], {}), ("Slice", ["padded", "one", "end", "axis"], ["used"], {})]
    check(role((0, 8), pad, ignore_index=-100)[0] == "labels_unshifted", "padded with an ignored label, the first dropped")
    check(role((0, 8), pad, ignore_index=-1)[0] == "", "padded with a label that is not ignored")
    check(role((3, 7), [("Slice", ["labels", "four", "end", "axis"], ["used"], {})])[0] == "", "four labels dropped")
    check(role((0, 7), [("Slice", ["labels", "zero", "to", "axis"], ["used"], {})])[0] == "", "the last label dropped")
    # Without the attribute the ignored label is one that int32 holds.
    check("ignoreIndex = -2147483648" in role((0, 8), [("Identity", ["labels"], ["used"], {})], TensorProto.INT32)[1], "ignored label of int32")


def check_decay(ask):
    def decaying(rule):
        return {e["name"] for e in ask(language_model(2, 5), decay=rule)["ledger"] if e["decays"]}
    check(decaying("matrices") == {"wte", "head"}, "matrices")
    check(decaying("all") == {"wte", "head", "gain", "bias"}, "all")
    check(decaying("^(head|gain)$") == {"head", "gain"}, "regular expression")
    expect_error(ask(language_model(2, 5), decay="("), "the decay rule '(' is neither matrices, all nor a regular expression")


def check_damage(ask):
    merged = model([("LayerNormalization", ["x", "gain", "bias"], ["a"], {}), ("LayerNormalization", ["a", "gain", "other"], ["b"], {}),
                    ("MatMul", ["b", "head"], ["logits"], {})],
                   [("x", TensorProto.FLOAT, [2, 4])], [("logits", TensorProto.FLOAT, [2, 7])],
                   [weight("gain", 4), weight("bias", 4), weight("other", 4), weight("head", 4, 7)])
    expect_error(ask(merged, asExported=False), "parameters of equal value were merged: 'gain' is read by 2 nodes ('n_a', 'n_b')")
    tied = language_model(2, 5)
    table = numpy_helper.to_array(tied.graph.initializer[0])
    tied.graph.initializer[3].CopyFrom(numpy_helper.from_array(table.T.copy(), "head"))
    expect_error(ask(tied, asExported=False), "a tie was split: 'wte' and 'head' are one matrix, stored twice, the second transposed")
    expect_error(ask(tied, asExported=False), "--as-exported trains the file as it stands")
    check("ledger" in ask(tied), "--as-exported refuses")


def check_dropout(ask):
    nodes = [("Dropout", ["w", "rate", "training"], ["a"], {}), ("Dropout", ["a", "rate", "training"], ["b"], {}), ("ReduceSum", ["b"], ["y"], {"keepdims": 0})]
    dropped = model(nodes, [], [("y", TensorProto.FLOAT, [])],
                    [weight("w", 3, 4), numpy_helper.from_array(np.float32(0.25), "rate"), numpy_helper.from_array(np.bool_(True), "training")])
    text = ask(dropped)["module"]
    check(text.count("llmc.dropout") == 2 and "node = 0" in text and "node = 1" in text and "rate = 2.5" in text, text)
    check(text.count('llmc.scalar "seed_lo"') == 1 and text.count('llmc.scalar "step"') == 1, text)
    check("llmc.dropout" not in ask(dropped, keepDropout=False)["module"], "--dropout 0 keeps a Dropout")
    masked = model([("Dropout", ["w", "rate", "training"], ["a", "mask"], {}), ("Not", ["mask"], ["m"], {}), nodes[2]], [],
                   [("y", TensorProto.FLOAT, []), ("m", TensorProto.BOOL, [3, 4])], list(dropped.graph.initializer))
    masked.graph.node[2].input[0] = "a"
    expect_error(ask(masked), "input 'mask' is the mask of a Dropout, which is never stored")


def check_weights(ask):
    """Who trains, by place and values."""
    scores = [("MatMul", ["q", "k"], ["s"], {}), ("Add", ["s", "m"], ["t"], {}), ("Softmax", ["t"], ["p"], {}), ("MatMul", ["p", "v"], ["o"], {}),
              ("ReduceSum", ["o"], ["y"], {"keepdims": 0})]

    def trains(mask):
        answer = ask(model(scores, [], [("y", TensorProto.FLOAT, [])], [weight("q", 3, 4), weight("k", 4, 3), weight("v", 3, 4), numpy_helper.from_array(mask, "m")]))
        return {e["name"]: e["trains"] for e in answer["ledger"]}["m"]
    check(not trains(np.triu(np.full((3, 3), -np.inf, np.float32), 1)), "-inf mask trains")
    check(not trains(np.triu(np.full((3, 3), -1e38, np.float32), 1)), "-1e38 mask trains")
    check(not trains(np.triu(np.full((3, 3), -65504, np.float16), 1)), "float16's lowest number is no mask")
    check(trains(np.triu(np.full((3, 3), -65504, np.float32), 1)), "-65504 of float32 is a mask")
    check(trains(RANDOM.standard_normal((3, 3)).astype(np.float32)), "a learned bias of scores does not train")
    answer = ask(model(scores, [], [("y", TensorProto.FLOAT, [])],
                       [weight("q", 3, 4), weight("k", 4, 3), weight("v", 3, 4), weight("m", 3, 3), weight("unused", 5), weight("one", 1)]))
    reasons = {e["name"]: e["reason"] for e in answer["ledger"]}
    check(reasons["unused"] == "not used" and reasons["one"] == "one number", f"{reasons}")
    check("@unused" not in answer["module"], "an unused weight stays")
    # Attention sends its mask no gradient, however learned it looks.
    answer = ask(model([("Attention", ["q", "q", "q", "m"], ["o"], {}), ("ReduceSum", ["o"], ["y"], {"keepdims": 0})], [], [("y", TensorProto.FLOAT, [])],
                       [weight("q", 1, 1, 3, 4), weight("m", 3, 3)], opset=23))
    check({e["name"]: e["trains"] for e in answer["ledger"]} == {"q": True, "m": False}, f"{answer.get('ledger')}")


def check_names(ask):
    lm = language_model(2, 5)
    lm.graph.initializer[0].name = "graph"
    lm.graph.node[0].input[0] = "graph"
    text = ask(lm)["module"]
    check('@graph.weight' in text and 'source = "graph"' in text, text[:500])
    check('loc("n_x")' in text, "locations are not the nodes' names")
    for name in ("gradients", "forward", "step-fused", "step", "accumulate", "update", "step-fused-ranks",
                 "step-ranks", "update-ranks", "wte/m", "wte/v", "wte/gradient"):
        taken = language_model(2, 5)
        taken.graph.initializer[3].name = taken.graph.node[2].input[1] = name
        taken.graph.initializer[1].name = taken.graph.node[1].input[1] = f"{name}.weight"
        text = ask(taken)["module"]
        check(f"@{name}.weight.weight" in text or f'@"{name}.weight.weight"' in text, text[:500])
        check(f'source = "{name}"' in text, text[:500])
    nameless = language_model(2, 5)
    nameless.graph.node[2].name = ""
    nameless.graph.node[2].input[1] = "wte"
    expect_error(ask(nameless), "node (MatMul) of output 'logits': matrices")


def check_typed_fields(ask):
    """Typed fields, half precision and several element types give the values that raw bytes give."""
    values = np.arange(12, dtype=np.float32).reshape(3, 4) / 8
    expected = None
    for make in (lambda: numpy_helper.from_array(values, "w"), lambda: helper.make_tensor("w", TensorProto.FLOAT, [3, 4], values.ravel()),
                 lambda: helper.make_tensor("w", TensorProto.FLOAT16, [3, 4], values.astype(np.float16).ravel()),
                 lambda: helper.make_tensor("w", TensorProto.BFLOAT16, [3, 4], values.ravel()),
                 lambda: numpy_helper.from_array(values.astype(np.float16), "w"), lambda: numpy_helper.from_array(values.astype(np.float64), "w")):
        answer = ask(model([("ReduceSum", ["w"], ["y"], {"keepdims": 0})], [], [("y", TensorProto.FLOAT, [])], [make()]), inputs={})
        expected = expected or answer["outputs"]
        check(answer.get("outputs") == expected, f"{make().data_type}: {str(answer)[:300]}")


def check_training_info(importer):
    for name in ("traininginfo_gpt_adam", "traininginfo_mlp_adam"):
        check("ledger" in importer(FIXTURES / name / "model.onnx", asExported=True), f"{name} does not import")


def main():
    importer = Importer()
    with tempfile.TemporaryDirectory() as folder:
        def ask(onnx_model, **options):
            options.setdefault("asExported", True)
            return importer(save(onnx_model, f"{folder}/model.onnx"), **options)
        for part in (check_dimensions, check_losses, check_label_roles, check_decay, check_damage, check_dropout, check_weights, check_names, check_typed_fields):
            part(ask)
    if FIXTURES.is_dir():
        check_training_info(importer)
    for failure in failures:
        print(failure)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
