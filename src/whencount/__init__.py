"""When do IDF, saturation and length normalisation help a sparse non-negative scorer?"""

__version__ = "0.1.0"
