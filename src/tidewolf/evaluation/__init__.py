"""Evaluation: runs of learners over streams, their regret, violation and certificates."""
