"""The paper's constants: settings only, which the learners of the same names use."""
