"""The best point of given rounds, and how far from the best it may be."""
