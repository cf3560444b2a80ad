/**
 * Resolves host names to public addresses only. It takes the place of the resolver inside a connection: what it has judged
 * is what is connected to, so a name that resolves differently the next time (DNS rebinding) changes nothing.
 */
import type { LookupFunction } from 'node:net';
import { ipVersion, isPublicAddress } from './ip-address.js';

/** All addresses of a host. */
export type ResolveHost = (hostname: string) => Promise<readonly string[]>;

/** The error of a host that has an address which is not public. */
export class NotPublicError extends Error {
  readonly code = 'NOT_PUBLIC';
}

/** All addresses of a host; `NotPublic` if one of them is not public. */
export async function publicAddresses(hostname: string, resolve: ResolveHost): Promise<readonly string[]> {
  const addresses = await resolve(hostname);
  // guard: every-resolved-address-public
  if (!addresses.every(isPublicAddress)) throw notPublicError(hostname);
  return addresses;
}

/** A `lookup` for sockets. One address that is not public is enough to refuse the host. */
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
  const found = addresses.map((address) => ({ address, family: ipVersion(address) }));
  const [first] = found;
  if (first === undefined) callback(notPublicError(hostname), '', 0);
  else if (all) callback(null, found);
  else callback(null, first.address, first.family);
}

function notPublicError(hostname: string): NotPublicError {
  return new NotPublicError(`${hostname} is not on the public internet`);
}
