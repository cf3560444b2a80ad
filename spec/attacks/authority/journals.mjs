// Journals in a clone: recorded definitions and answers that refer to a directory which the operator trusts.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, sleep } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

const ASK_POLICY = { policy: { approval: 'ask' } };

/**
 * Creates the directory that the operator trusts. On the attacker's machine it has other content.
 * @param {AuthorityFixture} fixture
 * @param {string} letter
 * @param {object} [more]
 */
function createTrustedDirectory(fixture, letter, more = {}) {
  const directory = join(fixture.base, 'tools');
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  fixture.write(join(directory, 'tool.sh'), fixture.shell(letter), 0o755);
  const definition = { id: 'pay', name: 'pay', version: '1.0.0', kind: 'tool', inputSchema: {}, outputSchema: true };
  fixture.write(join(directory, 'pay.json'), { ...definition, tool: { implementation: 'exec:./tool.sh' }, ...more });
  return directory;
}

/**
 * The journals of the attacker.
 * @type {Record<string, (fixture: AuthorityFixture, directory: string) => Promise<{ turnId: string, id?: string }>>}
 */
const RECORDED = {
  waits: async (fixture, directory) =>
    fixture.requestApproval('pay', { args: ['--session', 's', '--loops', directory], trust: directory }),
  answered: async (fixture, directory) => {
    const turn = await fixture.requestApproval('pay', {
      args: ['--session', 's', '--loops', directory],
      trust: directory,
    });
    await fixture.rondo(['approve', turn.id, '--loops', fixture.path('loops')], {});
    return turn;
  },
  interrupted: async (fixture, directory) => {
    fixture.write(
      join(directory, 'tool.sh'),
      `#!/bin/sh\necho started >> '${fixture.executionLog}'\nsleep 20\n`,
      0o755,
    );
    const running = fixture.start(['run', 'pay', '--session', 's', '--input', '{}', '--loops', directory], {
      trust: directory,
    });
    while (fixture.executed().length === 0) await sleep(20);
    running.kill();
    await running.ended;
    rmSync(fixture.executionLog);
    const { runs } = await fixture.json(['runs']);
    return { turnId: runs[0].turnId };
  },
};

/** Members in which the recorded definition differs from the operator's. @type {Record<string, object>} */
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

/**
 * The verbs of the operator in the clone.
 * @type {Record<string, (turn: { turnId: string, id?: string }) => string[]>}
 */
const VERBS = {
  'resume-all': () => ['resume', '--all'],
  resume: ({ turnId }) => ['resume', turnId],
  approve: ({ id, turnId }) => ['approve', id ?? turnId],
  'resolve-retry': ({ turnId }) => ['resolve', turnId, '--retry'],
  replay: ({ turnId }) => ['replay', turnId, '--now'],
};

/** @returns {import('../runner.mjs').Case[]} */
export const cases = () => {
  const claims = Object.entries(RECORDED).flatMap(([kind, record]) =>
    Object.entries(DEFINITIONS).flatMap(([name, more]) =>
      Object.entries(VERBS)
        .filter(([verb]) => kind === 'waits' || verb !== 'approve')
        .filter((_, n) => name === 'exec-args' || n < 2)
        .map(([verb, args]) => ({
          id: `trust.journal.${kind}.${name}.${verb}`,
          run: async (/** @type {AuthorityFixture} */ fixture) => {
            const definition = kind === 'interrupted' ? more : { ...more, ...ASK_POLICY };
            const directory = createTrustedDirectory(fixture, 'evil', definition);
            const loop = /** @type {any} */ (more).id ?? 'pay';
            if (loop !== 'pay')
              fixture.requestApproval = (
                (original) => (_, setting) =>
                  original.call(fixture, loop, setting)
              )(fixture.requestApproval);
            const turn = kind === 'interrupted' && loop !== 'pay' ? undefined : await record(fixture, directory);
            if (turn === undefined) return;
            expect(fixture.executed().length === 0, 'nothing to run on the attacker’s machine', fixture.executed());
            createTrustedDirectory(fixture, 'own');
            await fixture.rondo(args(turn), { trust: directory });
            expect(fixture.executed().length === 0, 'nothing recorded by another user to run', fixture.executed());
          },
        })),
    ),
  );
  return claims.filter(({ id }) => !id.includes('.interrupted.other-id'));
};
