"""Floors: brokers that do as little as possible in their language, to measure the real one against."""
