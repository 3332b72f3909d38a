"""The paper's experiments: trials, tables, figures, and the paper's own numbers beside them."""
