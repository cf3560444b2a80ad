// Arguments that are shown and arguments that arrive: they must be the same, call by call, however odd they are.

import { readFileSync } from 'node:fs';
import { expect } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

/** Input as it is written on the command line. */
const INPUTS = {
  'proto-member': '{"__proto__":{"command":"evil"},"a":1}',
  'constructor-member': '{"constructor":{"prototype":{"x":1}},"a":1}',
  'same-member-twice': '{"a":"shown","a":"run"}',
  'escaped-member-twice': '{"a":"shown","\\u0061":"run"}',
  'large-integer': '{"a":9007199254740993}',
  'larger-than-numbers': '{"a":1e400}',
  'negative-zero': '{"a":-0}',
  'long-decimal': '{"a":0.1000000000000000055511151231257827}',
  'lone-surrogate': '{"a":"\\ud800"}',
  nul: '{"a":"x\\u0000y"}',
  'not-normalised': '{"a":"e\\u0301","é":"é"}',
  'index-members': '{"2":"b","1":"a","01":"c"}',
  'empty-member': '{"":{"":[]}}',
  'to-json': '{"toJSON":"x","then":"y","a":1}',
  'deep-list': `{"a":${'['.repeat(200)}${']'.repeat(200)}}`,
};

/** @param {World} world */
function stage(world) {
  const got = `${world.mark}.stdin`;
  world.write('loops/tool.sh', `#!/bin/sh\necho A >> '${world.mark}'\ncat >> '${got}'\necho '{}'\n`, 0o755);
  world.define('pay', { tool: { implementation: 'exec:./tool.sh' }, policy: { approval: 'ask' } });
  return got;
}

/** @returns {import('../authority.mjs').Case[]} */
function shownAndRun() {
  return Object.entries(INPUTS).map(([name, input]) => ({
    id: `approvals.arguments.${name}`,
    run: async (/** @type {World} */ world) => {
      const got = stage(world);
      const { code, stdout } = await world.rondo(['run', 'pay', '--input', input, '--json'], { trust: true });
      world.expectNothing('nothing to run before it is approved');
      // What cannot be kept exactly may be refused instead.
      if (code !== 2) return expect(code === 64 || code === 1, 'a refusal', stdout);
      const listed = (await world.rondo(['approvals', '--json'])).stdout;
      const [{ id }] = JSON.parse(listed);
      await world.rondo(['approve', id], { trust: true });
      const arrived = readFileSync(got, 'utf8').trim();
      const same = listed.includes(`"arguments":${arrived},`);
      expect(same && world.count('A') === 1, 'what was shown to arrive', { arrived, listed: listed.slice(0, 600) });
    },
  }));
}

/** Several calls of one reply that look the same. @type {Record<string, object[]>} */
const TWINS = {
  'same-arguments': [
    { name: 'pay', args: { n: 1 } },
    { name: 'pay', args: { n: 1 } },
  ],
  'same-call-ids': [
    { name: 'pay', args: { n: 1 }, id: 'c' },
    { name: 'pay', args: { n: 2 }, id: 'c' },
  ],
  'same-everything': [
    { name: 'pay', args: { n: 1 }, id: 'c' },
    { name: 'pay', args: { n: 1 }, id: 'c' },
    { name: 'pay', args: { n: 1 }, id: 'c' },
  ],
};

/** @returns {import('../authority.mjs').Case[]} */
function twins() {
  return Object.entries(TWINS).map(([name, toolCalls]) => ({
    id: `approvals.twins.${name}`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      world.agent('desk', { tools: ['pay'] }, [{ toolCalls }, { text: 'done' }]);
      const { ids } = await world.ask('desk', { given: { prompt: 'x' } });
      expect(new Set(ids).size === toolCalls.length, 'one approval for each call', ids);
      await world.rondo(['approve', ids[0]], { trust: true });
      await world.rondo(['resume', '--all'], { trust: true });
      expect(world.count('A') === 1, 'one approval to let one call pass', world.executed());
      for (const id of ids.slice(1)) await world.rondo(['deny', id], { trust: true });
      expect(world.count('A') === 1, 'what was denied not to run', world.executed());
    },
  }));
}

export const cases = () => [...shownAndRun(), ...twins()];
