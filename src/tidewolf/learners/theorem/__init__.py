"""The paper's constants, to the letter."""
