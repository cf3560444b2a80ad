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

let files = 0;

/** A script in the directory of the definition, by its name there. */
function script(content: unknown): string {
  const name = `s${++files}.json`;
  writeFileSync(join(directory, name), typeof content === 'string' ? content : JSON.stringify(content));
  return name;
}

interface Call {
  readonly prompt?: string;
  readonly turn?: string;
  readonly answered?: number;
  readonly signal?: AbortSignal;
  readonly onDelta?: (delta: ModelDelta) => void;
  readonly from?: string | undefined;
}

async function asked(backend: ScriptedProvider, model: string, call: Call = {}): Promise<ModelReply> {
  const { prompt = 'Hi', turn = 't1', answered = 0, signal = new AbortController().signal, onDelta } = call;
  const origin = { directory: 'from' in call ? call.from : directory, trusted: false };
  const opened = await backend.open({ id: 'scripted', model }, { origin, turnId: turn, replyCount: answered });
  const request = { backendId: 'scripted', model, promptLength: prompt.length, prompt };
  return callModel(opened, request, { signal, ...(onDelta && { onDelta }) });
}

async function failure(backend: ScriptedProvider, model: string, call: Call = {}): Promise<LoopError> {
  const thrown = await asked(backend, model, call).catch((error: unknown) => error);
  expect(thrown).toMatchObject({ code: 'BACKEND_FAILED' });
  return thrown as LoopError;
}

verifies('model.scripted', 'a script says one thing and the model another', async () => {
  const backend = scriptedProvider();
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
  expect(await asked(backend, name)).toEqual({
    ...base,
    text: 'Hello',
    reasoning: 'a greeting',
    inputTokens: 3,
    outputTokens: 0,
  });
  expect(await asked(backend, name)).toEqual({ ...base, text: '{"a":[1,"é"]}' });
  expect(await asked(backend, name)).toEqual({
    model: name,
    finish: 'tool-calls',
    text: '',
    toolCalls: [
      { id: 'call-2-0', name: 'look', input: '{"at":"it"}' },
      { id: 'mine', name: 'go', input: '{}' },
    ],
  });
});

verifies('model.scripted', 'a turn that goes on in a new process hears the first answer again', async () => {
  const name = script([{ text: 'one' }, { text: 'two' }, { text: 'three' }]);
  const backend = scriptedProvider();
  expect((await asked(backend, name, { answered: 1 })).text).toBe('two');
  expect((await asked(backend, name, { answered: 1 })).text).toBe('three');
  expect((await asked(backend, name, { turn: 't2' })).text).toBe('one');
});

verifies('model.scripted', 'branches of a turn that ask at the same time hear the same answer', async () => {
  const name = script([{ text: 'one' }, { text: 'two' }, { text: 'three' }]);
  const backend = scriptedProvider();
  const replies = await Promise.all([1, 2, 3].map(() => asked(backend, name)));
  expect(replies.map((reply) => reply.text).sort()).toEqual(['one', 'three', 'two']);
});

verifies(
  'model.scripted',
  'a call that the script does not have is answered, or steps are left and nobody sees it',
  async () => {
    const name = script([{ text: 'one' }, { text: 'two' }]);
    const backend = scriptedProvider();
    const path = join(directory, name);
    await asked(backend, name);
    expect(backend.leftovers()).toEqual([{ script: path, turn: 't1', left: 1 }]);
    await asked(backend, name);
    expect(backend.leftovers()).toEqual([]);
    const { message, data } = await failure(backend, name);
    expect(message).toContain(path);
    expect(message).toContain('element 2');
    expect(data).toEqual({ retryable: false });
  },
);

verifies('model.scripted', 'a request without what the script expects is answered', async () => {
  const backend = scriptedProvider();
  const name = script([
    { text: 'one', expect: ['Ada', 'Grace', 'Alan'] },
    { text: 'two', expect: 'Ada' },
  ]);
  const { message, data } = await failure(backend, name, { prompt: 'Greet Grace' });
  expect(message).toContain('"Ada", "Alan"');
  expect(message).not.toContain('"Grace"');
  expect(data).toEqual({ retryable: false });
  expect((await asked(backend, name, { prompt: 'Greet Ada' })).text).toBe('two');
});

