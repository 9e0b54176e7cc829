# SPDX-License-Identifier: Apache-2.0
# Sizes of flows in a cluster that answers web searches: query traffic, and larger updates in the background.
# Source: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, figure 4; the points as they are tabulated with the
# traffic generators of MQ-ECN and of HPCC (github.com/HKUST-SING/TrafficGenerator, conf/DCTCP_CDF.txt).
# Bytes, and the share of flows that are not larger; between two points the share grows linearly.
0 0
10000 0.15
20000 0.2
30000 0.3
50000 0.4
80000 0.53
200000 0.6
1000000 0.7
2000000 0.8
5000000 0.9
10000000 0.97
30000000 1
