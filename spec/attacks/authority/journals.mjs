// Journals that a clone brings along: recorded definitions and answers that claim a directory which the operator trusts.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, sleep } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

const ask = { policy: { approval: 'ask' } };

/** The directory that the operator trusts. At the attacker's it holds something else. @param {World} world @param {string} letter @param {object} [more] */
function trustedDirectory(world, letter, more = {}) {
  const place = join(world.base, 'tools');
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  world.write(join(place, 'tool.sh'), world.shell(letter), 0o755);
  const definition = { id: 'pay', name: 'pay', version: '1.0.0', kind: 'tool', inputSchema: {}, outputSchema: true };
  world.write(join(place, 'pay.json'), { ...definition, tool: { implementation: 'exec:./tool.sh' }, ...more });
  return place;
}

/** What the attacker has recorded. @type {Record<string, (world: World, place: string) => Promise<{ turnId: string, id?: string }>>} */
const RECORDED = {
  waits: async (world, place) => world.ask('pay', { args: ['--session', 's', '--loops', place], trust: place }),
  answered: async (world, place) => {
    const asked = await world.ask('pay', { args: ['--session', 's', '--loops', place], trust: place });
    await world.rondo(['approve', asked.id, '--loops', world.path('loops')], {});
    return asked;
  },
  interrupted: async (world, place) => {
    world.write(join(place, 'tool.sh'), `#!/bin/sh\necho started >> '${world.mark}'\nsleep 20\n`, 0o755);
    const running = world.start(['run', 'pay', '--session', 's', '--input', '{}', '--loops', place], { trust: place });
    while (world.executed().length === 0) await sleep(20);
    running.kill();
    await running.ended;
    rmSync(world.mark);
    const { runs } = await world.json(['runs']);
    return { turnId: runs[0].turnId };
  },
};

/** What the recorded definition says; the operator's says less. @type {Record<string, object>} */
const DEFINITIONS = {
  'exec-args': { tool: { implementation: 'exec:./tool.sh', config: { args: ['--evil'] }, safety: 'idempotent' } },
  'exec-env': {
    tool: {
      implementation: 'exec:./tool.sh',
      config: { env: ['MY_TOKEN', 'AWS_SECRET_ACCESS_KEY'] },
      safety: 'idempotent',
    },
  },
  'other-version': { version: '0.9.0', tool: { implementation: 'exec:./tool.sh', safety: 'idempotent' } },
  'other-id': { id: 'deploy', tool: { implementation: 'exec:./tool.sh', safety: 'idempotent' } },
};

/** What the operator does in the clone. @type {Record<string, (turn: { turnId: string, id?: string }) => string[]>} */
const VERBS = {
  'resume-all': () => ['resume', '--all'],
  resume: ({ turnId }) => ['resume', turnId],
  approve: ({ id, turnId }) => ['approve', id ?? turnId],
  'resolve-retry': ({ turnId }) => ['resolve', turnId, '--retry'],
  replay: ({ turnId }) => ['replay', turnId, '--now'],
};

/** @returns {import('../authority.mjs').Case[]} */
export const cases = () => {
  const claims = Object.entries(RECORDED).flatMap(([kind, record]) =>
    Object.entries(DEFINITIONS).flatMap(([name, more]) =>
      Object.entries(VERBS)
        .filter(([verb]) => kind === 'waits' || verb !== 'approve')
        .filter((_, n) => name === 'exec-args' || n < 2)
        .map(([verb, args]) => ({
          id: `trust.journal.${kind}.${name}.${verb}`,
          run: async (/** @type {World} */ world) => {
            const guarded = kind === 'interrupted' ? more : { ...more, ...ask };
            const place = trustedDirectory(world, 'evil', guarded);
            const loop = /** @type {any} */ (more).id ?? 'pay';
            if (loop !== 'pay')
              world.ask = (
                (ask) => (_, setting) =>
                  ask.call(world, loop, setting)
              )(world.ask);
            const turn = kind === 'interrupted' && loop !== 'pay' ? undefined : await record(world, place);
            if (turn === undefined) return;
            expect(world.executed().length === 0, 'nothing to run at the attacker’s', world.executed());
            trustedDirectory(world, 'own');
            await world.rondo(args(turn), { trust: place });
            expect(world.executed().length === 0, 'nothing recorded by another user to run', world.executed());
          },
        })),
    ),
  );
  return claims.filter(({ id }) => !id.includes('.interrupted.other-id'));
};
