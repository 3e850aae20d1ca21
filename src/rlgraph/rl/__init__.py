"""Records of reinforcement learning and the pure functions over them."""
