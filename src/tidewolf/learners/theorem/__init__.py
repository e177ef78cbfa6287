"""The paper's constants, to the letter: settings only, which the learners of the same names use."""
