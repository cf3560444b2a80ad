/** Definitions with one mistake each, and the location and the reason in the error. */
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { LoopError } from '../../base/errors.js';
import { parseDefinition } from './definition.js';

const base = { id: 'greet', name: 'Greet', version: '1.0.0', inputSchema: {}, outputSchema: {} };
const step = { loopId: 'echo', inputMapping: {} };

const onTop = (change: object) => ({ ...base, kind: 'tool', tool: { implementation: 'builtin:echo' }, ...change });
const inPrompt = (change: object) => ({ ...base, kind: 'prompt', prompt: { template: 'x', ...change } });
const inTool = (change: object) => onTop({ tool: { implementation: 'builtin:echo', ...change } });
const inPolicy = (policy: object) => onTop({ policy });
const agent = { backend: { id: 'mock' }, tools: ['add'] };
const inComposite = (composite: object) => ({ ...base, kind: 'composite', composite });
const inSteps = (...steps: object[]) => inComposite({ steps: steps.map((change) => ({ ...step, ...change })) });

type Mistake = readonly [document: unknown, path: string, reason: string];

const names: readonly Mistake[] = [
  [onTop({ id: '' }), '/id', 'must be an id of 1 to 256 visible characters'],
  [onTop({ id: ' a' }), '/id', 'not " a"'],
  [onTop({ id: '../etc' }), '/id', '".." between slashes'],
  [onTop({ id: '__proto__' }), '/id', 'must be an id'],
  [onTop({ id: 'a'.repeat(257) }), '/id', '256'],
  [onTop({ id: 7 }), '/id', 'not 7'],
  [onTop({ name: ' ' }), '/name', 'must be text that is not blank, not " "'],
  [onTop({ name: null }), '/name', 'not null'],
  [onTop({ version: '1' }), '/version', 'must be a semantic version such as 1.0.0, not "1"'],
  [onTop({ version: 1.2 }), '/version', 'not 1.2'],
  [onTop({ description: 5 }), '/description', 'must be text, not 5'],
  [onTop({ inputSchema: 'object' }), '/inputSchema', 'an object or a boolean, not "object"'],
  [onTop({ outputSchema: [] }), '/outputSchema', 'not a list'],
  [onTop({ outputSchema: null }), '/outputSchema', 'not null'],
  [onTop({ kind: 'Tool' }), '/kind', 'must be one of prompt, composite, tool, not "Tool"; did you mean "tool"?'],
  [onTop({ metadata: [] }), '/metadata', 'must be an object, not a list'],
  [onTop({ polcy: {} }), '/polcy', 'is not a known key; did you mean "policy"?'],
  [onTop({ backend: 'openai' }), '/backend', 'must be an object, not "openai"'],
  [onTop({ backend: {} }), '/backend/id', 'is required'],
  [onTop({ backend: { id: '' } }), '/backend/id', 'must be text that is not blank'],
  [
    onTop({ backend: { id: 'a', modle: 'b' } }),
    '/backend/modle',
    'known here: id, model, options; did you mean "model"?',
  ],
  [onTop({ backend: { id: 'a', options: 1 } }), '/backend/options', 'must be an object, not 1'],
];

const bodies: readonly Mistake[] = [
  [inPrompt({ template: '' }), '/prompt/template', 'not blank'],
  [inPrompt({ template: ['a'] }), '/prompt/template', 'not a list'],
  [inPrompt({ template: 'a {{name' }), '/prompt/template', 'has "{{" without "}}"'],
  [inPrompt({ template: '{{}}' }), '/prompt/template', 'is not a variable name'],
  [
    inPrompt({ template: '{{a..b}}' }),
    '/prompt/template',
    'has {{a..b}}, which is not a variable name; write {{name}} or {{a.b}}',
  ],
  [inPrompt({ template: '{{"a": 1}}' }), '/prompt/template', 'is not a variable name'],
  [
    inPrompt({ template: '{{b.c}}', variables: ['a'] }),
    '/prompt/template',
    'uses "b", which is not among its variables (a)',
  ],
  [inPrompt({ variables: 'a' }), '/prompt/variables', 'must be a list, not "a"'],
  [inPrompt({ variables: ['a', ''] }), '/prompt/variables/1', 'not blank'],
  [inPrompt({ maxTokens: 0 }), '/prompt/maxTokens', 'must be a whole number from 1 up, not 0'],
  [inPrompt({ maxTokens: 1.5 }), '/prompt/maxTokens', 'not 1.5'],
  [inPrompt({ temperature: 2.1 }), '/prompt/temperature', 'must be a number from 0 to 2, not 2.1'],
  [inPrompt({ systemprompt: 'x' }), '/prompt/systemprompt', 'did you mean "systemPrompt"?'],
  [inTool({ implementation: 'echo' }), '/tool/implementation', 'must be a scheme and a target'],
  [inTool({ implementation: 'exec:' }), '/tool/implementation', 'must be a scheme and a target'],
  [inTool({ safety: 'twice' }), '/tool/safety', 'must be one of pure, idempotent, keyed, once, not "twice"'],
  [inTool({ config: [] }), '/tool/config', 'must be an object, not a list'],
  [inTool({ 'saf/ety~': 'pure' }), '/tool/saf~1ety~0', 'is not a known key'],
];

