"""The paper's algorithms: one number for each row and column, and its jumps."""
