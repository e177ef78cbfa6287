"""Types, feedback, errors, arrays, randomness, checkpoints: what every other layer stands on."""
