"""Printers from statements to the source languages of engines."""
