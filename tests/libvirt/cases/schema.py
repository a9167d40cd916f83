# SPDX-License-Identifier: BSD-3-Clause
"""The schema and the program agree on what is valid."""

import subprocess
from pathlib import Path

from hook import HEAD, TAIL, call

SCHEMA = Path(__file__).resolve().parents[3] / "hv" / "libvirt" / "pmu.rng"
OPEN = "<vpmu:pmu xmlns:vpmu='urn:vpmu:domain:1' socket='/nonexistent/s' "

# Elements, and whether they are valid.
ELEMENTS = (
    ("/>", True),
    ("counters='32' fixed='16' class='any' policy='hide' yields='yes' status='no' before='on'/>", True),
    ("counters='4' least='2' policy='reduce'/>", True),
    ("><vpmu:deny event='r00c4'/><vpmu:allow event='llc-misses'/><vpmu:deny event='cycles'/></vpmu:pmu>", True),
    ("counters='0'/>", False), ("counters='33'/>", False), ("counters='many'/>", False), ("fixed='17'/>", False),
    ("class='all'/>", False), ("policy='hope'/>", False), ("yields='1'/>", False), ("status='on'/>", False),
    ("before='maybe'/>", False), ("more='1'/>", False), ("><vpmu:allow/></vpmu:pmu>", False),
    ("><vpmu:allow event=''/></vpmu:pmu>", False), ("><vpmu:refuse event='cycles'/></vpmu:pmu>", False),
)


def agree(results):
    for element, valid in ELEMENTS:
        text = OPEN + element
        run = subprocess.run(["xmllint", "--noout", "--relaxng", SCHEMA, "-"], input=text, capture_output=True, text=True,
                             check=False)
        results.equal(f"the schema: {element}", run.returncode == 0, valid)
        # What is understood is asked of a vpmud that is not there.
        said = call("prepare", HEAD.format(uuid="4dea22b31d52d8f32516782e98ab3fa0") + text + TAIL)[1]
        results.equal(f"the hook: {element}", "/nonexistent/s" in said, valid)


CASES = (agree,)
