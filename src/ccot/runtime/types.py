"""Types of matrices and arrays."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import scipy.sparse as sp

# A matrix of a user: dense, or sparse in one of SciPy's compressed formats.
Matrix: TypeAlias = np.ndarray | sp.sparray | sp.spmatrix
# An array of any library that follows the array API standard, such as NumPy and PyTorch. It is Any
# because the standard defines no type to import.
Array: TypeAlias = Any

is_sparse: Callable[[Any], TypeGuard[sp.csr_array]] = sp.issparse
