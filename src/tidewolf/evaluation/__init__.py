"""What a run was worth: runs, comparators in hindsight."""
