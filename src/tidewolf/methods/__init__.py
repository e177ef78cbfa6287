"""What learners and baselines share: the base class that owns the clock, and the formulas of their
steps.
"""
