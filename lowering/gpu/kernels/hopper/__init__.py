"""Products of matrices by instructions of sm_90a: copies of tensors, mbarriers and `wgmma`."""
