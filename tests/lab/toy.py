"""An experiment that is quick, and notes in a file every piece that it computes."""

TOY = '''
"""Counts, slowly."""
import time
from onelayer.lab.experiment import Verdict
from onelayer.lab.pictures import figure
QUESTION, HYPOTHESES, EXTRAS = "How far <do> we count?", ("Far & further.",), ()
def cases(preset): return [{"start": i, "log": LOG, "pause": PAUSE} for i in range(6)]
def run(case, seed):
    with open(case["log"], "a") as log: log.write(f"{case['start']} {seed}\\n")
    time.sleep(case["pause"])
    return [{"value": value, "square": None if seed else 1, "word": "one"} for value in count(case["start"], seed)]
def count(start, seed): return [start + seed / PARTS] * 2
PARTS = 8
def plot(rows):
    made, (axes,) = figure()
    axes.plot(values(rows))
    return made
def values(rows): return [row["value"] for row in rows]
def verdict(rows):
    if len(rows) < 4: raise ValueError("too few rows")
    return Verdict("yes", f"To {max(row['value'] for row in rows)}.", ("One finding <b>.", "Another."))
'''
