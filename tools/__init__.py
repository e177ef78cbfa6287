"""Small programs for whoever works on tidewolf."""
