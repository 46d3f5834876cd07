//! Histograms, percentiles, means with error, interval series, significance.
