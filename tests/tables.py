"""Tables as people have them: a row for each hour, under the names of columns."""

import numpy as np


def table(names, values, times=True, start="2024-01-01T00:00"):
    """CSV, with a column of times unless there are none."""
    hours = np.datetime64(start) + np.timedelta64(1, "h") * np.arange(len(values))
    rows = zip(hours, values.tolist(), strict=True)
    rows = [[*[str(hour)] * times, *map(repr, row)] for hour, row in rows]
    return "".join(f"{','.join(row)}\n" for row in [[*["time"] * times, *names], *rows])
