# SPDX-License-Identifier: Apache-2.0
"""The report: DATE-COMMIT.md to read and DATE-COMMIT.json to compute with. Written anew after every part, so that it is
there whatever happens next."""
import json
import os


class Report:
    def __init__(self, folder, name, machine, command):
        self.folder, self.name = folder, name
        self.data = {"format": 1, "machine": machine, "command": command, "parts": [], "seconds": 0}
        os.makedirs(folder, exist_ok=True)

    def path(self, suffix):
        return os.path.join(self.folder, self.name + suffix)

    def write(self, parts, seconds, ending=""):
        self.data["parts"] = [part.as_json() for part in parts]
        self.data["seconds"], self.data["ending"] = round(seconds, 1), ending
        self._replace(".json", json.dumps(self.data, indent=1) + "\n")
        self._replace(".md", self._markdown())

    def _replace(self, suffix, text):
        unfinished = self.path(suffix) + "_"
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(unfinished, self.path(suffix))

    def _markdown(self):
        data = self.data
        machine = data["machine"]
        title = "A rehearsal without a GPU" if "rehearsal" in machine else machine.get("gpu", "no GPU")
        lines = ["# %s, %s" % (title, machine["date"]), ""]
        lines += ["Commit %s. %s seconds%s." % (machine["commit"], data["seconds"],
                                                ", " + data["ending"] if data["ending"] else ""), ""]
        lines += ["| | |", "|---|---|"]
        lines += ["| %s | %s |" % (key, value) for key, value in machine.items() if key not in ("date", "commit")]
        lines += ["", "| part | | passed | failed | skipped | seconds |", "|---|---|---|---|---|---|"]
        for part in data["parts"]:
            lines.append("| %s | %s | %d | %d | %d | %s |" % (
                part["name"], part["state"] + (": " + part["reason"] if part["reason"] else ""), part["passed"],
                part["failed"], part["skipped"], part["seconds"]))
        for part in data["parts"]:
            lines += self._details(part)
        return "\n".join(lines) + "\n"

    @staticmethod
    def _details(part):
        if not (part["failures"] or part["notes"] or part["tables"]):
            return []
        lines = ["", "## " + part["name"]]
        for table in part["tables"]:
            lines += ["", table["title"], "", "| " + " | ".join(table["columns"]) + " |",
                      "|" + "---|" * len(table["columns"])]
            lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in table["rows"]]
        if part["notes"]:
            lines += [""] + ["- " + note.replace("\n", "\n  ") for note in part["notes"]]
        if part["failed"] > len(part["failures"]):
            lines += ["", "%d of %d failures:" % (len(part["failures"]), part["failed"])]
        for failure in part["failures"]:
            lines += ["", "%s:" % failure["where"], "", "```"] + failure["message"].splitlines() + ["```"]
        return lines
