"""Functions in f32 as HLS C++: loop nests that stream to each other, scheduled by the estimator."""
