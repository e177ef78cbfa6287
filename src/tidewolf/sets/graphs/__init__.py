"""What sets over graphs share: order, blocks, residual graphs, circulations."""
