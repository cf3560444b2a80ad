import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { LoopError } from '../../base/errors.js';
import type { ModelReply } from '../../loops/model.js';
import { callModel, type ModelDelta } from '../../loops/model-call.js';
import { type ScriptedProvider, scriptedProvider } from './scripted.js';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-script-')));
const directory = join(root, 'loops');
mkdirSync(directory);
afterAll(() => rmSync(root, { recursive: true }));

let scriptCount = 0;

/** Writes a script into the directory of the definition and returns its file name. */
function script(content: unknown): string {
  const name = `s${++scriptCount}.json`;
  writeFileSync(join(directory, name), typeof content === 'string' ? content : JSON.stringify(content));
  return name;
}

interface Call {
  readonly prompt?: string;
  readonly turn?: string;
  readonly replyCount?: number;
  readonly signal?: AbortSignal;
  readonly onDelta?: (delta: ModelDelta) => void;
  readonly from?: string | undefined;
}

async function ask(provider: ScriptedProvider, model: string, call: Call = {}): Promise<ModelReply> {
  const { prompt = 'Hi', turn = 't1', replyCount = 0, signal = new AbortController().signal, onDelta } = call;
  const origin = { directory: 'from' in call ? call.from : directory, trusted: false };
  const openModel = await provider.open({ id: 'scripted', model }, { origin, turnId: turn, replyCount });
  const request = { backendId: 'scripted', model, promptLength: prompt.length, prompt };
  return callModel(openModel, request, { signal, ...(onDelta && { onDelta }) });
}

async function failure(provider: ScriptedProvider, model: string, call: Call = {}): Promise<LoopError> {
  const thrown = await ask(provider, model, call).catch((error: unknown) => error);
  expect(thrown).toMatchObject({ code: 'BACKEND_FAILED' });
  return thrown as LoopError;
}

verifies('model.scripted', 'the model replies with the steps of its script', async () => {
  const provider = scriptedProvider();
  const name = script([
    { text: 'Hello', reasoning: 'a greeting', usage: { inputTokens: 3, outputTokens: 0 } },
    { object: { a: [1, 'é'] } },
    {
      toolCalls: [
        { name: 'look', args: { at: 'it' } },
        { name: 'go', id: 'mine' },
      ],
    },
  ]);
  const base = { model: name, finish: 'stop' };
  expect(await ask(provider, name)).toEqual({
    ...base,
    text: 'Hello',
    reasoning: 'a greeting',
    inputTokens: 3,
    outputTokens: 0,
  });
  expect(await ask(provider, name)).toEqual({ ...base, text: '{"a":[1,"é"]}' });
  expect(await ask(provider, name)).toEqual({
    model: name,
    finish: 'tool-calls',
    text: '',
    toolCalls: [
      { id: 'call-2-0', name: 'look', input: '{"at":"it"}' },
      { id: 'mine', name: 'go', input: '{}' },
    ],
  });
});

verifies('model.scripted', 'a turn that continues in a new process starts after its recorded replies', async () => {
  const name = script([{ text: 'one' }, { text: 'two' }, { text: 'three' }]);
  const provider = scriptedProvider();
  expect((await ask(provider, name, { replyCount: 1 })).text).toBe('two');
  expect((await ask(provider, name, { replyCount: 1 })).text).toBe('three');
  expect((await ask(provider, name, { turn: 't2' })).text).toBe('one');
});

verifies('model.scripted', 'with a list of replies, every model of the provider replies from the list', async () => {
  const provider = scriptedProvider([{ text: 'one' }, { object: { n: 2 }, expect: 'Hi' }]);
  expect((await ask(provider, 'claude-sonnet-4-5')).text).toBe('one');
  expect((await ask(provider, 'claude-sonnet-4-5', { turn: 't2', replyCount: 1 })).text).toBe('{"n":2}');
  expect(provider.unfinishedScripts()).toEqual([{ script: 'claude-sonnet-4-5', turn: 't1', remainingSteps: 1 }]);
  const { message } = await failure(provider, 'claude-sonnet-4-5', { prompt: 'Bye' });
  expect(message).toContain('"Hi"');
  expect(() => scriptedProvider([{ txet: 'x' } as never])).toThrow(/The list of replies, element 0, .*'txet'/);
});

verifies('model.scripted', 'parallel branches of a turn get different steps', async () => {
  const name = script([{ text: 'one' }, { text: 'two' }, { text: 'three' }]);
  const provider = scriptedProvider();
  const replies = await Promise.all([1, 2, 3].map(() => ask(provider, name)));
  expect(replies.map((reply) => reply.text).sort()).toEqual(['one', 'three', 'two']);
});

verifies('model.scripted', 'a call beyond the end of the script fails, and unused steps are reported', async () => {
  const name = script([{ text: 'one' }, { text: 'two' }]);
  const provider = scriptedProvider();
  const path = join(directory, name);
  await ask(provider, name);
  expect(provider.unfinishedScripts()).toEqual([{ script: path, turn: 't1', remainingSteps: 1 }]);
  await ask(provider, name);
  expect(provider.unfinishedScripts()).toEqual([]);
  const { message, data } = await failure(provider, name);
  expect(message).toContain(path);
  expect(message).toContain('element 2');
  expect(data).toEqual({ retryable: false });
});