const composites: readonly Mistake[] = [
  [inComposite({}), '/composite/steps', 'is required'],
  [inComposite({ steps: [] }), '/composite/steps', 'must be a list of 1 to 10000 steps'],
  [inComposite({ steps: Array(10_001).fill(step) }), '/composite/steps', 'must be a list of 1 to 10000 steps'],
  [inComposite({ agent: {} }), '/composite/agent/backend', 'is required'],
  [inComposite({ agent: { backend: { id: 'mock' }, tools: 'add' } }), '/composite/agent/tools', 'must be a list'],
  [inComposite({ agent: { ...agent, steps: [] } }), '/composite/agent/steps', 'is not a known key'],
  [inComposite({ agent, steps: [step] }), '/composite/steps', 'cannot be combined with "agent"'],
  [inComposite({ agent: { ...agent, maxRounds: 0 } }), '/composite/agent/maxRounds', 'whole number'],
  [inComposite({ agent: { ...agent, approvals: { add: 'maybe' } } }), '/composite/agent/approvals/add', 'one of'],
  [inComposite({ agent: { ...agent, aprovals: {} } }), '/composite/agent/aprovals', 'did you mean "approvals"?'],
  [inComposite({ agent: { ...agent, tools: ['a', 'a'] } }), '/composite/agent/tools', 'twice'],
  [inComposite({ agent: { ...agent, stop: { tokens: 1 } } }), '/composite/agent/stop/tokens', 'is not a known key'],
  [inComposite({ plan: [] }), '/composite/plan', 'must be an object, not a list'],
  [inComposite({ plan: {} }), '/composite/plan', 'needs steps, states, or llm'],
  [inComposite({ plan: { steps: [{}] } }), '/composite/plan/steps/0', 'needs one of action, loop'],
  [inComposite({ steps: [null] }), '/composite/steps/0', 'must be an object, not null'],
  [inSteps({ loopId: 'a\tb' }), '/composite/steps/0/loopId', 'visible characters'],
  [inSteps({ loopVersion: '^1.0.0' }), '/composite/steps/0/loopVersion', 'semantic version'],
  [
    inSteps({ inputMapping: 'input' }),
    '/composite/steps/0/inputMapping',
    'must be a path that starts with $, optional: and a path, or literal: and a text',
  ],
  [inSteps({ inputMapping: { a: 1 } }), '/composite/steps/0/inputMapping/a', 'must be a path'],
  [inSteps({ inputMaping: {} }), '/composite/steps/0/inputMaping', 'did you mean "inputMapping"?'],
  [inSteps({ outputBinding: '9a' }), '/composite/steps/0/outputBinding', 'must be a name'],
  [inSteps({ outputBinding: 'steps' }), '/composite/steps/0/outputBinding', 'may not be "steps"'],
  [inSteps({ outputBinding: '__proto__' }), '/composite/steps/0/outputBinding', 'may not be'],
  [
    inSteps({ outputBinding: 'a' }, { outputBinding: 'a' }),
    '/composite/steps/1/outputBinding',
    'an earlier step already uses',
  ],
  [
    inSteps({ inputMapping: '$.a', outputBinding: 'a' }),
    '/composite/steps/0/inputMapping',
    'reads "a", which is not available yet; readable here: input, steps',
  ],
  [inSteps({ inputMapping: "$['b']" }, { outputBinding: 'b' }), '/composite/steps/0/inputMapping', 'reads "b"'],
  [inSteps({ inputMapping: 'optional:x' }), '/composite/steps/0/inputMapping', 'must be a path'],
  [inSteps({ inputMapping: 'optional:$.later' }), '/composite/steps/0/inputMapping', 'reads "later"'],
  [inSteps({ inputMapping: '$.inptu.x' }), '/composite/steps/0/inputMapping', 'did you mean "input"?'],
  [
    inSteps({ inputMapping: '$.steps[0].output' }),
    '/composite/steps/0/inputMapping',
    'reads steps[0], which is not available yet; no step has run here',
  ],
  [
    inSteps({}, { inputMapping: { x: '$["steps"][1]' } }),
    '/composite/steps/1/inputMapping/x',
    'readable here: steps[0] to steps[0]',
  ],
  [inSteps({}, { inputMapping: '$.steps[-2]' }), '/composite/steps/1/inputMapping', 'reads steps[-2]'],
  [inSteps({ outputBinding: 'a-b' }, { inputMapping: '$.a-b' }), '/composite/steps/1/inputMapping', 'has a dash'],
  [inComposite({ steps: [step], outputMapping: '$.steps[1]' }), '/composite/outputMapping', 'reads steps[1]'],
  [inComposite({ steps: [step], outputMapping: { x: 'y' } }), '/composite/outputMapping/x', 'must be a path'],
];

