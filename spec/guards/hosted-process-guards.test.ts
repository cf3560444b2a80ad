// Guards of what hosted loops are outside of their host.

import { hostedProcessChecks, hostedProcessParts } from './hosted-process-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(hostedProcessChecks);

proveGuards(hostedProcessParts, [
  guard(
    'hosted.signals',
    'a signal without a method is not delivered from outside',
    'delivered-signal-needs-its-method',
    { rewrite: [/, 'hmac-sha256'/, ''] },
  ),
  guard('hosted.control', 'the lease of a hosted loop is not listed as a turn', 'reserved-lease-is-no-turn', {
    rewrite: [/if \(!isReservedSession\(session\)\)/, ''],
  }),
  guard('hosted.document', 'a first input that does not fit the loop is refused', 'first-input-fits-the-loop', {
    value: '[]',
  }),
]);
