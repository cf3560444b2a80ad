// Answers to approvals: by unauthorized names, to wrong ids, repeated, concurrent, late, and in copies of a journal.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createHost, expect, outcome, singleToolAgent, toolsLibrary } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

const DAY = 86_400_000;

/** Runs an agent in this process until its call waits for approval. @param {object} [request] @param {string} [id] */
async function runUntilApproval(request = {}, id = 'boss') {
  const { loopsTool } = await toolsLibrary();
  const ran = [];
  const schema = {
    '~standard': {
      version: 1,
      vendor: 'x',
      validate: (value) => ({ value }),
      jsonSchema: { input: () => ({ type: 'object' }), output: () => ({}) },
    },
  };
  const pay = loopsTool({ name: 'pay', inputSchema: schema, execute: (input) => ran.push(input) }).withApproval('ask');
  const { host, clock } = await createHost();
  const loop = await singleToolAgent(pay, { id });
  const turn = await host.run({ loop, input: { amount: 5 }, sessionId: 's', ...request });
  const [approval] = await host.archive.approvals('s');
  return { host, clock, ran, turn, approval };
}

/**
 * An invalid answer is refused, and a valid answer is accepted afterwards.
 * @param {any} pendingCall
 * @param {object} invalidAnswer
 * @param {string} validName
 */
async function assertAnswerRefused({ host, ran, turn, approval }, invalidAnswer, validName) {
  const result = await outcome(host.answer({ id: approval.id, approved: true, ...invalidAnswer }));
  await host.resume(turn.turnId);
  expect(result.code === 'ANSWER_REFUSED' || result.code === 'TypeError', 'the answer to be refused', result);
  expect(ran.length === 0, 'nothing to run', ran);
  await host.answer({ id: approval.id, approved: true, by: validName });
  await host.resume(turn.turnId);
  expect(ran.length === 1, 'the valid answer to be accepted afterwards', ran);
}

/** Names that look like the agent or the tool, under which no one may answer. */
const AGENT_NAMES = {
  exact: 'boss',
  case: 'BosS',
  blanks: '  boss\t',
  'full-width': 'ｂｏｓｓ',
  bold: '𝐛𝐨𝐬𝐬',
  circled: 'ⓑⓞⓢⓢ',
  'zero-width': 'bo\u200bss',
  joiner: 'bo\u200dss',
  'soft-hyphen': 'bo\u00adss',
  'byte-order-mark': '\ufeffboss',
  'right-to-left': '\u202eboss',
  isolate: '\u2066boss\u2069',
  'no-break-space': 'boss\u00a0',
  'ideographic-space': '\u3000boss',
  'grapheme-joiner': 'bo\u034fss',
  'variation-selector': 'boss\ufe0f',
  'variation-selector-1': 'b\ufe00oss',
  'variation-supplement': 'boss\u{e0100}',
  'hangul-filler': 'boss\u3164',
  'hangul-choseong': 'boss\u115f',
  'half-width-filler': 'boss\uffa0',
  'khmer-vowel': 'boss\u17b4',
  'mongolian-selector': 'boss\u180b',
  'mongolian-separator': 'bo\u180ess',
  'tag-character': 'boss\u{e0062}',
  'the-tool': 'boss.pay',
  'the-tool-case': 'Boss.PAY',
  'agent-prefix': 'agent:mallory',
  'agent-prefix-case': 'Agent:boss',
  'agent-prefix-full-width': 'ａｇｅｎｔ：boss',
  'agent-prefix-hidden': 'agent\u200b:boss',
  'agent-prefix-grapheme-joiner': 'agent\u034f:boss',
  'agent-prefix-selector': 'agent\ufe0f:boss',
};

/** Names that differ from the approver `josé`. */
const OTHER_NAMES = {
  case: 'José',
  blank: 'josé ',
  decomposed: 'jose\u0301',
  'without-accent': 'jose',
  cyrillic: 'j\u043esé',
  'zero-width': 'jos\u200bé',
  list: 'josé,bob',
  star: '*',
  prototype: 'constructor',
  nul: 'josé\u0000',
  nobody: 'mallory',
  'the-runtime': 'rondo',
};

