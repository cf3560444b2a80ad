// A process is killed at each step of an approved call and resumed: the call never runs twice or without approval.

import { expect, sleep } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

/** Delays between the start of a process and its kill, from before its first read to after its end. */
const KILL_DELAYS_MS = [60, 150, 220, 260, 300, 340, 380, 420, 480, 560, 700];

/** Defines a tool that requires approval. @param {AuthorityFixture} fixture @param {string} safety */
function definePayTool(fixture, safety) {
  fixture.write('loops/tool.sh', fixture.shell('A'), 0o755);
  fixture.define('pay', { tool: { implementation: 'exec:./tool.sh', safety }, policy: { approval: 'ask' } });
}

/** Resumes all turns until none continues. Effects in doubt are not repeated. @param {AuthorityFixture} fixture */
async function resumeAll(fixture) {
  for (let n = 0; n < 3; n++) await fixture.rondo(['resume', '--all'], { trust: true });
}

/** @returns {import('../runner.mjs').Case[]} */
function runCases() {
  return KILL_DELAYS_MS.map((ms) => ({
    id: `approvals.kill.run.${ms}`,
    run: async (fixture) => {
      definePayTool(fixture, 'once');
      const running = fixture.start(['run', 'pay', '--session', 's', '--input', '{}'], { trust: true });
      await sleep(ms);
      running.kill();
      await running.ended;
      await resumeAll(fixture);
      fixture.assertNothingExecuted('nothing to run without an answer');
    },
  }));
}

/** @returns {import('../runner.mjs').Case[]} */
function approveCases() {
  return KILL_DELAYS_MS.flatMap((ms) =>
    ['once', 'keyed'].map((safety) => ({
      id: `approvals.kill.approve.${safety}.${ms}`,
      run: async (/** @type {AuthorityFixture} */ fixture) => {
        definePayTool(fixture, safety);
        const { id } = await fixture.requestApproval('pay', { args: ['--session', 's'] });
        const approving = fixture.start(['approve', id, '--as', 'bob'], { trust: true });
        await sleep(ms);
        approving.kill();
        await approving.ended;
        await resumeAll(fixture);
        const { approvals: pending } = await fixture.json(['approvals']);
        const runs = fixture.count('A');
        // A `keyed` call may be repeated with its key; a `once` call must not be repeated.
        expect(runs <= (safety === 'once' ? 1 : 2), 'the tool not to run twice', runs);
        if (pending.length === 1) expect(runs === 0, 'nothing to run while the approval is pending', runs);
        else if (safety === 'keyed') expect(runs >= 1, 'the tool to run after an accepted answer', runs);
      },
    })),
  );
}

/** @returns {import('../runner.mjs').Case[]} */
function denyCases() {
  return KILL_DELAYS_MS.filter((_, n) => n % 2 === 0).map((ms) => ({
    id: `approvals.kill.deny.${ms}`,
    run: async (fixture) => {
      definePayTool(fixture, 'keyed');
      const { id } = await fixture.requestApproval('pay', { args: ['--session', 's'] });
      const denying = fixture.start(['deny', id, '--reason', 'no'], { trust: true });
      await sleep(ms);
      denying.kill();
      await denying.ended;
      await resumeAll(fixture);
      fixture.assertNothingExecuted('nothing to run without an approval');
    },
  }));
}

/**
 * A process is killed while its program runs: the effect in doubt is not repeated.
 * @returns {import('../runner.mjs').Case[]}
 */
function inDoubtCases() {
  return ['resume', 'resume-all', 'approve-again', 'replay', 'two-resumes'].map((how) => ({
    id: `approvals.kill.in-doubt.${how}`,
    run: async (fixture) => {
      fixture.write('loops/tool.sh', `#!/bin/sh\necho A >> '${fixture.executionLog}'\nsleep 5\necho '{}'\n`, 0o755);
      fixture.define('pay', { tool: { implementation: 'exec:./tool.sh' }, policy: { approval: 'ask' } });
      const { id, turnId } = await fixture.requestApproval('pay');
      const approving = fixture.start(['approve', id], { trust: true });
      while (fixture.count('A') === 0) await sleep(20);
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
      await Promise.all((verbs ?? []).map((args) => fixture.rondo(args, { trust: true })));
      expect(fixture.count('A') === 1, 'the effect in doubt not to be repeated', fixture.executed());
    },
  }));
}

export const cases = () => [...runCases(), ...approveCases(), ...denyCases(), ...inDoubtCases()];
