"""Types, feedback, errors, arrays, randomness, checkpoints: the lowest layer."""
