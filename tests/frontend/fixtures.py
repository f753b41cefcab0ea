#!/usr/bin/env python3
"""Every exported model: its parameters, constants and decay are ref.json's, its loss and logits are torch's, its roles are right.

Usage: fixtures.py NAME...     (folders of LLMC_FIXTURES)
"""
import json
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import load_file

from Importing import FIXTURES, Importer, flat, output_array


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def ids_of(name, reference, tensors):
    feeds = {graph_input: tensors[tensor] for graph_input, tensor in reference["feeds"].items()}
    feeds.setdefault("targets", tensors["targets"])
    return {key: flat(value) for key, value in feeds.items()}


def check_ledger(reference, ledger):
    entries = {entry["name"]: entry for entry in ledger}
    expected = {row["initializer"]: row for row in reference["params"]}
    trains = {name for name, entry in entries.items() if entry["trains"]}
    check(trains == set(expected), f"trains {sorted(trains ^ set(expected))}")
    for name, row in expected.items():
        check(entries[name]["shape"] == row["shape"], f"{name} has shape {entries[name]['shape']}")
        check(entries[name]["decays"] == row["decay"], f"{name} decays: {entries[name]['decays']}")
        check(entries[name]["uses"], f"{name} is used by no node")
    for row in reference["constants"]:
        if row["dtype"] in ("float32", "float16", "bfloat16"):
            check(row["name"] in entries and not entries[row["name"]]["trains"], f"{row['name']} is no constant")


def check_roles(reference, inputs):
    tensor_roles = {"input_ids": {"tokens"}, "targets": {"labels", "labels_unshifted"}}
    for graph_input in inputs:
        tensor = reference["feeds"].get(graph_input["name"], "targets")
        check(graph_input["role"] in tensor_roles[tensor], f"{graph_input['name']} has role '{graph_input['role']}'")
        shifts = "Pad" in reference["ops"] and tensor == "targets"
        check((graph_input["role"] == "labels_unshifted") == shifts, f"{graph_input['name']} has role '{graph_input['role']}'")
        check(graph_input["vocabulary"] == reference["config"]["vocab_size"], f"{graph_input['name']}: {graph_input['vocabulary']} ids")


def check_values(name, reference, tensors, outputs):
    by_role = {output["role"]: output_array(output) for output in outputs}
    # Half precision: constants of the graph are rounded in the file, its arithmetic in torch; README of the fixtures, 16.
    is_half = name.endswith(("fp16", "bf16"))
    loss, logits = by_role["loss"], by_role["logits"]
    expected_loss = (reference["losses"] if is_half else reference["losses_f64"])[0]
    error = abs(float(loss) - expected_loss) / abs(expected_loss)
    check(error <= (1e-3 if is_half else 1e-5), f"loss {float(loss)}, expected {expected_loss}")
    expected = tensors["logits"].astype(np.float64)
    scale = np.abs(expected).max()
    error = np.abs(logits - expected).max() / scale
    check(error <= (2e-2 if is_half else 1e-5), f"logits differ by {error} of the largest")


def check_stripped(path, stripped, splice):
    """The stripped model parses, holds every tensor but the payloads of what trains, and ends where the splice table says."""
    data = open(stripped, "rb").read()
    model = onnx.load_from_string(data)
    original = onnx.load(str(path))
    names = {entry["parameter"] for entry in splice}
    for ours, theirs in zip(model.graph.initializer, original.graph.initializer):
        check(ours.name == theirs.name and list(ours.dims) == list(theirs.dims), f"{theirs.name} was lost")
        if ours.name in names:
            check(not ours.raw_data and not ours.external_data and not ours.float_data, f"{ours.name} has a payload")
        else:
            check(numpy_helper.to_array(ours).tobytes() == numpy_helper.to_array(theirs).tobytes(), f"{ours.name} changed")
    check([node.SerializeToString() for node in model.graph.node] == [node.SerializeToString() for node in original.graph.node], "nodes changed")
    tensors = {tensor.name: tensor.SerializeToString() for tensor in model.graph.initializer}
    for entry in splice:
        # The fields of a tensor may stand in any order, so only their number of bytes is compared.
        end, length = entry["offset"], len(tensors[entry["parameter"]])
        check(sorted(data[end - length:end]) == sorted(tensors[entry["parameter"]]), f"{entry['parameter']} does not end at {end}")


def run(importer, name):
    folder = FIXTURES / name
    reference = json.loads((folder / "ref.json").read_text())
    tensors = load_file(str(folder / "ref.safetensors"))
    options = {"asExported": True, "keepDropout": False, "inputs": ids_of(name, reference, tensors)}
    batch, length = tensors["input_ids"].shape
    if any("Shape" not in str(i) and not all(isinstance(d, int) for d in i["shape"]) for i in reference["inputs"]):
        options |= {"batch": int(batch), "seq": int(length)}
    with tempfile.NamedTemporaryFile() as stripped:
        answer = importer(folder / "model.onnx", stripped=stripped.name, **options)
        check("outputs" in answer, str(answer)[:500])
        check("noise" not in answer, answer.get("noise"))
        check_stripped(folder / "model.onnx", stripped.name, answer["splice"])
    check_ledger(reference, answer["ledger"])
    check_roles(reference, answer["inputs"])
    check_values(name, reference, tensors, answer["outputs"])
    again = importer(folder / "model.onnx", **options)
    check(again["module"] == answer["module"], "two imports differ")
    check(str(FIXTURES) not in answer["module"], "the module holds a path")
    # What the exporter damaged must be refused without --as-exported, and nothing else.
    refused = importer(folder / "model.onnx", **{**options, "asExported": False})
    damaged = bool(reference["merged_by_exporter"] or reference["untied_by_exporter"])
    check(("error" in refused) == damaged, f"damaged: {damaged}, answer {str(refused)[:300]}")
    if damaged:
        check("--as-exported" in refused["error"], refused["error"])


def main():
    importer = Importer()
    failures = 0
    for name in sys.argv[1:]:
        try:
            run(importer, name)
            print(f"{name}: ok")
        except AssertionError as failure:
            failures += 1
            print(f"{name}: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
