// A process that is killed at each step of an approved call, and resumed: never twice, never without approval.

import { expect, sleep } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

/** How long after its start a process is killed, in milliseconds: from before it has read anything to after its end. */
const MOMENTS = [60, 150, 220, 260, 300, 340, 380, 420, 480, 560, 700];

/** @param {World} world @param {string} safety */
function stage(world, safety) {
  world.write('loops/tool.sh', world.shell('A'), 0o755);
  world.define('pay', { tool: { implementation: 'exec:./tool.sh', safety }, policy: { approval: 'ask' } });
}

/** Goes on until nothing is left to do; what is in doubt is not repeated. @param {World} world */
async function settled(world) {
  for (let n = 0; n < 3; n++) await world.rondo(['resume', '--all'], { trust: true });
}

/** @returns {import('../authority.mjs').Case[]} */
function ofRun() {
  return MOMENTS.map((ms) => ({
    id: `approvals.kill.run.${ms}`,
    run: async (world) => {
      stage(world, 'once');
      const running = world.start(['run', 'pay', '--session', 's', '--input', '{}'], { trust: true });
      await sleep(ms);
      running.kill();
      await running.ended;
      await settled(world);
      world.expectNothing('nothing to run without an answer');
    },
  }));
}

/** @returns {import('../authority.mjs').Case[]} */
function ofApprove() {
  return MOMENTS.flatMap((ms) =>
    ['once', 'keyed'].map((safety) => ({
      id: `approvals.kill.approve.${safety}.${ms}`,
      run: async (/** @type {World} */ world) => {
        stage(world, safety);
        const { id } = await world.ask('pay', { args: ['--session', 's'] });
        const approving = world.start(['approve', id, '--as', 'bob'], { trust: true });
        await sleep(ms);
        approving.kill();
        await approving.ended;
        await settled(world);
        const waiting = await world.json(['approvals']);
        const runs = world.count('A');
        // A call that is keyed may be repeated with its key; what is once must not be.
        expect(runs <= (safety === 'once' ? 1 : 2), 'it not to run twice', runs);
        if (waiting.length === 1) expect(runs === 0, 'nothing to run while it waits', runs);
        else if (safety === 'keyed') expect(runs >= 1, 'an answer that was taken to let it run', runs);
      },
    })),
  );
}

/** @returns {import('../authority.mjs').Case[]} */
function ofDeny() {
  return MOMENTS.filter((_, n) => n % 2 === 0).map((ms) => ({
    id: `approvals.kill.deny.${ms}`,
    run: async (world) => {
      stage(world, 'keyed');
      const { id } = await world.ask('pay', { args: ['--session', 's'] });
      const denying = world.start(['deny', id, '--reason', 'no'], { trust: true });
      await sleep(ms);
      denying.kill();
      await denying.ended;
      await settled(world);
      world.expectNothing('nothing to run that nobody approved');
    },
  }));
}

/** Killed while its program runs, and what becomes of the doubt. @returns {import('../authority.mjs').Case[]} */
function inDoubt() {
  return ['resume', 'resume-all', 'approve-again', 'replay', 'two-resumes'].map((how) => ({
    id: `approvals.kill.in-doubt.${how}`,
    run: async (world) => {
      world.write('loops/tool.sh', `#!/bin/sh\necho A >> '${world.mark}'\nsleep 5\necho '{}'\n`, 0o755);
      world.define('pay', { tool: { implementation: 'exec:./tool.sh' }, policy: { approval: 'ask' } });
      const { id, turnId } = await world.ask('pay');
      const approving = world.start(['approve', id], { trust: true });
      while (world.count('A') === 0) await sleep(20);
      approving.child.kill('SIGKILL');
      await approving.ended;
      const verbs = {
        resume: [['resume', turnId]],
        'resume-all': [['resume', '--all']],
        'approve-again': [['approve', id]],
        replay: [['replay', turnId]],
        'two-resumes': [
          ['resume', turnId],
          ['resume', turnId],
        ],
      }[how];
      await Promise.all((verbs ?? []).map((args) => world.rondo(args, { trust: true })));
      expect(world.count('A') === 1, 'what may have happened not to happen again', world.executed());
    },
  }));
}

export const cases = () => [...ofRun(), ...ofApprove(), ...ofDeny(), ...inDoubt()];
