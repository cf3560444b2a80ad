// A project with loops that wait for a signal.

import type { TurnResult } from '../../src/protocol/index.js';
import { Project } from '../support/cli-project.js';

const library = new URL('../../dist/index.js', import.meta.url);
const LOOPS = `import { defineLoop, defineSignal } from ${JSON.stringify(library)};
  const amount = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };
  const paid = defineSignal('paid', amount);
  const anything = { input: true, output: true };
  export const order = defineLoop({ ...anything, id: 'order', run: (_, scope) => scope.wait(paid) });
  export const served = defineLoop({ ...anything, id: 'served', run: (_, scope) =>
    scope.race([(s) => s.wait(paid), (s) => s.sleep('9 seconds').then(() => 'too late')]) });`;

/** What `rondo signal --json` prints. */
export interface SignalReport {
  readonly turnId?: string;
  readonly sessionId?: string;
  readonly name: string;
  readonly id: string;
  readonly isNew: boolean;
  readonly turn?: TurnResult;
  readonly error?: { readonly code: string };
}

/** A trusted project with loops that wait for the signal `paid`. */
export function projectWithWaits(): Project {
  const project = new Project({});
  project.write('loops/order.mjs', LOOPS);
  project.trusted = true;
  return project;
}
