"""Tables as people have them: a row for each hour, under the names of columns."""

import numpy as np

SIMPLEX = '[set]\nkind = "Simplex"\n[stream]\ncosts = "costs.csv"\ncapacities = "capacities.csv"\n'
"""An experiment on shares of what the columns of two tables name."""


def played_by(*learners):
    """The lines of a file that name learners, with settings after the name."""
    return "".join(f"[[learners]]\nname = {each}\n" for each in learners)


def table(names, values, times=True, start="2024-01-01T00:00"):
    """CSV, with a column of times unless there are none."""
    hours = np.datetime64(start) + np.timedelta64(1, "h") * np.arange(len(values))
    rows = zip(hours, values.tolist(), strict=True)
    rows = [[*[str(hour)] * times, *map(repr, row)] for hour, row in rows]
    return "".join(f"{','.join(row)}\n" for row in [[*["time"] * times, *names], *rows])
