"""The I/O fingerprint: what a case asks of the storage, call by call, and how HDF5 lays out its files. No clock is in it, so
that no noise can hide a change.
"""
