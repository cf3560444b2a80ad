/**
 * Resolves host names to public addresses only. It replaces the resolver inside a connection, so the checked address is
 * the one that is connected to. A name that resolves differently the next time (DNS rebinding) has no effect. A URL
 * with a literal address is not looked up, so the caller must check such an address itself.
 */
import type { LookupFunction } from 'node:net';
import { ipVersion, isPublicAddress } from './ip-address.js';

/** Returns all addresses of a host. */
export type ResolveHost = (hostname: string) => Promise<readonly string[]>;

/** Thrown for a host with an address that is not public, or without any address. */
export class NotPublicError extends Error {
  readonly code = 'NOT_PUBLIC';
}

/** Returns all addresses of a host, possibly none. Throws NotPublicError if one of them is not public. */
export async function publicAddresses(hostname: string, resolve: ResolveHost): Promise<readonly string[]> {
  const addresses = await resolve(hostname);
  // guard: every-resolved-address-public
  if (!addresses.every(isPublicAddress)) throw notPublicError(hostname);
  return addresses;
}

/**
 * Returns a `lookup` function for sockets. It refuses a host without addresses, or with even one address that is not
 * public.
 */
export function publicLookup(resolve: ResolveHost): LookupFunction {
  return (hostname, options, callback) => {
    publicAddresses(hostname, resolve).then(
      (addresses) => returnAddresses(hostname, addresses, options.all === true, callback),
      (error) => callback(error, '', 0),
    );
  };
}

function returnAddresses(
  hostname: string,
  addresses: readonly string[],
  all: boolean,
  callback: Parameters<LookupFunction>[2],
): void {
  const results = addresses.map((address) => ({ address, family: ipVersion(address) }));
  const [first] = results;
  if (first === undefined) callback(notPublicError(hostname), '', 0);
  else if (all) callback(null, results);
  else callback(null, first.address, first.family);
}

function notPublicError(hostname: string): NotPublicError {
  return new NotPublicError(`${hostname} is not on the public internet`);
}
