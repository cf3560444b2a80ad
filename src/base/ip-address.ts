/**
 * Classifies IP addresses as public or not. Of IPv6, only global unicast addresses are public, with exceptions. Ranges
 * that embed an IPv4 address (mapped, NAT64, 6to4, Teredo) are never public, so no address has to be unwrapped.
 */
import type { BlockList } from 'node:net';

/** Returns node:net, loaded on first use, because loading it dominates the start-up time of this module. */
function netModule(): typeof import('node:net') {
  return process.getBuiltinModule('node:net');
}

/** Returns 4 or 6 for an IP address, and 0 for any other text. */
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

/**
 * The IPv4 ranges that are not public: this network, loopback, private, carrier-grade NAT, link-local, protocol
 * assignments, documentation, AS112, relays, benchmarks, multicast, reserved.
 */
const NON_PUBLIC_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
];

/** The global unicast addresses of IPv6. */
const PUBLIC_IPV6 = '2000::/3';
/**
 * The ranges in PUBLIC_IPV6 that are not public: protocol assignments and Teredo, documentation, 6to4, AS112,
 * documentation.
 */
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

/** True for an IP address on the public internet. False for any text that is not an IP address. */
export function isPublicAddress(address: string): boolean {
  // A zone id refers to an interface of this machine.
  if (address.includes('%')) return false;
  const version = ipVersion(address);
  const { nonPublicIpv4, publicIpv6, nonPublicIpv6 } = addressLists();
  if (version === 4) return !nonPublicIpv4.check(address, 'ipv4');
  return version === 6 && publicIpv6.check(address, 'ipv6') && !nonPublicIpv6.check(address, 'ipv6');
}