const policies: readonly Mistake[] = [
  [onTop({ policy: [] }), '/policy', 'must be an object, not a list'],
  [inPolicy({ aproval: 'ask' }), '/policy/aproval', 'did you mean "approval"?'],
  [inPolicy({ approval: 'never' }), '/policy/approval', 'must be one of always_allow, ask, blocked'],
  [inPolicy({ retry: {} }), '/policy/retry/attempts', 'is required'],
  [inPolicy({ retry: { attempts: 21 } }), '/policy/retry/attempts', 'must be a whole number from 1 to 20, not 21'],
  [inPolicy({ retry: { attempts: 2, backoffMs: -1 } }), '/policy/retry/backoffMs', 'from 0 to 86400000'],
  [inPolicy({ retry: { attempts: 2, factor: 0.5 } }), '/policy/retry/factor', 'from 1 to 10'],
  [inPolicy({ retry: { attempts: 2, jitter: 2 } }), '/policy/retry/jitter', 'from 0 to 1'],
  [inPolicy({ retry: { attempts: 2, maxBackoffMs: '1s' } }), '/policy/retry/maxBackoffMs', 'not "1s"'],
  [inPolicy({ timeoutMs: 0 }), '/policy/timeoutMs', 'from 1 to 86400000, not 0'],
  [inPolicy({ rateLimit: { requests: 1 } }), '/policy/rateLimit/perMs', 'is required'],
  [inPolicy({ cache: { ttlMs: 0 } }), '/policy/cache/ttlMs', 'from 1 up'],
  [inPolicy({ filters: { during: [] } }), '/policy/filters/during', 'known here: before, after'],
  [inPolicy({ filters: { before: [{}] } }), '/policy/filters/before/0/pattern', 'is required'],
  [inPolicy({ filters: { after: [{ pattern: '' }] } }), '/policy/filters/after/0/pattern', '1 to 1000 characters'],
  [
    inPolicy({ filters: { after: [{ pattern: 'a', action: 'block' }] } }),
    '/policy/filters/after/0/action',
    'refuse, redact',
  ],
  [inPolicy({ fallback: { id: 'a' } }), '/policy/fallback', 'must be a list, not an object'],
  [inPolicy({ fallback: [{ id: 'a' }, {}] }), '/policy/fallback/1/id', 'is required'],
  [inPolicy({ fallback: Array(101).fill({ id: 'a' }) }), '/policy/fallback', 'has 101 elements; the maximum is 100'],
  [inPolicy({ routing: [{ backend: { id: 'a' } }] }), '/policy/routing/0/when', 'is required'],
  [
    inPolicy({ routing: [{ when: { input: { a: 1 } }, backend: { id: 'a' } }] }),
    '/policy/routing/0/when/input/a',
    'starts with $',
  ],
];

function expectRefused(mistakes: readonly Mistake[]): void {
  for (const [document, path, reason] of mistakes) {
    let refusal: LoopError | undefined;
    try {
      parseDefinition(document, 'x.json');
    } catch (error) {
      refusal = error as LoopError;
    }
    expect(refusal?.code, `${path}: ${reason}`).toBe('DEFINITION_INVALID');
    expect(refusal?.data, `${path}: ${reason}`).toMatchObject({ path, reason: expect.stringContaining(reason) });
  }
}

verifies('definition.place', 'an invalid member is refused with its location and the reason', () => {
  expectRefused(names);
  expect(names.length + bodies.length + composites.length + policies.length).toBeGreaterThan(80);
});

verifies('definition.place', 'an invalid prompt or tool is refused before its first call', () => expectRefused(bodies));

verifies('definition.place', 'an invalid composite is refused before its first call', () => expectRefused(composites));

verifies('definition.place', 'an invalid policy is refused', () => expectRefused(policies));