/** @returns {import('../runner.mjs').Case[]} */
function answererCases() {
  const agents = Object.entries(AGENT_NAMES).map(([name, by]) => ({
    id: `approvals.by-agent.${name}`,
    run: async () => assertAnswerRefused(await runUntilApproval(), { by }, 'ada'),
  }));
  const otherNames = Object.entries(OTHER_NAMES).map(([name, by]) => ({
    id: `approvals.by-stranger.${name}`,
    run: async () =>
      assertAnswerRefused(await runUntilApproval({ approvers: ['josé'], principal: 'ada' }), { by }, 'josé'),
  }));
  const others = [
    ['the-principal', { by: 'ada' }],
    ['wrong-session', { by: 'josé', sessionId: 't' }],
    ['wrong-call', { by: 'josé', callId: 's.1' }],
    ['wrong-tool', { by: 'josé', tool: 'wrap' }],
    ['wrong-digest', { by: 'josé', argumentsDigest: 'x' }],
    ['extra-member', { by: 'josé', arguments: { amount: 1 } }],
    ['truthy', { by: 'josé', approved: 'true' }],
    ['nobody', { by: ' ' }],
    ['by-a-list', { by: ['josé'] }],
    ['by-an-object', { by: { toString: () => 'josé' } }],
  ].map(([name, invalidAnswer]) => ({
    id: `approvals.answer.${name}`,
    run: async () =>
      assertAnswerRefused(
        await runUntilApproval({ approvers: ['josé'], principal: 'ada' }),
        /** @type {any} */ (invalidAnswer),
        'josé',
      ),
  }));
  return [...agents, ...otherNames, ...others];
}

/** Defines a tool that requires approval. @param {AuthorityFixture} fixture */
function definePayTool(fixture) {
  fixture.write('loops/tool.sh', fixture.shell('A'), 0o755);
  fixture.define('pay', { tool: { implementation: 'exec:./tool.sh' }, policy: { approval: 'ask' } });
}

/** Forged ids, derived from the valid one. @type {Record<string, (id: string) => string>} */
const FORGED_IDS = {
  'three-characters': (id) => id.slice(0, 3),
  upper: (id) => id.toUpperCase(),
  longer: (id) => `${id}0`,
  blank: (id) => ` ${id}`,
  'other-turn': (id) => id.replace(/\.[^:]+:/, '.0000000000000000:'),
  'other-session': (id) => `t${id}`,
  'zero-width': (id) => `${id}\u200b`,
  path: (id) => `../${id}`,
  colon: () => ':::::',
  empty: () => '',
  regex: () => '....',
  star: () => '****',
};

