/**
 * Which addresses are public. Of IPv6 only what is given out to the public counts; the many ways in which it can wrap an
 * IPv4 address (mapped, NAT64, 6to4, Teredo) are refused as they are, so nothing need be unwrapped.
 */
import type { BlockList } from 'node:net';

/** Loaded with the first address that is judged: it takes longer than all else that this module needs. */
function netModule(): typeof import('node:net') {
  return process.getBuiltinModule('node:net');
}

/** 4 or 6 for an IP address, 0 for anything else. */
export function ipVersion(text: string): number {
  return netModule().isIP(text);
}

function blockListOf(family: 'ipv4' | 'ipv6', ...subnets: readonly string[]): BlockList {
  const list = new (netModule().BlockList)();
  for (const subnet of subnets) {
    const [network = '', bits] = subnet.split('/');
    list.addSubnet(network, Number(bits), family);
  }
  return list;
}

/** This host, private, shared with the carrier, link-local, protocol, documentation, relay, benchmark, multicast, reserved. */
const NON_PUBLIC_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
];

/** Given out to the public, but for: protocol assignments and Teredo, documentation, 6to4, AS112, documentation again. */
const PUBLIC_IPV6 = '2000::/3';
const NON_PUBLIC_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'];

interface AddressLists {
  readonly nonPublicIpv4: BlockList;
  readonly publicIpv6: BlockList;
  readonly nonPublicIpv6: BlockList;
}

let cachedLists: AddressLists | undefined;

function addressLists(): AddressLists {
  cachedLists ??= {
    nonPublicIpv4: blockListOf('ipv4', ...NON_PUBLIC_IPV4),
    publicIpv6: blockListOf('ipv6', PUBLIC_IPV6),
    nonPublicIpv6: blockListOf('ipv6', ...NON_PUBLIC_IPV6),
  };
  return cachedLists;
}

/** Whether anybody on the internet may be meant by this address; what is no address is not. */
export function isPublicAddress(address: string): boolean {
  // A zone names an interface of this machine.
  if (address.includes('%')) return false;
  const version = ipVersion(address);
  const { nonPublicIpv4, publicIpv6, nonPublicIpv6 } = addressLists();
  if (version === 4) return !nonPublicIpv4.check(address, 'ipv4');
  return version === 6 && publicIpv6.check(address, 'ipv6') && !nonPublicIpv6.check(address, 'ipv6');
}
