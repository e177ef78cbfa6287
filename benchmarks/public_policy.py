"""A trained policy for traffic engineering, after DOTE (Perry et al., NSDI 2023).

    last 12 traffic matrices, standardised -> two hidden layers of 128 -> a softmax for each pair

trained by Adam to make the fullest link little fuller than it had to be, on the first 6,000 of the
7,500 rounds there are to learn from, a half of the hidden units left out at random in every step;
kept is the epoch that is best on the other 1,500. It never sees the rounds that count but as
inputs, one round late. Minutes on a processor are enough; there is no need for torch elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.public_tables import Skipped

Floats = np.ndarray[Any, np.dtype[np.float64]]
WINDOW, WIDTH, DROPPED, RATE, BATCH = 12, 128, 0.5, 1e-3, 128
EPOCHS, PATIENCE, VALIDATED = 40, 8, 1500


def trained(losses: Any, raw: Floats, learnt: int, seed: int) -> Floats:
    """Splits of every round, NaN in the rounds it was trained on.

    `losses` are `MaxUtilization` of relative demands, `raw` the demands as measured, `learnt` the
    number of rounds to learn from.
    """
    try:
        import torch
    except ImportError as missing:
        raise Skipped("torch is not installed; the policy needs it to be trained") from missing

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    order = torch.Generator().manual_seed(seed)
    rounds, pairs = raw.shape
    owner = torch.as_tensor(np.asarray(losses.pairs).astype(np.int64))
    paths = len(owner) // pairs
    load = np.asarray(losses.incidence) / np.asarray(losses.capacities)[:, None]
    links = torch.as_tensor(load.astype(np.float32)).T
    seen = np.stack([raw[t - WINDOW : t].ravel() for t in range(WINDOW, rounds)])
    cut, stop = learnt - VALIDATED - WINDOW, learnt - WINDOW
    middle, spread = seen[:cut].mean(axis=0), seen[:cut].std(axis=0)
    X = torch.as_tensor(((seen - middle) / spread).astype(np.float32))
    demands = torch.as_tensor(np.asarray(losses.demands)[WINDOW:].astype(np.float32))

    net = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], WIDTH),
        torch.nn.ReLU(),
        torch.nn.Dropout(DROPPED),
        torch.nn.Linear(WIDTH, WIDTH),
        torch.nn.ReLU(),
        torch.nn.Dropout(DROPPED),
        torch.nn.Linear(WIDTH, len(owner)),
    )
    steps = torch.optim.Adam(net.parameters(), lr=RATE)

    def splits(x: Any) -> Any:
        return torch.softmax(net(x).view(-1, pairs, paths), -1).reshape(-1, len(owner))

    def fullest(x: Any, demand: Any) -> Any:
        return ((x * demand[:, owner]) @ links).max(dim=1).values

    best, kept, since = np.inf, np.empty(0), 0
    for _ in range(EPOCHS):
        net.train()
        for batch in torch.randperm(cut, generator=order).split(BATCH):
            loss = fullest(splits(X[batch]), demands[batch]).mean()
            steps.zero_grad()
            loss.backward()
            steps.step()
        net.eval()
        with torch.no_grad():
            found = splits(X)
            value = float(fullest(found[cut:stop], demands[cut:stop]).mean())
        since += 1
        if value < best:
            best, kept, since = value, found[stop:].numpy().astype(np.float64), 0
        if since > PATIENCE:
            break
    points = np.full((rounds, len(owner)), np.nan)
    sums = kept.reshape(-1, pairs, paths).sum(axis=2)
    points[learnt:] = kept / np.repeat(sums, paths, axis=1)
    return points
