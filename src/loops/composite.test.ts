import { expect } from 'vitest';
import { composite, hostOf, prompt, tool, typesOf } from '../../spec/support/host-fixture.js';
import { errorOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';

const echo = tool('echo');
const step = (loopId: string, inputMapping: unknown, outputBinding?: string): object =>
  outputBinding === undefined ? { loopId, inputMapping } : { loopId, inputMapping, outputBinding };

async function outputOf(steps: readonly object[], input: unknown, more: object = {}): Promise<unknown> {
  const host = hostOf([echo, composite('c', steps, more)]);
  const result = await host.run({ loop: 'c', input });
  return result.status === 'ok' ? result.output : errorOf(result);
}

const asMember = (input: string): unknown => ({ v: input });

verifies('lsem.7.mapping', 'a mapping yields the value that RFC 9535 defines', async () => {
  const input = { a: { 'x y': [1, 2, 3], 'd.o.t': true }, list: [{ n: 1 }, { n: 2 }] };
  expect(await outputOf([step('echo', asMember("$.input.a['x y'][-1]"))], input)).toEqual({ v: 3 });
  expect(await outputOf([step('echo', asMember("$['input']['a']['d.o.t']"))], input)).toEqual({ v: true });
  expect(await outputOf([step('echo', asMember('$.input.list[*].n'))], input)).toEqual({ v: [1, 2] });
  expect(await outputOf([step('echo', asMember('$.input.list[?@.n > 1]'))], input)).toEqual({ v: [{ n: 2 }] });
  expect(await outputOf([step('echo', asMember('literal:$.input'))], input)).toEqual({ v: '$.input' });
  expect(await outputOf([step('echo', '$.input.list')], input)).toEqual(input.list);
});

verifies('lsem.7.mapping', 'a path that matches nothing is MAPPING_FAILED, and the child does not start', async () => {
  const host = hostOf([echo, composite('c', [step('echo', asMember('$.input.gone'))])]);
  const result = await host.run({ loop: 'c', input: {} });
  expect(result).toMatchObject({ status: 'error', error: { code: 'MAPPING_FAILED' } });
  expect(errorOf(result)?.message).toContain('$.input.gone');
  expect(typesOf(result.trace, result.callId)).toEqual(['call.started', 'call.input.validated', 'call.errored']);
});

verifies('lsem.7.mapping', 'an optional path that matches nothing omits its member', async () => {
  const mapping = { a: 'optional:$.input.a', b: 'optional:$.input.b' };
  expect(await outputOf([step('echo', mapping)], { a: 1 })).toEqual({ a: 1 });
});

verifies('lsem.7.binding', 'a binding is the LoopResult of its step', async () => {
  const steps = [step('echo', asMember('$.input')), step('echo', { r: '$.first', s: '$.first.status' })];
  const output = await outputOf([{ ...steps[0], outputBinding: 'first' }, steps[1] as object], 'in');
  expect(output).toMatchObject({
    r: { output: { v: 'in' }, status: 'ok', loopId: 'echo', loopVersion: '1.0.0' },
    s: 'ok',
  });
});

verifies('lsem.7.output', 'an outputMapping builds the output of the composite', async () => {
  const more = {
    composite: { steps: [step('echo', '$.input', 'one')], outputMapping: { x: '$.one.output.n', y: '$.input' } },
  };
  expect(await outputOf([], { n: 5 }, more)).toEqual({ x: 5, y: { n: 5 } });
});

verifies('lsem.7.order', 'no step starts after one that failed, and the error identifies the failed step', async () => {
  const host = hostOf([
    echo,
    tool('bad', 'builtin:fail'),
    composite('inner', [step('bad', { message: 'literal:no luck' }), step('echo', '$.input')]),
    composite('outer', [step('echo', '$.input'), step('inner', '$.input')]),
  ]);
  const result = await host.run({ loop: 'outer', input: {} });
  expect(errorOf(result)).toMatchObject({
    code: 'TOOL_FAILED',
    message: 'Step 0 (bad) failed: no luck',
    details: { failedStep: { loopId: 'bad', stepIndex: 0, callId: `${result.callId}/1/0` } },
  });
  expect(result.trace.filter(({ type }) => type === 'child.started')).toHaveLength(3);
  expect(result.trace.filter(({ type }) => type === 'child.completed')).toHaveLength(3);
});

verifies(
  'lsem.4.input',
  'a step that refuses its input is a failure of the composite, not an invalid input of it',
  async () => {
    const strict = tool('strict', 'builtin:echo', { inputSchema: { type: 'string' } });
    const host = hostOf([strict, composite('c', [step('strict', { a: 'literal:b' })])]);
    const result = await host.run({ loop: 'c', input: {} });
    expect(errorOf(result)).toMatchObject({ code: 'EXECUTION_FAILED' });
    expect(errorOf(result)?.details).toMatchObject({ failedStep: { error: { code: 'INPUT_VALIDATION_FAILED' } } });
  },
);

verifies('lsem.5.failure', 'a composite that calls itself ends with DEPTH_EXCEEDED', async () => {
  const host = hostOf([composite('self', [step('self', '$.input')])], { maxDepth: 500 });
  const result = await host.run({ loop: 'self', input: {} });
  expect(errorOf(result)?.code).toBe('DEPTH_EXCEEDED');
  const started = result.trace.filter(({ type }) => type === 'call.started').length;
  expect(started).toBe(501);
  expect(result.trace.filter(({ type }) => type === 'call.errored')).toHaveLength(started);
  expect(JSON.stringify(errorOf(result)).length).toBeLessThan(10_000);
});

verifies('lsem.5.failure', 'a step that calls a missing loop ends the call with LOOP_NOT_FOUND', async () => {
  const host = hostOf([composite('c', [step('ghost', '$.input')])]);
  const result = await host.run({ loop: 'c', input: {} });
  expect(errorOf(result)).toMatchObject({ code: 'LOOP_NOT_FOUND', details: { loopId: 'ghost', stepIndex: 0 } });
  expect(result.trace.at(-1)?.type).toBe('call.errored');
  expect(host.registry.missingReferences()).toEqual([{ loop: 'c@1.0.0', stepIndex: 0, missing: 'ghost' }]);
});

verifies('lsem.7.mapping', 'a step runs the version that it pins, or else the newest release', async () => {
  const versions = ['1.0.0', '1.10.0', '1.9.0', '2.0.0-rc.1'].map((version) =>
    prompt('p', 'x', { version, metadata: { version } }),
  );
  const host = hostOf([
    ...versions,
    composite('pinned', [{ loopId: 'p', loopVersion: '1.0.0', inputMapping: {} }]),
    composite('unpinned', [step('p', {})]),
  ]);
  const version = async (loop: string): Promise<unknown> => {
    const { trace } = await host.run({ loop, input: {} });
    return trace.find(({ type, callId }) => type === 'call.started' && callId.includes('/'))?.payload;
  };
  expect(await version('pinned')).toMatchObject({ loopVersion: '1.0.0' });
  expect(await version('unpinned')).toMatchObject({ loopVersion: '1.10.0' });
});

verifies('lsem.7.mapping', 'a step that maps everything gets all earlier results', async () => {
  const everything = async (mapping: unknown): Promise<unknown> =>
    outputOf([step('echo', asMember('$.input'), 'one'), step('echo', mapping)], 'in');
  const first = { output: { v: 'in' }, status: 'ok', loopId: 'echo' };
  expect(await everything('$')).toMatchObject({ input: 'in', steps: [first], one: first });
  expect(await everything('$.steps')).toMatchObject([first]);
  expect(await everything(asMember('$.*'))).toMatchObject({ v: ['in', [first], first] });
});

verifies('lsem.7.mapping', 'an optional path to a later step matches nothing, whatever its index', async () => {
  for (const index of [1, 4_000_000_000]) {
    const late = `optional:$["st\\u0065ps"][${index}]`;
    const steps = [step('echo', { a: '$.input', late }), step('echo', asMember('literal:x'))];
    const more = { composite: { steps, outputMapping: '$.steps[0].output' } };
    expect(await outputOf([], 'in', more)).toEqual({ a: 'in' });
  }
});
