"""The vector engine: loops whose iterations are independent run as NumPy operations on slices."""
