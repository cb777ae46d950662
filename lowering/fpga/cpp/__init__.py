"""HLS C++ of designs, for users of Vitis."""
