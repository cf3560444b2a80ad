// The tool receives exactly the arguments that the approval displays, for each call and for any valid JSON.

import { readFileSync } from 'node:fs';
import { expect } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

/** The texts of the option --input. */
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

/** Defines a tool that records its stdin; returns the path of the record. @param {AuthorityFixture} fixture */
function defineRecordingTool(fixture) {
  const stdinFile = `${fixture.executionLog}.stdin`;
  fixture.write(
    'loops/tool.sh',
    `#!/bin/sh\necho A >> '${fixture.executionLog}'\ncat >> '${stdinFile}'\necho '{}'\n`,
    0o755,
  );
  fixture.define('pay', { tool: { implementation: 'exec:./tool.sh' }, policy: { approval: 'ask' } });
  return stdinFile;
}

/** @returns {import('../runner.mjs').Case[]} */
function inputCases() {
  return Object.entries(INPUTS).map(([name, input]) => ({
    id: `approvals.arguments.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      const stdinFile = defineRecordingTool(fixture);
      const { code, stdout } = await fixture.rondo(['run', 'pay', '--input', input, '--json'], { trust: true });
      fixture.assertNothingExecuted('nothing to run before the approval');
      // Input that cannot be represented exactly may be refused.
      if (code !== 2) return expect(code === 64 || code === 1, 'a refusal', stdout);
      const listed = (await fixture.rondo(['approvals', '--json'])).stdout;
      const [{ id }] = JSON.parse(listed).approvals;
      await fixture.rondo(['approve', id], { trust: true });
      const received = readFileSync(stdinFile, 'utf8').trim();
      const same = listed.includes(`"arguments":${received},`);
      expect(same && fixture.count('A') === 1, 'the tool to receive the displayed arguments', {
        received,
        listed: listed.slice(0, 600),
      });
    },
  }));
}

/** Several similar calls in one reply of the model. @type {Record<string, object[]>} */
const SIMILAR_CALLS = {
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

/** @returns {import('../runner.mjs').Case[]} */
function similarCallCases() {
  return Object.entries(SIMILAR_CALLS).map(([name, toolCalls]) => ({
    id: `approvals.twins.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      defineRecordingTool(fixture);
      fixture.agent('payer', { tools: ['pay'] }, [{ toolCalls }, { text: 'done' }]);
      const { ids } = await fixture.requestApproval('payer', { loopInput: { prompt: 'x' } });
      expect(new Set(ids).size === toolCalls.length, 'one approval for each call', ids);
      await fixture.rondo(['approve', ids[0]], { trust: true });
      await fixture.rondo(['resume', '--all'], { trust: true });
      expect(fixture.count('A') === 1, 'one approval to authorize one call only', fixture.executed());
      for (const id of ids.slice(1)) await fixture.rondo(['deny', id], { trust: true });
      expect(fixture.count('A') === 1, 'denied calls not to run', fixture.executed());
    },
  }));
}

export const cases = () => [...inputCases(), ...similarCallCases()];
