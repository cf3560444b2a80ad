// Answers to approvals: by the wrong people, to the wrong ids, twice, at once, too late, and in copies of a journal.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, handOf, hostOf, outcome, toolsLibrary } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

const DAY = 86_400_000;

/** An agent whose call waits, in this process. @param {object} [request] @param {string} [id] */
async function waiting(request = {}, id = 'boss') {
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
  const { host, clock } = await hostOf();
  const loop = await handOf(pay, { id });
  const turn = await host.run({ loop, input: { amount: 5 }, sessionId: 's', ...request });
  const [approval] = await host.archive.approvals('s');
  return { host, clock, ran, turn, approval };
}

/** Gives a bad answer, then goes on: nothing may run, and the good answer must still be possible. @param {any} staged @param {object} bad @param {string} good */
async function refused({ host, ran, turn, approval }, bad, good) {
  const given = await outcome(host.answer({ id: approval.id, approved: true, ...bad }));
  await host.resume(turn.turnId);
  expect(given.code === 'ANSWER_REFUSED' || given.code === 'TypeError', 'the answer to be refused', given);
  expect(ran.length === 0, 'nothing to run', ran);
  await host.answer({ id: approval.id, approved: true, by: good });
  await host.resume(turn.turnId);
  expect(ran.length === 1, 'the good answer to be taken afterwards', ran);
}

/** Names under which the agent itself must not answer: as it reads, it is the agent. */
const AGENTS = {
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
  'the-tool': 'pay',
  'the-tool-case': 'PAY',
  'agent-prefix': 'agent:mallory',
  'agent-prefix-case': 'Agent:boss',
  'agent-prefix-full-width': 'ａｇｅｎｔ：boss',
  'agent-prefix-hidden': 'agent\u200b:boss',
  'agent-prefix-grapheme-joiner': 'agent\u034f:boss',
  'agent-prefix-selector': 'agent\ufe0f:boss',
};

