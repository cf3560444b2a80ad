/** The leases of a store that only one process uses: every session is free, and there is nobody to ask. */
import type { Lease, Leases } from './store.js';

/** The lease of a store without other processes; there is nothing to release. */
export const NOOP_LEASE: Lease = { release: () => {} };

const NO_HOLDER = Promise.resolve({ status: 'nobody' } as const);

export const singleProcessLeases: Leases = {
  acquire: () => NOOP_LEASE,
  list: async () => [],
  request: () => NO_HOLDER,
};
