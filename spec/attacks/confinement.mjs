// Attacks on what tools and commands may reach, on their limits, and on where secrets and escape sequences end up. See README.md.

import { Scene } from './confinement/scene.mjs';
import { runAttacks } from './runner.mjs';

const data = ['data-tools', 'data-commands', 'data-races', 'data-verbs'];
const commands = ['sandbox', 'resources', 'keyring', 'swaps'];
const texts = ['secrets-http', 'secrets-others', 'sinks', 'screens', 'hidden'];

await runAttacks({
  areas: ['data', 'sandbox', 'limits', 'keyring', 'secrets', 'output', 'terminal'],
  modules: [...data, ...commands, ...texts].map((name) => `confinement/${name}`),
  caseMs: 90_000,
  subject: (seed, id) => new Scene(seed, id),
});
