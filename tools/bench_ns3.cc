// SPDX-License-Identifier: Apache-2.0
// The flow of tools/bench_flow.py in ns-3: sender - switch - receiver, CUBIC, MTU 1500, RTT 10 ms, 1 MB of buffer.
// Arguments: Mb/s of the bottleneck, seconds of traffic.  Prints the bytes that arrived.
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

int main(int argc, char **argv)
{
	if (argc != 3) {
		std::cerr << "want: MBPS SECONDS\n";
		return 2;
	}
	const std::string rate = std::string(argv[1]) + "Mbps";
	const double seconds = std::stod(argv[2]);

	Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
	Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(6 << 20));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(6 << 20));

	NodeContainer nodes;
	nodes.Create(3);
	PointToPointHelper access, bottleneck;
	access.SetDeviceAttribute("DataRate", StringValue("100Gbps"));
	access.SetChannelAttribute("Delay", StringValue("0ms"));
	bottleneck.SetDeviceAttribute("DataRate", StringValue(rate));
	bottleneck.SetChannelAttribute("Delay", StringValue("5ms"));
	bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000B"));
	NetDeviceContainer first = access.Install(nodes.Get(0), nodes.Get(1));
	NetDeviceContainer second = bottleneck.Install(nodes.Get(1), nodes.Get(2));
	InternetStackHelper stack;
	stack.Install(nodes);
	Ipv4AddressHelper addresses;
	addresses.SetBase("10.0.1.0", "255.255.255.0");
	addresses.Assign(first);
	addresses.SetBase("10.0.2.0", "255.255.255.0");
	Ipv4InterfaceContainer far = addresses.Assign(second);
	Ipv4GlobalRoutingHelper::PopulateRoutingTables();

	const uint16_t port = 5001;
	BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(far.GetAddress(1), port));
	ApplicationContainer source = sender.Install(nodes.Get(0));
	PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
	ApplicationContainer sink = receiver.Install(nodes.Get(2));
	source.Stop(Seconds(seconds));
	Simulator::Stop(Seconds(seconds));
	Simulator::Run();
	std::cout << DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx() << "\n";
	Simulator::Destroy();
	return 0;
}