verifies('model.scripted', 'a failure in the script is another failure outside', async () => {
  const backend = scriptedProvider();
  const name = script([
    { error: { message: 'overloaded', retryable: true } },
    { error: { message: 'no such model' } },
    { text: 'at last' },
  ]);
  expect(await failure(backend, name)).toMatchObject({ message: 'overloaded', data: { retryable: true } });
  expect(await failure(backend, name)).toMatchObject({ message: 'no such model', data: { retryable: false } });
  expect((await asked(backend, name)).text).toBe('at last');
});

verifies('model.scripted', 'a text is not streamed in the pieces that the script tells', async () => {
  const backend = scriptedProvider();
  const name = script([
    { text: 'abcdé😀', chunks: 4 },
    { text: 'ab', chunks: 9 },
    { chunks: ['x', 'yz'] },
    { text: 'xyz', chunks: ['x', 'yz'] },
  ]);
  const pieces: string[][] = [];
  for (let call = 0; call < 4; call++) {
    const heard: string[] = [];
    const reply = await asked(backend, name, { onDelta: ({ text }) => heard.push(text) });
    expect(reply.text).toBe(heard.join(''));
    pieces.push(heard);
  }
  expect(pieces).toEqual([
    ['a', 'bc', 'd', 'é😀'],
    ['a', 'b'],
    ['x', 'yz'],
    ['x', 'yz'],
  ]);
});

verifies('model.scripted', 'an abort waits for a slow step', async () => {
  const [controller, reason] = [new AbortController(), new Error('enough')];
  setTimeout(() => controller.abort(reason), 20);
  const name = script([{ text: 'late', delayMs: 60_000 }]);
  await expect(asked(scriptedProvider(), name, { signal: controller.signal })).rejects.toBe(reason);
});

const flawed: readonly [content: unknown, told: RegExp][] = [
  ['[{"text": "x"', /is not JSON/],
  [{ text: 'x' }, /JSON array/],
  [[{ text: 'x' }, 'y'], /element 1.*object/],
  [[{ text: 'x', txet: 'y' }], /element 0.*'txet'.*may have text, object/],
  [[{ text: 5 }], /element 0.*'text' must be a string/],
  [[{ text: 'x', object: {} }], /both 'text' and 'object'/],
  [[{ text: 'x', error: { message: 'y' } }], /'error' and an answer/],
  [[{}], /answers nothing/],
  [[{ error: { message: 'x', retry: true } }], /'error'.*'retry'/],
  [[{ error: { message: 'x', retryable: 'yes' } }], /'error.retryable'/],
  [[{ toolCalls: [{ args: {} }] }], /'toolCalls\[0\]' 'name'/],
  [[{ toolCalls: {} }], /'toolCalls' must be a list/],
  [[{ text: 'x', chunks: 0 }], /'chunks' must be/],
  [[{ text: 'x', chunks: ['y'] }], /'chunks' do not make up/],
  [[{ text: 'x', delayMs: -1 }], /'delayMs' must be/],
  [[{ text: 'x', usage: { inputTokens: -1 } }], /'usage.inputTokens'/],
  [[{ text: 'x', usage: { tokens: 1 } }], /'usage'.*'tokens'/],
  [[{ text: 'x', expect: [1] }], /'expect' must be a string/],
];

verifies('model.scripted', 'a script with a mistake in it runs, or does not say where it is', async () => {
  for (const [content, told] of flawed) {
    const name = script(content);
    const { message, data } = await failure(scriptedProvider(), name);
    expect(message).toMatch(told);
    expect(message).toContain(name);
    expect(data).toEqual({ retryable: false });
  }
});

verifies(
  'model.scripted',
  'a definition reads files that are none of its business, or shows what is in them',
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
    const shown = await failure(scriptedProvider(), secret, { from: undefined });
    expect(shown.message).toContain('is not JSON');
    expect(shown.message).not.toContain('hunter');
    expect((await failure(scriptedProvider(), '/dev/zero', { from: undefined })).message).toContain('is not a file');
    expect((await failure(scriptedProvider(), 'gone.json')).message).toContain("'gone.json' cannot be found");
    expect((await failure(scriptedProvider(), '')).message).toContain('needs the path');
    expect((await failure(scriptedProvider(), 's.json', { from: undefined })).message).toContain('absolute');
  },
);

verifies('model.scripted', 'a script with an absolute path is not found', async () => {
  const name = script([{ text: 'here' }]);
  expect((await asked(scriptedProvider(), join(directory, name), { from: undefined })).text).toBe('here');
});
