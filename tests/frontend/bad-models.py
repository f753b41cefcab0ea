#!/usr/bin/env python3
"""Broken, foreign and hostile models: each is refused in words that name the place, or imported; never a crash, a hang or a wrong graph.

The damaged files of LLMC_FIXTURES/bad, then single bits flipped: every bit of a tiny model, a sample of a real export's structure.
"""
import json
import pathlib
import random
import sys
import tempfile
import time

from Importing import FIXTURES, Importer

SECONDS = 20
# What the error says; None where the model imports.
EXPECTED = {
    "argmax_output": "node (ArgMax) of output 'logits': has no gradient",
    "attribute_wrong_type": "Mismatched attribute type in 's : axis'",
    "chain_20000_identity": None,
    "cyclic": "mm1",
    "declared_output_shape_wrong": "output 'logits' is declared as 5 along dimension 1, the graph computes [3, 4]",
    "dims_10GB_few_bytes": "initializer 'W1': its shape and type need 10000000000 bytes, it holds 16",
    "dims_negative": "initializer 'W1': dimension -6 is negative",
    "dims_product_overflow": "initializer 'W1': its dimensions multiply to more than 2^38 elements",
    "dtype_float8": "initializer 'W1': element type float8e4m3fn is not supported",
    "dtype_string": "initializer 'b1': element type string is not supported",
    "dtype_undefined": "initializer 'W1': element type undefined is not supported",
    "duplicate_initializer_name": "initializer 'W1' appears twice",
    "duplicate_node_name": None,
    "duplicate_value_name": "'a' has been used as output names multiple times",
    "empty_file": "is empty",
    "external_absolute_path": "'/etc/passwd' is not a path relative to the model's folder",
    "external_empty_location": "initializer 'W1': the location of its external data is empty",
    "external_length_wrong": "initializer 'W1': its shape and type need 192 bytes, its external data has a length of 96",
    "external_missing_file": "initializer 'W1': its external data 'missing_weights.bin' does not exist",
    "external_no_location": "initializer 'W1': its external data has no location",
    "external_offset_not_a_number": "initializer 'W1': the offset of its external data is no number: '12abc'",
    "external_offset_past_end": "initializer 'W1': its external data reaches to byte 100 + 192 of a file of 192",
    "external_path_traversal": "lies outside the model's folder",
    "external_symlink_out": "initializer 'W1': its external data 'external_link.bin'",
    "external_valid_unaligned": None,
    "git_lfs_pointer": "git lfs pull",
    "good_control": None,
    "html_page": "is an HTML page",
    "input_unknown_rank": "input 'x' has no shape",
    "input_without_type": "input 'x' has no type",
    "ir_version_99": "IR version 99 is not known",
    "local_function_valid": None,
    "loop_valid": "node 'loop' (Loop): operators with subgraphs are not supported",
    "microsoft_fusedmatmul": "node 'mm1' (FusedMatMul): operators of the domain 'com.microsoft' are not supported",
    "missing_initializer": "input 'W2' of node:  name: mm2",
    "names_need_escaping": None,
    "nan_weights": None,
    "nested_subgraphs_2000": "nested deeper than 100 levels",
    "no_nodes": "'logits' is not an output of any node",
    "no_outputs": "has no outputs: there is nothing to train",
    "not_topological": "mm2",
    "opset_999": "opset 999 of ai.onnx is not known; expected 7 to 26",
    "random_bytes": "is no ONNX model",
    "raw_and_float_data": "initializer 'W1': its values are stored twice",
    "raw_data_short": "initializer 'W1': its shape and type need 192 bytes, it holds 188",
    "recursive_function": "Cycle detected in model-local function references",
    "round_on_path": None,
    "self_loop": "relu",
    "sparse_initializer": "sparse initializer 'b1' is not supported",
    "trailing_garbage": "make no sense from byte 560 of 567",
    "transpose_bad_perm": "node 't' (Transpose): [0, 0] is no permutation",
    "truncated_half": "cut short",
    "unknown_domain": "node 'relu' (Relu): operators of the domain 'com.example.custom' are not supported",
    "unknown_op": "No Op registered for Frobnicate",
    "wrong_shape_matmul": "node 'mm2' (MatMul): matrices [3, 8] and [9, 4] cannot be multiplied",
    "zero_size_batch": "input 'x': dimension 0 of size 0",
    "zero_size_weights": "node 'mm1' (MatMul): result [3, 0] is empty",
}
failures = []


def ask(importer, path, **options):
    start = time.monotonic()
    answer = importer(path, **options)
    if time.monotonic() - start > SECONDS:
        answer["slow"] = True
    return answer


def is_sound(answer):
    """Refused in words, or imported; in time, and no noise beside it."""
    return not ({"crash", "failure", "slow", "noise"} & set(answer)) and bool(answer.get("error", "imported"))


def check_bad_files(importer):
    listed = json.loads((FIXTURES / "bad" / "expected.json").read_text())
    if set(listed) != set(EXPECTED):
        failures.append(f"no expectation for {sorted(set(listed) ^ set(EXPECTED))}")
    for name, words in EXPECTED.items():
        path = FIXTURES / "bad" / f"{name}.onnx"
        answer = ask(importer, path)
        error = answer.get("error")
        if not is_sound(answer) or (error is None) != (words is None):
            failures.append(f"{name}: {str(answer)[:300]}")
        elif words and (words not in error or not error.startswith(f"{path}: ") or "\n" in error):
            failures.append(f"{name}: expected '{words}', found {error}")


def check_flips(importer, model, places, folder, **options):
    imported = 0
    path = pathlib.Path(folder) / "flipped.onnx"
    for byte, bit in places:
        data = bytearray(model)
        data[byte] ^= 1 << bit
        path.write_bytes(data)
        answer = ask(importer, path, **options)
        imported += "ledger" in answer
        if not is_sound(answer):
            failures.append(f"byte {byte}, bit {bit}: {str(answer)[:300]}")
    return imported


def main():
    importer = Importer()
    check_bad_files(importer)
    with tempfile.TemporaryDirectory() as folder:
        tiny = (FIXTURES / "bad" / "good_control.onnx").read_bytes()
        places = [(byte, bit) for byte in range(len(tiny)) for bit in range(8)]
        print(f"tiny: {check_flips(importer, tiny, places, folder)} of {len(places)} flips import")
        generator = random.Random(1)
        for name in ("nanogpt_loss_legacy17", "hf_gpt2_dynamo18_dynshape", "hf_llama_dynamo23"):
            stripped = pathlib.Path(folder) / "stripped.onnx"
            real = FIXTURES / name / "model.onnx"
            if not real.exists():
                print(f"{name}: not among the fixtures here")
                continue
            options = {"batch": 2, "seq": 32} if "dynshape" in name else {}
            importer(real, asExported=True, stripped=str(stripped), **options)
            # Flip what is structure: bytes of the model that also stand in the stripped one.
            data, structure = real.read_bytes(), stripped.read_bytes()
            starts = [at for at in range(0, len(structure) - 64, 64) if structure[at:at + 64] in data]
            places = [(data.index(structure[at:at + 64]) + generator.randrange(64), generator.randrange(8)) for at in generator.choices(starts, k=400)]
            print(f"{name}: {check_flips(importer, data, places, folder, asExported=True, **options)} of {len(places)} flips import")
    for failure in failures[:40]:
        print(failure)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
