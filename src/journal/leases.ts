/** The leases of a store that only one process uses: every session is free, and there is nobody to ask. */
import type { Lease, Leases } from './store.js';

/** The lease of a store without other processes; there is nothing to release. */
export const FREE_LEASE: Lease = { release: () => {} };

const NOBODY = Promise.resolve({ status: 'nobody' } as const);

export const soloLeases: Leases = {
  acquire: () => FREE_LEASE,
  list: async () => [],
  ask: () => NOBODY,
};
