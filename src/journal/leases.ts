/** The leases of a store that only one process uses: every lease is granted, and a request finds no holder. */
import type { Lease, Leases } from './store.js';

/** A lease that needs no release, because no other process competes for it. */
export const NOOP_LEASE: Lease = { release: () => {} };

const NO_HOLDER = Promise.resolve({ status: 'not-held' } as const);

/** Leases for a store without other processes. */
export const singleProcessLeases: Leases = {
  acquire: () => NOOP_LEASE,
  list: async () => [],
  request: () => NO_HOLDER,
};
