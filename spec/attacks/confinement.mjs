// Attacks on the confinement of tools and sandboxed commands: data directories, the sandbox, limits, keyrings, secrets
// and terminal output. See README.md.

import { ConfinementFixture } from './confinement/fixture.mjs';
import { runAttacks } from './runner.mjs';

const data = ['data-tools', 'data-commands', 'data-races', 'data-verbs'];
const commands = ['sandbox', 'command-limits', 'keyring', 'mount-races'];
const output = ['secrets-http', 'secrets-models-programs', 'lost-output', 'terminal-output', 'approval-cards'];

await runAttacks({
  areas: ['data', 'sandbox', 'limits', 'keyring', 'secrets', 'output', 'terminal'],
  modules: [...data, ...commands, ...output].map((name) => `confinement/${name}`),
  caseMs: 90_000,
  subject: (seed, id) => new ConfinementFixture(seed, id),
});
