# SPDX-License-Identifier: Apache-2.0
# Sizes of the values in a key-value store (memcached's pool ETC).
# Source: Atikoglu et al., "Workload Analysis of a Large-Scale Key-Value Store", SIGMETRICS 2012, section 5: a generalized
# Pareto distribution of location 0, scale 214.476 and shape 0.348238.  Its quantiles, 214.476 / 0.348238 x
# ((1 - share)^-0.348238 - 1), at the shares below, rounded to bytes; the last one is memcached's largest value.
# Bytes, and the share of values that are not larger; between two points the share grows linearly.
0 0
11 0.05
23 0.1
36 0.15
50 0.2
65 0.25
81 0.3
100 0.35
120 0.4
143 0.45
168 0.5
197 0.55
231 0.6
272 0.65
321 0.7
382 0.75
463 0.8
577 0.85
757 0.9
809 0.91
868 0.92
939 0.93
1025 0.94
1132 0.95
1273 0.96
1473 0.97
1789 0.98
2446 0.99
2693 0.992
3042 0.994
3597 0.996
4747 0.998
6211 0.999
8075 0.9995
14606 0.9999
18761 0.99995
33323 0.99999
75055 0.999999
1000000 1
