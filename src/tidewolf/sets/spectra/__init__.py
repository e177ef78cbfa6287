"""Matrices with limits on their eigenvalues or singular values."""
