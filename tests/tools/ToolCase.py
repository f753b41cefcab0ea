# A test case that runs one of our tools in an empty folder of its own and looks at exit status, texts and files.
import os
import subprocess
import tempfile
import unittest


class ToolCase(unittest.TestCase):
    tool = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def run_tool(self, *arguments, stdin=b""):
        """The finished process; texts are bytes."""
        tool = os.path.join(os.environ["LLMC_BIN"], self.tool)
        return subprocess.run([tool, *arguments], cwd=self.folder, input=stdin, capture_output=True, timeout=600)

    def succeed(self, *arguments, stdin=b""):
        """Runs, expects exit status 0 and gives what was printed."""
        done = self.run_tool(*arguments, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def fail(self, status, message, *arguments, stdin=b""):
        """Runs, expects that exit status, that error text, and no file made or left behind."""
        before = self.files()
        done = self.run_tool(*arguments, stdin=stdin)
        self.assertEqual(done.stderr.decode(), message + "\n")
        self.assertEqual(done.returncode, status)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(self.files(), before)

    def files(self):
        return sorted(os.listdir(self.folder))
