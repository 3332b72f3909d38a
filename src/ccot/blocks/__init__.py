"""Block models: losses, transport onto blocks, hierarchies, and the numbers of clusters."""