/** Names that are not the approver `josé`. */
const STRANGERS = {
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

/** @returns {import('../authority.mjs').Case[]} */
function people() {
  const agents = Object.entries(AGENTS).map(([name, by]) => ({
    id: `approvals.by-agent.${name}`,
    run: async () => refused(await waiting(), { by }, 'ada'),
  }));
  const strangers = Object.entries(STRANGERS).map(([name, by]) => ({
    id: `approvals.by-stranger.${name}`,
    run: async () => refused(await waiting({ approvers: ['josé'], principal: 'ada' }), { by }, 'josé'),
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
  ].map(([name, bad]) => ({
    id: `approvals.answer.${name}`,
    run: async () =>
      refused(await waiting({ approvers: ['josé'], principal: 'ada' }), /** @type {any} */ (bad), 'josé'),
  }));
  return [...agents, ...strangers, ...others];
}

/** @param {World} world */
function stage(world) {
  world.write('loops/tool.sh', world.shell('A'), 0o755);
  world.define('pay', { tool: { implementation: 'exec:./tool.sh' }, policy: { approval: 'ask' } });
}

/** Ids that are not the one, made of the one. @type {Record<string, (id: string) => string>} */
const FORGED = {
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

/** @returns {import('../authority.mjs').Case[]} */
function ids() {
  const forged = Object.entries(FORGED).map(([name, forge]) => ({
    id: `approvals.id.${name}`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      const { id } = await world.ask('pay', { args: ['--session', 's'] });
      const { code, stderr } = await world.rondo(['approve', forge(id), '--as', 'bob'], { trust: true });
      expect(code !== 0, 'the id to be refused', stderr);
      world.expectNothing('nothing to run');
    },
  }));
  return [...forged, ...meant()];
}

/** Ids that could mean several approvals, or another one. @returns {import('../authority.mjs').Case[]} */
function meant() {
  return [
    {
      id: 'approvals.id.ambiguous-session',
      run: async (world) => {
        stage(world);
        for (const given of [1, 2]) await world.ask('pay', { args: ['--session', 'same'], given: { given } });
        const { code, stderr } = await world.rondo(['approve', 'same'], { trust: true });
        expect(code === 64 && world.executed().length === 0, 'an ambiguous name to be refused', stderr);
      },
    },
    {
      id: 'approvals.id.session-named-like-a-digest',
      run: async (world) => {
        stage(world);
        const { id } = await world.ask('pay', { args: ['--session', 'honest'] });
        const typed = id.slice(id.lastIndexOf(':') + 1).slice(0, 6);
        await world.ask('pay', { args: ['--session', `${typed}x`], given: { evil: 1 } });
        const { code } = await world.rondo(['approve', typed], { trust: true });
        expect(code === 64 && world.executed().length === 0, 'an ambiguous name to be refused', {
          code,
          ran: world.executed(),
        });
      },
    },
    {
      id: 'approvals.id.of-another-session',
      run: async (world) => {
        stage(world);
        const one = await world.ask('pay', { args: ['--session', 'one'] });
        const two = await world.ask('pay', { args: ['--session', 'two'] });
        await world.rondo(['approve', one.id], { trust: true });
        await world.rondo(['resume', two.turnId], { trust: true });
        expect(world.count('A') === 1, 'one approval to let one call pass', world.executed());
        const left = await world.json(['approvals']);
        expect(left.length === 1 && left[0].id === two.id, 'the other call to wait', left);
      },
    },
    {
      id: 'approvals.id.of-the-same-call-later',
      run: async (world) => {
        stage(world);
        const one = await world.ask('pay', { args: ['--session', 'one'] });
        await world.rondo(['approve', one.id], { trust: true });
        const two = await world.ask('pay', { args: ['--session', 'one'] });
        const { code } = await world.rondo(['approve', one.id], { trust: true });
        expect(code === 1 && two.id !== one.id, 'an id to be good once', code);
        expect(world.count('A') === 1, 'the same call to be asked about again', world.executed());
      },
    },
  ];
}

/** Answers one after another: what the first one says is what counts. */
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

/** Several processes at the same moment. */
const CROWDS = {
  'six-approve': ['approve', 'approve', 'approve', 'approve', 'approve', 'approve'],
  'approve-and-deny': ['approve', 'deny', 'approve', 'deny'],
  'approve-and-resume': ['approve', 'resume', 'resume', 'approve'],
  'approve-and-cancel': ['approve', 'cancel', 'approve', 'cancel'],
  'deny-and-resume': ['deny', 'resume', 'resume', 'resume'],
};

/** @returns {import('../authority.mjs').Case[]} */
function times() {
  const named = (/** @type {string} */ verb, /** @type {any} */ asked) => [
    verb,
    /approve|deny/.test(verb) ? asked.id : asked.turnId,
  ];
  const sequences = Object.entries(SEQUENCES).map(([name, [verbs, runs]]) => ({
    id: `approvals.sequence.${name}`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      const asked = await world.ask('pay');
      for (const verb of /** @type {string[]} */ (verbs)) await world.rondo(named(verb, asked), { trust: true });
      expect(world.count('A') === runs, `it to run ${runs} times`, world.executed());
    },
  }));
  const crowds = Object.entries(CROWDS).map(([name, verbs]) => ({
    id: `approvals.at-once.${name}`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      const asked = await world.ask('pay');
      // Each by another person: the same answer of the same person, repeated because its acknowledgement was lost, is one answer.
      const by = (/** @type {string} */ verb, /** @type {number} */ n) =>
        /approve|deny/.test(verb) ? ['--as', `person ${n}`] : [];
      const ends = await Promise.all(
        verbs.map((verb, n) => world.rondo([...named(verb, asked), ...by(verb, n)], { trust: true })),
      );
      const taken = verbs.filter((verb, n) => /approve|deny/.test(verb) && ends[n]?.code === 0);
      const runs = world.count('A');
      expect(taken.length <= 1, 'one answer at most to be taken', taken);
      expect(runs <= (taken[0] === 'approve' ? 1 : 0), 'it to run once at most, and only if approved', { taken, runs });
    },
  }));
  return [...sequences, ...crowds, ...expiries()];
}

/** @returns {import('../authority.mjs').Case[]} */
function expiries() {
  const at = (/** @type {number} */ ms) => ({ RONDO_NOW: String(Date.now() + ms) });
  const late = [31, 365, 36_500].map((days) => ({
    id: `approvals.expiry.approved-after-${days}-days`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      const { id, turnId } = await world.ask('pay');
      const { code } = await world.rondo(['approve', id], { trust: true, env: at(days * DAY) });
      await world.rondo(['resume', turnId], { trust: true });
      expect(code === 1 && world.count('A') === 0, 'a late answer to be refused', { code, ran: world.executed() });
    },
  }));
  return [
    ...late,
    {
      id: 'approvals.expiry.resumed-late-then-approved',
      run: async (world) => {
        stage(world);
        const { id, turnId } = await world.ask('pay');
        await world.rondo(['resume', turnId], { trust: true, env: at(31 * DAY) });
        const { code } = await world.rondo(['approve', id], { trust: true });
        expect(code === 1 && world.count('A') === 0, 'what has expired to stay expired', world.executed());
      },
    },
    {
      id: 'approvals.expiry.the-clock-goes-back',
      run: async (world) => {
        stage(world);
        const { id } = await world.ask('pay', { env: at(-400 * DAY) });
        const { code } = await world.rondo(['approve', id], { trust: true });
        expect(code === 1 && world.count('A') === 0, 'an approval of last year to have expired', world.executed());
      },
    },
  ];
}

/** A journal that was copied, with what lies beside it. @returns {import('../authority.mjs').Case[]} */
function copies() {
  const copied = (/** @type {World} */ world) => {
    const copy = join(world.base, 'work', 'copy');
    execFileSync('cp', ['-a', world.project, copy]);
    writeFileSync(join(copy, 'loops/tool.sh'), world.shell('B'));
    return copy;
  };
  return ['copy', 'both', 'original'].flatMap((trusted) =>
    ['approve', 'resume'].map((verb) => ({
      id: `approvals.copied-journal.${verb}.trusts-${trusted}`,
      run: async (/** @type {World} */ world) => {
        stage(world);
        const { id, turnId } = await world.ask('pay');
        if (verb === 'resume') await world.rondo(['approve', id]);
        const copy = copied(world);
        const trust = { copy, both: `${copy}:${world.project}`, original: world.project }[trusted];
        await world.rondo(verb === 'approve' ? ['approve', id] : ['resume', turnId], { trust, cwd: copy });
        const left = world.executed();
        expect(world.count('B') === 0, 'the program of the copy not to run', left);
        if (trusted !== 'both') expect(left.length === 0, 'nothing to run', left);
      },
    })),
  );
}

export const cases = () => [...people(), ...ids(), ...times(), ...copies()];