verifies('model.scripted', 'a request without the expected texts fails', async () => {
  const provider = scriptedProvider();
  const name = script([
    { text: 'one', expect: ['Ada', 'Grace', 'Alan'] },
    { text: 'two', expect: 'Ada' },
  ]);
  const { message, data } = await failure(provider, name, { prompt: 'Greet Grace' });
  expect(message).toContain('"Ada", "Alan"');
  expect(message).not.toContain('"Grace"');
  expect(data).toEqual({ retryable: false });
  expect((await ask(provider, name, { prompt: 'Greet Ada' })).text).toBe('two');
});

verifies('model.scripted', 'a step with an error fails with its message and retryability', async () => {
  const provider = scriptedProvider();
  const name = script([
    { error: { message: 'overloaded', retryable: true } },
    { error: { message: 'no such model' } },
    { text: 'at last' },
  ]);
  expect(await failure(provider, name)).toMatchObject({ message: 'overloaded', data: { retryable: true } });
  expect(await failure(provider, name)).toMatchObject({ message: 'no such model', data: { retryable: false } });
  expect((await ask(provider, name)).text).toBe('at last');
});

verifies('model.scripted', 'a text is streamed in the chunks of the script', async () => {
  const provider = scriptedProvider();
  const name = script([
    { text: 'abcdé😀', chunks: 4 },
    { text: 'ab', chunks: 9 },
    { chunks: ['x', 'yz'] },
    { text: 'xyz', chunks: ['x', 'yz'] },
  ]);
  const deltasByCall: string[][] = [];
  for (let call = 0; call < 4; call++) {
    const deltas: string[] = [];
    const reply = await ask(provider, name, { onDelta: ({ text }) => deltas.push(text) });
    expect(reply.text).toBe(deltas.join(''));
    deltasByCall.push(deltas);
  }
  expect(deltasByCall).toEqual([
    ['a', 'bc', 'd', 'é😀'],
    ['a', 'b'],
    ['x', 'yz'],
    ['x', 'yz'],
  ]);
});

verifies('model.scripted', 'an abort does not wait for a delayed step', async () => {
  const [controller, reason] = [new AbortController(), new Error('enough')];
  setTimeout(() => controller.abort(reason), 20);
  const name = script([{ text: 'late', delayMs: 60_000 }]);
  await expect(ask(scriptedProvider(), name, { signal: controller.signal })).rejects.toBe(reason);
});

const invalidScripts: readonly [content: unknown, message: RegExp][] = [
  ['[{"text": "x"', /is not JSON/],
  [{ text: 'x' }, /JSON array/],
  [[{ text: 'x' }, 'y'], /element 1.*object/],
  [[{ text: 'x', txet: 'y' }], /element 0.*'txet'.*may have text, object/],
  [[{ text: 5 }], /element 0.*'text' must be a string/],
  [[{ text: 'x', object: {} }], /both 'text' and 'object'/],
  [[{ text: 'x', error: { message: 'y' } }], /'error' and an answer/],
  [[{}], /has no answer/],
  [[{ error: { message: 'x', retry: true } }], /'error'.*'retry'/],
  [[{ error: { message: 'x', retryable: 'yes' } }], /'error.retryable'/],
  [[{ toolCalls: [{ args: {} }] }], /'toolCalls\[0\]' 'name'/],
  [[{ toolCalls: {} }], /'toolCalls' must be an array/],
  [[{ text: 'x', chunks: 0 }], /'chunks' must be/],
  [[{ text: 'x', chunks: ['y'] }], /'chunks' do not add up/],
  [[{ text: 'x', delayMs: -1 }], /'delayMs' must be/],
  [[{ text: 'x', usage: { inputTokens: -1 } }], /'usage.inputTokens'/],
  [[{ text: 'x', usage: { tokens: 1 } }], /'usage'.*'tokens'/],
  [[{ text: 'x', expect: [1] }], /'expect' must be a string/],
];

verifies('model.scripted', 'an invalid script is rejected with the position of the mistake', async () => {
  for (const [content, expected] of invalidScripts) {
    const name = script(content);
    const { message, data } = await failure(scriptedProvider(), name);
    expect(message).toMatch(expected);
    expect(message).toContain(name);
    expect(data).toEqual({ retryable: false });
  }
});

verifies(
  'model.scripted',
  'an untrusted definition cannot read files outside of its directory, and errors do not quote files',
  async () => {
    const secret = join(root, 'secret.json');
    writeFileSync(secret, 'hunter2');
    symlinkSync(secret, join(directory, 'link.json'));
    symlinkSync(root, join(directory, 'up'));
    for (const path of [
      '../secret.json',
      'link.json',
      'up/secret.json',
      'x/../../secret.json',
      '.',
      secret,
      '/dev/zero',
    ]) {
      expect((await failure(scriptedProvider(), path)).message).toMatch(/outside the directory/);
    }
    const error = await failure(scriptedProvider(), secret, { from: undefined });
    expect(error.message).toContain('is not JSON');
    expect(error.message).not.toContain('hunter');
    expect((await failure(scriptedProvider(), '/dev/zero', { from: undefined })).message).toContain('is not a file');
    expect((await failure(scriptedProvider(), 'gone.json')).message).toContain("'gone.json' cannot be found");
    expect((await failure(scriptedProvider(), '')).message).toContain('needs the path');
    expect((await failure(scriptedProvider(), 's.json', { from: undefined })).message).toContain('absolute');
  },
);

verifies('model.scripted', 'code can use a script with an absolute path', async () => {
  const name = script([{ text: 'here' }]);
  expect((await ask(scriptedProvider(), join(directory, name), { from: undefined })).text).toBe('here');
});
