# llmc-data from outside: token files byte for byte against numpy, and every refusal's exact words.
import os
import struct
import unittest

import numpy as np

from ToolCase import ToolCase

HELP = "\nRun with --help for more information."


def tokens_of(content):
    header = struct.unpack("<256i", content[:1024])
    tokens = np.frombuffer(content[1024:], dtype="<u2")
    assert header[:3] == (20240520, 1, len(tokens)) and not any(header[3:]), header[:8]
    return tokens


class LlmcData(ToolCase):
    tool = "llmc-data"

    def test_bytes_become_tokens(self):
        text = bytes(range(256)) * 3 + "é\r\n\0".encode()
        self.write("a.txt", text)
        printed = self.succeed("a.txt", "-o", "train.bin")
        self.assertEqual(printed, f"train.bin: {len(text)} tokens, vocabulary 256\n")
        self.assertEqual(tokens_of(self.read("train.bin")).tolist(), list(text))
        self.assertEqual(self.files(), ["a.txt", "train.bin"])

    def test_tail_is_for_validation(self):
        self.write("a.txt", b"abcdefghij")
        printed = self.succeed("a.txt", "-o", "train.bin", "--val-fraction", "0.25", "--tokenizer", "bytes")
        self.assertEqual(printed, "train.bin: 8 tokens, vocabulary 256\n"
                                  "train.val.bin: 2 tokens, the last part of the text\n")
        self.assertEqual(bytes(tokens_of(self.read("train.bin")).astype(np.uint8)), b"abcdefgh")
        self.assertEqual(bytes(tokens_of(self.read("train.val.bin")).astype(np.uint8)), b"ij")

    def test_texts_follow_one_another_and_input_is_streamed(self):
        # Longer than the tool's pieces of 1 MiB, and not a multiple of them.
        long = np.random.default_rng(1).integers(0, 256, 5_000_003, dtype=np.uint8).tobytes()
        self.write("empty.txt", b"")
        self.write("b.txt", b"end")
        self.succeed("-", "empty.txt", "b.txt", "-o", "t", "--val-fraction", "0.3", stdin=long)
        whole = np.concatenate([tokens_of(self.read("t")), tokens_of(self.read("t.val"))])
        self.assertEqual(bytes(whole.astype(np.uint8)), long + b"end")
        self.assertEqual(len(tokens_of(self.read("t.val"))), int(5_000_006 * 0.3))

    def test_same_text_same_bytes_and_old_output_is_replaced(self):
        self.write("a.txt", b"something to learn")
        self.write("x.bin", b"old")
        self.succeed("a.txt", "-o", "x.bin")
        self.succeed("a.txt", "-o", "y.bin")
        self.assertEqual(self.read("x.bin"), self.read("y.bin"))

    def test_texts_that_give_no_tokens(self):
        self.write("empty.txt", b"")
        self.write("short.txt", b"abc")
        self.fail(1, "llmc-data: empty.txt: the text is empty", "empty.txt", "-o", "t.bin")
        self.fail(1, "llmc-data: standard input: the text is empty", "-", "-o", "t.bin")
        self.fail(1, "llmc-data: short.txt: a text of 3 tokens is too short for --val-fraction 0.3", "short.txt", "-o",
                  "t.bin", "--val-fraction", "0.3")

    def test_files_that_cannot_be_read_or_written(self):
        self.write("a.txt", b"abc")
        os.mkdir(self.path("folder"))
        self.fail(1, "llmc-data: none.txt: cannot open: No such file or directory", "a.txt", "none.txt", "-o", "t.bin")
        self.fail(1, "llmc-data: folder: cannot read: Is a directory", "folder", "-o", "t.bin")
        self.fail(1, "llmc-data: no/t.bin: cannot create: No such file or directory", "a.txt", "-o", "no/t.bin")
        self.fail(1, "llmc-data: folder: cannot write: it exists and is not a regular file", "a.txt", "-o", "folder")

    def test_a_failure_leaves_the_old_output(self):
        self.write("t.bin", b"old")
        self.fail(1, "llmc-data: none.txt: cannot open: No such file or directory", "none.txt", "-o", "t.bin")
        self.assertEqual(self.read("t.bin"), b"old")

    def test_an_output_never_replaces_a_text(self):
        self.write("a.txt", b"abcdefghij")
        self.write("b.val.txt", b"abcdefghij")
        self.fail(1, "llmc-data: ./a.txt: cannot write: it is one of the input texts", "a.txt", "-o", "./a.txt")
        self.fail(1, "llmc-data: b.val.txt: cannot write: it is one of the input texts", "b.val.txt", "-o", "b.txt",
                  "--val-fraction", "0.5")

    def test_wrong_flags(self):
        self.write("a.txt", b"abc")
        self.fail(2, "llmc-data: --output is required" + HELP, "a.txt")
        self.fail(2, "llmc-data: TEXT is required" + HELP, "-o", "t.bin")
        self.fail(2, "llmc-data: --val-fraction 1: expected 0 or more and below 1" + HELP, "a.txt", "-o", "t.bin",
                  "--val-fraction", "1")
        self.fail(2, "llmc-data: --val-fraction nan: expected 0 or more and below 1" + HELP, "a.txt", "-o", "t.bin",
                  "--val-fraction", "nan")
        self.fail(2, "llmc-data: --tokenizer tokenizer.json: tokenizer files are not built yet, only bytes is" + HELP,
                  "a.txt", "-o", "t.bin", "--tokenizer", "tokenizer.json")
        self.fail(2, "llmc-data: --tokenizer words: expected bytes" + HELP, "a.txt", "-o", "t.bin", "--tokenizer", "words")

    def test_help_and_version(self):
        self.assertIn("llmc-data book.txt -o train.bin --val-fraction 0.1", self.succeed("--help"))
        self.assertRegex(self.succeed("--version"), r"^llmc-data \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