/** @returns {import('../runner.mjs').Case[]} */
function idCases() {
  const forged = Object.entries(FORGED_IDS).map(([name, forge]) => ({
    id: `approvals.id.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayTool(fixture);
      const { id } = await fixture.requestApproval('pay', { args: ['--session', 's'] });
      const { code, stderr } = await fixture.rondo(['approve', forge(id), '--as', 'bob'], { trust: true });
      expect(code !== 0, 'the id to be refused', stderr);
      fixture.assertNothingExecuted('nothing to run');
    },
  }));
  return [...forged, ...ambiguousIdCases()];
}

/** Ids that match several approvals, or another approval. @returns {import('../runner.mjs').Case[]} */
function ambiguousIdCases() {
  return [
    {
      id: 'approvals.id.ambiguous-session',
      run: async (fixture) => {
        definePayTool(fixture);
        for (const n of [1, 2])
          await fixture.requestApproval('pay', { args: ['--session', 'same'], loopInput: { given: n } });
        const { code, stderr } = await fixture.rondo(['approve', 'same'], { trust: true });
        expect(code === 64 && fixture.executed().length === 0, 'an ambiguous name to be refused', stderr);
      },
    },
    {
      id: 'approvals.id.session-named-like-a-digest',
      run: async (fixture) => {
        definePayTool(fixture);
        const { id } = await fixture.requestApproval('pay', { args: ['--session', 'honest'] });
        const prefix = id.slice(id.lastIndexOf(':') + 1).slice(0, 6);
        await fixture.requestApproval('pay', { args: ['--session', `${prefix}x`], loopInput: { evil: 1 } });
        const { code } = await fixture.rondo(['approve', prefix], { trust: true });
        expect(code === 64 && fixture.executed().length === 0, 'an ambiguous name to be refused', {
          code,
          ran: fixture.executed(),
        });
      },
    },
    {
      id: 'approvals.id.of-another-session',
      run: async (fixture) => {
        definePayTool(fixture);
        const one = await fixture.requestApproval('pay', { args: ['--session', 'one'] });
        const two = await fixture.requestApproval('pay', { args: ['--session', 'two'] });
        await fixture.rondo(['approve', one.id], { trust: true });
        await fixture.rondo(['resume', two.turnId], { trust: true });
        expect(fixture.count('A') === 1, 'one approval to authorize one call only', fixture.executed());
        const { approvals: pending } = await fixture.json(['approvals']);
        expect(pending.length === 1 && pending[0].id === two.id, 'the other call to stay pending', pending);
      },
    },
    {
      id: 'approvals.id.of-the-same-call-later',
      run: async (fixture) => {
        definePayTool(fixture);
        const one = await fixture.requestApproval('pay', { args: ['--session', 'one'] });
        await fixture.rondo(['approve', one.id], { trust: true });
        const two = await fixture.requestApproval('pay', { args: ['--session', 'one'] });
        const { code } = await fixture.rondo(['approve', one.id], { trust: true });
        expect(code === 1 && two.id !== one.id, 'an id to be valid for one answer', code);
        expect(fixture.count('A') === 1, 'the repeated call to require another approval', fixture.executed());
      },
    },
  ];
}

/** Verbs in sequence, and the number of runs: the first answer counts. */
const SEQUENCES = {
  'approve-approve': [['approve', 'approve'], 1],
  'approve-deny': [['approve', 'deny'], 1],
  'deny-approve': [['deny', 'approve'], 0],
  'deny-deny': [['deny', 'deny'], 0],
  'cancel-approve': [['cancel', 'approve'], 0],
  'approve-resume': [['approve', 'resume'], 1],
  'deny-resume': [['deny', 'resume'], 0],
  'resume-resume': [['resume', 'resume'], 0],
  'approve-replay': [['approve', 'replay'], 1],
  'replay-before': [['replay', 'replay'], 0],
};

/** Verbs of several processes at the same time. */
const CONCURRENT = {
  'six-approve': ['approve', 'approve', 'approve', 'approve', 'approve', 'approve'],
  'approve-and-deny': ['approve', 'deny', 'approve', 'deny'],
  'approve-and-resume': ['approve', 'resume', 'resume', 'approve'],
  'approve-and-cancel': ['approve', 'cancel', 'approve', 'cancel'],
  'deny-and-resume': ['deny', 'resume', 'resume', 'resume'],
};

/** @returns {import('../runner.mjs').Case[]} */
function orderCases() {
  const argsOf = (/** @type {string} */ verb, /** @type {any} */ pending) => [
    verb,
    /approve|deny/.test(verb) ? pending.id : pending.turnId,
  ];
  const sequences = Object.entries(SEQUENCES).map(([name, [verbs, runs]]) => ({
    id: `approvals.sequence.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayTool(fixture);
      const pending = await fixture.requestApproval('pay');
      for (const verb of /** @type {string[]} */ (verbs)) await fixture.rondo(argsOf(verb, pending), { trust: true });
      expect(fixture.count('A') === runs, `the tool to run ${runs} times`, fixture.executed());
    },
  }));
  const concurrent = Object.entries(CONCURRENT).map(([name, verbs]) => ({
    id: `approvals.at-once.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayTool(fixture);
      const pending = await fixture.requestApproval('pay');
      // Each answer has another author: an answer that the same author repeats counts as one answer.
      const authorArgs = (/** @type {string} */ verb, /** @type {number} */ n) =>
        /approve|deny/.test(verb) ? ['--as', `person ${n}`] : [];
      const results = await Promise.all(
        verbs.map((verb, n) => fixture.rondo([...argsOf(verb, pending), ...authorArgs(verb, n)], { trust: true })),
      );
      const accepted = verbs.filter((verb, n) => /approve|deny/.test(verb) && results[n]?.code === 0);
      const runs = fixture.count('A');
      expect(accepted.length <= 1, 'one answer at most to be accepted', accepted);
      expect(runs <= (accepted[0] === 'approve' ? 1 : 0), 'the tool to run at most once, and only if approved', {
        accepted,
        runs,
      });
    },
  }));
  return [...sequences, ...concurrent, ...expiries()];
}

/** @returns {import('../runner.mjs').Case[]} */
function expiries() {
  const at = (/** @type {number} */ ms) => ({ RONDO_NOW: String(Date.now() + ms) });
  const late = [31, 365, 36_500].map((days) => ({
    id: `approvals.expiry.approved-after-${days}-days`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayTool(fixture);
      const { id, turnId } = await fixture.requestApproval('pay');
      const { code } = await fixture.rondo(['approve', id], { trust: true, env: at(days * DAY) });
      await fixture.rondo(['resume', turnId], { trust: true });
      expect(code === 1 && fixture.count('A') === 0, 'a late answer to be refused', { code, ran: fixture.executed() });
    },
  }));
  return [
    ...late,
    {
      id: 'approvals.expiry.resumed-late-then-approved',
      run: async (fixture) => {
        definePayTool(fixture);
        const { id, turnId } = await fixture.requestApproval('pay');
        await fixture.rondo(['resume', turnId], { trust: true, env: at(31 * DAY) });
        const { code } = await fixture.rondo(['approve', id], { trust: true });
        expect(code === 1 && fixture.count('A') === 0, 'an expired approval to stay expired', fixture.executed());
      },
    },
    {
      id: 'approvals.expiry.the-clock-goes-back',
      run: async (fixture) => {
        definePayTool(fixture);
        const { id } = await fixture.requestApproval('pay', { env: at(-400 * DAY) });
        const { code } = await fixture.rondo(['approve', id], { trust: true });
        expect(code === 1 && fixture.count('A') === 0, 'an approval of last year to have expired', fixture.executed());
      },
    },
  ];
}

/** Copies of a whole project with its journal. @returns {import('../runner.mjs').Case[]} */
function copyCases() {
  const copyProject = (/** @type {AuthorityFixture} */ fixture) => {
    const copy = join(fixture.base, 'work', 'copy');
    execFileSync('cp', ['-a', fixture.project, copy]);
    writeFileSync(join(copy, 'loops/tool.sh'), fixture.shell('B'));
    return copy;
  };
  return ['copy', 'both', 'original'].flatMap((trusted) =>
    ['approve', 'resume'].map((verb) => ({
      id: `approvals.copied-journal.${verb}.trusts-${trusted}`,
      run: async (/** @type {AuthorityFixture} */ fixture) => {
        definePayTool(fixture);
        const { id, turnId } = await fixture.requestApproval('pay');
        if (verb === 'resume') await fixture.rondo(['approve', id]);
        const copy = copyProject(fixture);
        const trust = { copy, both: `${copy}:${fixture.project}`, original: fixture.project }[trusted];
        await fixture.rondo(verb === 'approve' ? ['approve', id] : ['resume', turnId], { trust, cwd: copy });
        const executed = fixture.executed();
        expect(fixture.count('B') === 0, 'the program of the copy not to run', executed);
        if (trusted !== 'both') expect(executed.length === 0, 'nothing to run', executed);
      },
    })),
  );
}

export const cases = () => [...answererCases(), ...idCases(), ...orderCases(), ...copyCases()];
