// Attacks on approvals, trust, permits and identities. See README.md.

import { ExpectationError, show } from '../support/store-attack.mjs';
import { AuthorityFixture } from './authority/fixture.mjs';
import { runAttacks } from './runner.mjs';

const approvals = ['programs', 'arguments', 'races', 'answers', 'approval-policies', 'kills', 'grants', 'files'];
const display = ['display', 'terminal'];
const trust = ['untrusted-clone', 'journals', 'reads', 'trusted-directories', 'trust-file', 'settings'];
const network = ['sends', 'hosts', 'chats', 'keys'];

await runAttacks({
  areas: ['approvals', 'grants', 'targets', 'display', 'trust', 'sends', 'identity'],
  modules: [...approvals, ...display, ...trust, ...network].map((name) => `authority/${name}`),
  caseMs: 90_000,
  subject: (seed, id) => new AuthorityFixture(seed, id),
  options: { lanes: { type: 'string', default: '2' } },
  lanes: (cases, { lanes }) => Array.from({ length: Number(lanes) }, () => cases),
  describeFailure: (error) => (error instanceof ExpectationError ? error.message : show(error.stack ?? error.message)),
});
