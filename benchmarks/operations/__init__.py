"""The ten operations whose speed is followed from commit to commit."""
