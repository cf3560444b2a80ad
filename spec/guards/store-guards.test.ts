// Guards of the stores in memory and in SQLite.

import { kernelParts } from './library.js';
import { guardsOf, proveGuards } from './prove.js';
import { storeChecks } from './store-checks.js';

const guard = guardsOf(storeChecks);

proveGuards(kernelParts, [
  guard('journal.cases', 'the store in memory passes the journal cases', 'append-only-at-the-end', 'drop'),
  guard('journal.cases', 'the store in memory passes the journal cases', 'removed-session-forgotten', 'drop'),
  guard('journal.cases', 'the store in memory passes the journal cases', 'claim-raises-the-fence', { value: '1' }),
  guard('journal.cases', 'the store in memory passes the journal cases', 'read-starts-at-its-offset', {
    take: 'receiver',
  }),
  guard('sqlite.damage', 'an altered record is reported as damaged', 'record-hash-verified', 'never'),
  guard(
    'kernel.ack',
    'an append is acknowledged only after its sync, and a failed sync is not retried',
    'acknowledged-after-commit',
    { rewrite: [/return (\w+);/, '$1(); return () => {};'] },
  ),
  guard(
    'sqlite.failure',
    'an append is acknowledged only after its sync, and a failed sync is not retried',
    'failed-sync-stops-the-store',
    'drop',
  ),
  guard(
    'sqlite.failure',
    'a failed statement that commits by itself stops the store',
    'lone-statement-counts-as-commit',
    { value: 'false' },
  ),
  guard('sqlite.failure', 'a WAL that cannot be checkpointed stays open', 'full-wal-stays-open', 'drop'),
  guard(
    'sqlite.failure',
    'the shared memory of a store exists before SQLite maps it',
    'shared-memory-reserved',
    'drop',
  ),
  guard('sqlite.damage', 'a session whose last record was altered is refused', 'last-record-verified-on-claim', 'drop'),
  guard('kernel.fence', 'a writer whose claim was removed cannot append', 'append-needs-a-live-claim', {
    literal: ['fence = ?8', '?8 > 0'],
  }),
]);
