# SPDX-License-Identifier: Apache-2.0
# Sizes of flows in a cluster for data mining: half of them are at most 1.1 kB, and most bytes are in flows above 100 MB.
# Source: Greenberg et al., "VL2: A Scalable and Flexible Data Center Network", SIGCOMM 2009, figure 2; the points as they
# are tabulated with the traffic generator of MQ-ECN (github.com/HKUST-SING/TrafficGenerator, conf/VL2_CDF.txt).
# Bytes, and the share of flows that are not larger; between two points the share grows linearly.
0 0
180 0.1
216 0.2
560 0.3
900 0.4
1100 0.5
1870 0.6
3160 0.7
10000 0.8
400000 0.9
3160000 0.95
100000000 0.98
1000000000 1
