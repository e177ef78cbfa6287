"""What learners and rivals share: the base that owns the clock, and the formulas of their steps."""
