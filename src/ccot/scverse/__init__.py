"""Co-clustering of cells and genes in AnnData, in scanpy's manner: ``tl`` computes, ``pl`` draws.

>>> import anndata
>>> import numpy as np
>>> import ccot.scverse as cs
>>> means = np.kron([[4.0, 0.5, 1.0], [0.5, 4.0, 1.0]], np.ones((30, 20)))
>>> adata = anndata.AnnData(np.random.default_rng(0).poisson(means).astype(np.float32))
>>> cs.tl.cocluster(adata)
ccot: counts of X
>>> adata.obs["ccot"].value_counts().tolist()
[30, 30]
"""

from importlib.util import find_spec

if find_spec("anndata") is None:
    raise ImportError("ccot.scverse needs anndata, which is not installed: pip install anndata")

from ccot.scverse import pl, tl

__all__ = ["pl", "tl"]
