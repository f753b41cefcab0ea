# The HTML pages of llmc-compile --report and llmc-inspect --html: whole and well-formed, nothing fetched, and the data that the plan has.
import html.parser
import json
import os
import re
import subprocess
import unittest

from ToolCase import ToolCase

VOID = {"meta", "input", "br", "link", "img"}
NODE_WIDTH, NODE_HEIGHT = 176, 36


class Page(html.parser.HTMLParser):
    """Tags must close in order; attributes, ids and the text of scripts are kept."""

    def __init__(self, text):
        super().__init__()
        self.open, self.errors, self.ids, self.attributes, self.texts = [], [], [], [], {}
        self.feed(text)
        self.close()
        self.errors += [f"{tag} is not closed" for tag in self.open]

    def handle_starttag(self, tag, attributes):
        self.attributes += [(tag, name, value) for name, value in attributes]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
            self.current = dict(attributes).get("id", tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"</{tag}> at line {self.getpos()[0]} closes nothing")

    def handle_data(self, data):
        if self.open:
            self.texts[self.current] = self.texts.get(self.current, "") + data


class ReportPage(ToolCase):
    tool = "llmc-compile"

    def setUp(self):
        super().setUp()
        self.model = "a&<b>\"@DATA@.onnx"
        self.other_tool("llmc-gpt", *"--layers 2 --heads 2 --width 16 --vocab 11 --context 8 --batch 2 -o".split(), self.model)
        self.succeed(self.model, "-o", "m.plan", "--isa", "x86-64-v3", "--report", "r.html")

    def other_tool(self, name, *arguments):
        command = [os.path.join(os.environ["LLMC_BIN"], name), *arguments]
        return subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.PIPE).stdout.decode()

    def page(self, name):
        """The page, checked as a document, and its data."""
        text = self.read(name).decode()
        page = Page(text)
        self.assertEqual(page.errors, [])
        self.assertEqual(sorted(page.ids), sorted(set(page.ids)))
        self.assertTrue(text.startswith("<!DOCTYPE html>"))
        # All there is to the page is in the file.
        self.assertEqual([item for item in page.attributes if item[1] in ("src", "srcset", "action") or item[0] in ("link", "iframe", "object")], [])
        code = page.texts["script"] + page.texts["style"]
        for pattern in [r"\bfetch\(", r"XMLHttpRequest", r"\bimport\b", r"url\(", r"https?://(?!www\.w3\.org/2000/svg)", r"\beval\("]:
            self.assertIsNone(re.search(pattern, code), pattern)
        # Every element that the script asks for exists.
        for name in re.findall(r'\$\("([^"]+)"\)', code):
            self.assertIn(name, page.ids)
        self.assertNotIn("<", page.texts["data"])
        return page, json.loads(page.texts["data"])

    def test_a_compilation_has_everything(self):
        page, data = self.page("r.html")
        self.assertEqual(data["model"], self.model)
        self.assertIn(self.model, page.texts["title"])
        self.assertEqual([graph["title"] for graph in data["graphs"]], ["model", "step before fusion", "step after fusion"])
        plan = json.loads(self.other_tool("llmc-inspect", "m.plan", "--json", "--device", "cpu"))
        for shown, program in zip(data["programs"], plan["targets"][0]["programs"], strict=True):
            self.assertEqual((shown["kind"], shown["arena"], shown["bound"]), (program["kind"], program["arena_bytes"], program["arena_lower_bound_bytes"]))
            self.assertEqual(shown["peak"], list(program["peak"]["by_category"].values()))
            self.assertEqual([data["texts"][name] for name in shown["launches"]["name"]], [launch["name"] for launch in program["launches"]])
            self.assertEqual([(data["texts"][row[0]], *row[1:6]) for row in shown["collectives"]],
                             [(one["name"], one["parts"], one["bytes"], one["start_launch"], one["wait_launch"], one["flops_meanwhile"])
                              for one in program["collectives"]])
            self.assertEqual(bool(shown["collectives"]), program["kind"].endswith("-ranks"))
            live = [sum(parts) for parts in zip(*shown["live"], strict=True)]
            self.assertEqual(max(live), program["arena_lower_bound_bytes"])
            self.assertEqual(live.index(max(live)), shown["peakLaunch"])
        after = data["graphs"][2]
        step = next(program for program in plan["targets"][0]["programs"] if program["kind"] == "step-fused")
        self.assertEqual(len(after["x"]), len(step["launches"]))
        self.assertEqual(len([row for row in data["ledger"] if row[3].startswith("trains")]), 28)
        passes = [name for name, _ in data["passes"]]
        self.assertEqual((passes[0], passes[-1]), ("import", "write"))
        self.assertTrue({"applied", "declined"} <= {data["texts"][row[1]] for row in data["remarks"]})
        programs = [[data["texts"][i] for i in row[5]] for row in data["remarks"] if data["texts"][row[0]] == "plan-memory"]
        self.assertTrue({"forward", "step-fused", "step"} <= {name for names in programs for name in names}, programs)

    def test_graphs_are_laid_out_without_overlap(self):
        _, data = self.page("r.html")
        for graph in data["graphs"]:
            places = sorted(zip(graph["y"], graph["x"]))
            for (y, x), (other_y, other_x) in zip(places, places[1:]):
                self.assertTrue(other_y - y >= NODE_HEIGHT or other_x - x >= NODE_WIDTH, graph["title"])
            self.assertLessEqual(max(graph["x"]) + NODE_WIDTH, graph["width"])
            self.assertEqual(len(graph["from"]), len(graph["to"]))
            self.assertTrue(all(a < len(graph["x"]) for a in graph["from"] + graph["to"]))

    def test_a_plan_alone_has_a_page_too(self):
        self.other_tool("llmc-run", "m.plan", "--steps", "2", "--threads", "1", "--profile", "t.json")
        self.other_tool("llmc-inspect", "m.plan", "--html", "i.html", "--profile", "t.json", "--device", "h200")
        _, data = self.page("i.html")
        self.assertNotIn("graphs", data)
        self.assertNotIn("remarks", data)
        self.assertEqual(data["device"]["memory"], 4800)
        self.assertEqual([name for name, _ in data["sections"]], ["metadata", "weights", "code", "model"])
        first = data["programs"][data["first"]]
        self.assertEqual((first["kind"], len(first["launches"]["ms"])), ("step", len(first["launches"]["name"])))


if __name__ == "__main__":
    unittest.main()
