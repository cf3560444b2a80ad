// Attacks on approvals, trust and identities. See README.md.

import { Broken, show } from '../support/store-attack.mjs';
import { World } from './authority/world.mjs';
import { runAttacks } from './runner.mjs';

const approvals = ['programs', 'arguments', 'races', 'answers', 'gates', 'kills', 'grants', 'files'];
const display = ['display', 'terminal'];
const trust = ['clones', 'journals', 'reads', 'trusting', 'owner-file', 'settings'];
const others = ['sends', 'hosts', 'chats', 'keys'];

await runAttacks({
  areas: ['approvals', 'grants', 'targets', 'display', 'trust', 'sends', 'identity'],
  modules: [...approvals, ...display, ...trust, ...others].map((name) => `authority/${name}`),
  caseMs: 90_000,
  subject: (seed, id) => new World(seed, id),
  options: { lanes: { type: 'string', default: '2' } },
  lanes: (cases, { lanes }) => Array.from({ length: Number(lanes) }, () => cases),
  flawOf: (error) => (error instanceof Broken ? error.message : show(error.stack ?? error.message)),
});
