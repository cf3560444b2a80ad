/** Approval of tools with side effects: the question describes the call, and the call does what it describes. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateText, stepCountIs, type ToolSet } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { afterAll, expect } from 'vitest';
import { cleanUp, createWorkspace, failure, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import type { ToolCallContext, ToolImplementation } from '../../loops/tool-implementation.js';
import { ApprovalRequiredError, type LoopsToolSet } from '../../protocol/tool.js';
import { toolbox, toolboxTools } from './index.js';
import { probeSandbox } from './sandbox.js';

afterAll(cleanUp);

const hasSandbox = 'bubblewrap' in (await probeSandbox());

const inputs = {
  list_files: { path: '.' },
  view_file: { path: 'a.txt' },
  search_files: { query: 'one' },
  write_file: { path: 'b.txt', content: 'new\n' },
  edit_file: { path: 'a.txt', old: 'one', new: 'two' },
  run_command: { command: 'cat a.txt' },
  fetch_url: { url: 'http://public.example/' },
} as const;

const actionTools = ['write_file', 'edit_file', 'run_command', 'fetch_url'];

function createTools() {
  const { root } = createWorkspace({ 'a.txt': 'one\n' });
  const fetch = { resolve: async () => ['127.0.0.1'] };
  const tools = toolbox({ roots: [root], commands: { sandbox: 'preferred' }, fetch });
  return { root, tools, set: tools satisfies LoopsToolSet as LoopsToolSet };
}

verifies('toolbox.ask', 'every tool with side effects requires approval, and no other', async () => {
  const { root, set } = createTools();
  expect(Object.keys(set)).toEqual(Object.keys(inputs));
  for (const [name, input] of Object.entries(inputs)) {
    const tool = set[name];
    expect([name, tool?.name, tool?.readOnly, tool?.policy]).toEqual([
      name,
      name,
      !actionTools.includes(name),
      actionTools.includes(name) ? 'ask' : 'always_allow',
    ]);
    expect(tool?.requestApproval === undefined).toBe(!actionTools.includes(name));
    if (!actionTools.includes(name)) continue;
    const executed = Promise.resolve(tool?.execute(input, { toolCallId: 'c', messages: [] }));
    await expect(executed).rejects.toBeInstanceOf(ApprovalRequiredError);
    const description = await tool?.requestApproval?.(input, {});
    await expect(executed).rejects.toMatchObject({ description });
    expect(await tool?.requestApproval?.(input, { mode: 'unsupervised' })).toBe(null);
  }
  expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('one\n');
});

verifies('toolbox.ask', 'the question describes exactly what the call does', async () => {
  const { root, tools } = createTools();
  const questionOf = async (tool: { requestApproval?(input: never, ctx: object): unknown }, input: object) =>
    tool.requestApproval?.(input as never, {});
  expect(await questionOf(tools.write_file, inputs.write_file)).toBe(
    'Write b.txt:\n--- (new file)\n+++ b.txt\n@@ -0,0 +1,1 @@\n+new',
  );
  expect(await questionOf(tools.edit_file, inputs.edit_file)).toBe(
    'Edit a.txt:\n--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-one\n+two',
  );
  const confinement = hasSandbox ? 'in a sandbox without network' : 'WITHOUT a sandbox';
  expect(await questionOf(tools.run_command, inputs.run_command)).toBe(`Run in ., ${confinement}:\ncat a.txt`);
  expect(await questionOf(tools.fetch_url, { url: 'HTTP://Public.example/x' })).toContain(
    'Fetch http://public.example/x ',
  );
  // The file has changed since the question, so the edit is ambiguous: nothing is done.
  writeFileSync(join(root, 'a.txt'), 'one\none\n');
  expect(await failure(use(tools.edit_file, inputs.edit_file))).toMatch(/2 times/);
  expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('one\none\n');
});

verifies('toolbox.ask', 'no question is asked about a call that would fail', async () => {
  const { tools } = createTools();
  const errorOf = (work: unknown) => failure(Promise.resolve(work));
  expect(await errorOf(tools.edit_file.requestApproval?.({ path: 'a.txt', old: 'none', new: 'x' }, {}))).toMatch(
    /does not occur/,
  );
  expect(await errorOf(tools.write_file.requestApproval?.({ path: '../x', content: '' }, {}))).toMatch(/is outside/);
  expect(await errorOf(tools.run_command.requestApproval?.({ command: 'true', directory: '/' }, {}))).toMatch(
    /is outside/,
  );
  expect(await errorOf(tools.fetch_url.requestApproval?.({ url: 'file:///etc/passwd' }, {}))).toMatch(
    /only http and https/,
  );
  expect(await errorOf(tools.write_file.requestApproval?.({ path: 'x' } as never, {}))).toMatch(/content: is missing/);
});

verifies('toolbox.ask', 'the tools work in the AI SDK and require approval there too', async () => {
  const { root, tools } = createTools();
  const names = Object.keys(inputs) as (keyof typeof inputs)[];
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const bad = { type: 'tool-call' as const, toolCallId: 'bad', toolName: 'view_file', input: '{"file":"a.txt"}' };
  const model = new MockLanguageModelV3({
    doGenerate: [
      {
        content: [
          ...names.map((toolName) => ({
            type: 'tool-call' as const,
            toolCallId: toolName,
            toolName,
            input: JSON.stringify(inputs[toolName]),
          })),
          bad,
        ],
        finishReason: { unified: 'tool-calls', raw: undefined },
        usage,
        warnings: [],
      },
      {
        content: [{ type: 'text', text: 'done' }],
        finishReason: { unified: 'stop', raw: undefined },
        usage,
        warnings: [],
      },
    ],
  });
  const allowed = { ...tools, write_file: tools.write_file.withApproval('always_allow') };
  const toolSet = allowed satisfies ToolSet;
  const result = await generateText({ model, tools: toolSet, prompt: 'go', stopWhen: stepCountIs(2), maxRetries: 0 });
  expect(result.text).toBe('done');
  const content = result.steps[0]?.content ?? [];
  const results = content.filter((part) => part.type === 'tool-result');
  expect(Object.fromEntries(results.map(({ toolName, output }) => [toolName, output]))).toMatchObject({
    list_files: { entries: ['a.txt'] },
    view_file: { text: '1\tone' },
    search_files: { matches: ['a.txt:1: one'] },
    write_file: { path: 'b.txt' },
  });
  const errors = content.filter((part) => part.type === 'tool-error');
  expect(errors.map(({ toolCallId, error }) => [toolCallId, error instanceof ApprovalRequiredError]).sort()).toEqual([
    ['bad', false],
    ['edit_file', true],
    ['fetch_url', true],
    ['run_command', true],
  ]);
  expect(readFileSync(join(root, 'b.txt'), 'utf8')).toBe('new\n');
  expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('one\n');
  const modelTool = model.doGenerateCalls[0]?.tools?.find(({ name }) => name === 'view_file');
  expect(modelTool).toMatchObject({
    inputSchema: {
      type: 'object',
      required: ['path'],
      additionalProperties: false,
      properties: { path: { type: 'string' } },
    },
  });
});

verifies('toolbox.ask', 'an unknown or invalid option is an error', () => {
  const { root } = createWorkspace();
  const creating =
    (options: object): (() => unknown) =>
    () =>
      toolbox({ roots: [root], ...options });
  expect(() => toolbox({} as never)).toThrow('toolbox needs options.roots, at least one directory.');
  expect(() => toolbox(undefined as never)).toThrow('toolbox needs options.roots');
  expect(creating({ root })).toThrow('options.root is not an option; available are roots, commands, fetch.');
  expect(creating({ commands: { sandbox: 'on' } })).toThrow(
    'options.commands.sandbox must be "required", "preferred" or "off".',
  );
  expect(creating({ commands: { shell: true } })).toThrow(/options\.commands\.shell is not an option/);
  expect(creating({ commands: { env: { 'A B': 'x' } } })).toThrow(
    /options\.commands\.env must be an object with environment variable names/,
  );
  expect(creating({ commands: { env: { A: 1 } } })).toThrow(/options\.commands\.env/);
  expect(creating({ commands: { timeoutMs: 0 } })).toThrow(/must be a whole number from 1 to/);
  expect(creating({ fetch: { allow: ['https://x'] } })).toThrow(/options\.fetch\.allow must be an array of hosts/);
  expect(creating({ fetch: { private: true } })).toThrow(/options\.fetch\.private is not an option/);
  expect(creating({ fetch: [] })).toThrow('options.fetch must be an object.');
  expect(() => toolboxTools({ roots: [root] } as never)).toThrow(/Roots are set by definitions/);
  expect(() => toolboxTools({ commands: { sandbox: 'on' } } as never)).toThrow(/options\.commands\.sandbox/);
});

const call: ToolCallContext = {
  callId: 'call-1',
  idempotencyKey: 'k',
  signal: new AbortController().signal,
  config: {},
  log: () => undefined,
  delta: () => undefined,
  emit: () => undefined,
};

verifies(
  'toolbox.ask',
  'an untrusted definition cannot change files, run commands or reach private addresses',
  async () => {
    const { root } = createWorkspace({ 'a.txt': 'one\n' });
    const tools = toolboxTools();
    const reasonFor = (target: string, config = {}, trusted = false, directory: string | undefined = root) =>
      tools.unavailableReason(target, { directory, trusted }, config);
    expect(Object.keys(inputs).filter((target) => reasonFor(target) === undefined)).toEqual([
      ...['list_files', 'view_file', 'search_files', 'fetch_url'],
    ]);
    expect(Object.keys(inputs).filter((target) => reasonFor(target, {}, true) !== undefined)).toEqual([]);
    expect(reasonFor('write_file')).toMatch(
      /^toolbox:write_file has side effects, and .* is not trusted\. If you trust it/,
    );
    expect(reasonFor('remove_file')).toMatch(/^toolbox:remove_file does not exist; available are list_files/);
    expect(reasonFor('__proto__')).toMatch(/does not exist/);
    expect(reasonFor('view_file', { roots: ['.', './sub'] })).toBe(undefined);
    for (const outsideRoot of ['..', '/etc', '../root-evil', 'a/../..']) {
      expect(reasonFor('view_file', { roots: [outsideRoot] })).toMatch(/leaves the directory of its definition/);
      expect(reasonFor('view_file', { roots: [outsideRoot] }, true)).toBe(undefined);
    }
    expect(reasonFor('view_file', { root: ['.'] })).toMatch(/^config\.root is not an option/);
    expect(reasonFor('fetch_url', { fetch: { allowPrivate: true } })).toMatch(/is not trusted/);
    expect(reasonFor('fetch_url', { fetch: { allowPrivate: true } }, true)).toBe(undefined);
    expect(tools.unavailableReason('view_file', { directory: undefined, trusted: true }, {})).toMatch(
      /comes from a file/,
    );
    expect(tools.unavailableReason('fetch_url', { directory: undefined, trusted: false }, {})).toBe(undefined);
    expect(await failure(tools.open('write_file', { directory: root, trusted: false }, {}))).toMatch(/is not trusted/);
  },
);

verifies('toolbox.ask', 'the tools work in definitions, and those with side effects ask', async () => {
  const { root, outside } = createWorkspace({ 'a.txt': 'one\n', 'sub/b.txt': 'two\n' });
  const tools: ToolImplementation = toolboxTools({ commands: { sandbox: 'preferred' } });
  const origin = { directory: root, trusted: false };
  const view = await tools.open('view_file', origin, { roots: ['sub'] });
  expect(await view({ path: 'b.txt' }, call)).toMatchObject({ text: '1\ttwo' });
  expect(await failure(Promise.resolve(view({ path: '../a.txt' }, call)))).toMatch(/is outside/);
  expect(await failure(Promise.resolve(view({ path: 1 }, call)))).toMatch(/^The input of view_file is invalid/);
  const linked = createWorkspace({ 'x.txt': '' });
  const { symlinkSync } = await import('node:fs');
  symlinkSync(outside, join(linked.root, 'link'));
  const openedThroughLink = tools.open('view_file', { directory: linked.root, trusted: false }, { roots: ['link'] });
  expect(await failure(openedThroughLink)).toMatch(/is reached through the symbolic link/);
  const trusted = { directory: root, trusted: true };
  expect(tools.approvalDescriber('view_file', trusted, {})).toBe(undefined);
  const question = tools.approvalDescriber('edit_file', trusted, {});
  expect(await question?.(inputs.edit_file, {})).toMatch(/^Edit a\.txt:/);
  expect(await question?.(inputs.edit_file, { mode: 'unsupervised' })).toBe(null);
  const deltas: string[] = [];
  const run = await tools.open('run_command', trusted, {});
  expect(await run({ command: 'cat a.txt' }, { ...call, delta: (text) => void deltas.push(text) })).toMatchObject({
    output: 'one\n',
  });
  expect(deltas.join('')).toBe('one\n');
});

verifies('toolbox.ask', 'a definition cannot override the options of the operator', async () => {
  const { root } = createWorkspace();
  const tools = toolboxTools({
    fetch: { allow: ['example.com'], maxRedirects: 0 },
    commands: { bubblewrap: '/nowhere/bwrap' },
  });
  const trusted = { directory: root, trusted: true };
  const fetching = await tools.open('fetch_url', trusted, { fetch: { allow: ['evil.example'], allowPrivate: true } });
  expect(await failure(Promise.resolve(fetching({ url: 'http://evil.example/' }, call)))).toMatch(
    /only example\.com may be fetched/,
  );
  const run = await tools.open('run_command', trusted, { commands: { bubblewrap: '/usr/bin/bwrap' } });
  expect(await failure(Promise.resolve(run({ command: 'true' }, call)))).toMatch(/\/nowhere\/bwrap is not installed/);
});
