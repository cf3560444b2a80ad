// Checks of what an approval covers, which agents require one, and which grants are accepted.

import { deepStrictEqual, match, rejects, strictEqual } from 'node:assert';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import type { Host } from '../../src/host/host.js';
import type { Json } from '../../src/protocol/json.js';
import type { AgentSpec } from '../../src/protocol/loop.js';
import type { LoopsTool } from '../../src/protocol/tool.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import { errorOf, outputOf } from '../support/turn-results.js';
import type { LibraryParts } from './library.js';

/** Everything that an approved call passes through, with all kinds of tools. */
export const targetParts: LibraryParts = [
  'adapters/memory/index.js',
  'adapters/tools/index.js',
  'adapters/tools/approved-program.js',
  'adapters/tools/approved-source.js',
  'adapters/tools/program.js',
  'adapters/toolbox/index.js',
  'testing/manual-clock.js',
  'adapters/system/seeded-ids.js',
  'host/host.js',
  'loops/registry.js',
  'loops/tool-loop.js',
  'protocol/tool.js',
];

type TargetLibrary = typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/adapters/tools/index.js') &
  typeof import('../../src/adapters/tools/approved-program.js') &
  typeof import('../../src/adapters/tools/approved-source.js') &
  typeof import('../../src/adapters/tools/program.js') &
  typeof import('../../src/adapters/toolbox/index.js') &
  typeof import('../../src/testing/manual-clock.js') &
  typeof import('../../src/adapters/system/seeded-ids.js') &
  typeof import('../../src/host/host.js') &
  typeof import('../../src/loops/registry.js') &
  typeof import('../../src/loops/tool-loop.js') &
  typeof import('../../src/protocol/tool.js');

type TargetCheck = (library: TargetLibrary) => Promise<void>;

const ANY = { name: 'Act', version: '1.0.0', inputSchema: true, outputSchema: true } as const;
const GO = { prompt: 'go' };

/** Runs work in a temporary directory. */
async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-guard-')));
  try {
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A host with all kinds of tools, whose definitions are in this directory. */
function hostOf(
  library: TargetLibrary,
  loops: readonly unknown[],
  directory = tmpdir(),
  replies: readonly string[] = [],
): Host {
  const tools = [library.builtinTools(), library.execTools(), library.moduleTools(), library.toolboxTools()];
  const implementations = new Map(tools.map((tool) => [tool.scheme, tool]));
  const registry = new library.Registry(implementations);
  for (const loop of loops) registry.add(loop, { directory, trusted: true });
  const script = (name: string) =>
    replyProvider([{ calls: [[name, GO]] }, { text: 'done' }], name === 'pay' ? 'help' : 'replies');
  const providers = new Map(replies.map(script).map((provider) => [provider.id, provider]));
  const { memoryStore, ManualClock, seededIds } = library;
  const clock = new ManualClock(1_000_000);
  return new library.Host({
    store: memoryStore(),
    clock,
    ids: seededIds(1),
    registry,
    providers,
    implementations,
    trusts: () => true,
  });
}

/** Approves what is pending, and resumes. */
async function approve(host: Host, turnId: string, options: object = {}): Promise<string> {
  for (const { id } of await host.archive.approvals()) await host.answer({ id, approved: true, by: 'ada', ...options });
  const result = await host.resume(turnId);
  return errorOf(result)?.code ?? result.status;
}

const script = (mark: string, directory: string): string =>
  `#!/bin/sh\ncat > /dev/null\necho ${mark} >> ${directory}/trace\necho 1\n`;
const moduleText = (mark: string): string => `export const act = () => '${mark}';\n`;
const toolWithApproval = (implementation: string, id = 'act'): object => ({
  ...ANY,
  id,
  kind: 'tool',
  tool: { implementation },
  policy: { approval: 'ask' },
});

/** Runs a call until its approval is pending, makes a change and approves the call. Returns how the call ends. */
async function approveAfterChange(
  library: TargetLibrary,
  directory: string,
  loop: object,
  input: Json,
  change: () => void,
) {
  const host = hostOf(library, [loop], directory);
  const { turnId, status } = await host.run({ loop: 'act', input, sessionId: 's' });
  strictEqual(status, 'paused');
  change();
  return approve(host, turnId);
}

/** Approves act.sh in this directory. Returns a function that runs it and returns its output or its error code. */
async function approvedProgram(library: TargetLibrary, directory: string): Promise<() => Promise<string>> {
  const origin = { directory, trusted: true };
  const tools = library.execTools();
  const approved = await tools.targetResolver('./act.sh', origin, {})?.({});
  const run = await tools.open('./act.sh', origin, {}, approved);
  const call = { callId: 'c', idempotencyKey: 'k', signal: new AbortController().signal, config: {} };
  return () => Promise.resolve(run({}, call as never)).then(String, (error: { code: string }) => error.code);
}

/** Checks that a call fails, before its program would end, if the file changes while the program is started. */
async function changedAtStart(library: TargetLibrary, text: string, startMs: number, change: (file: string) => void) {
  await inDirectory(async (directory) => {
    const file = join(directory, 'act.sh');
    const lines = `touch begun; until [ -e go ]; do sleep 0.01; done; ${text}; touch over`;
    writeFileSync(file, `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
    writeFileSync(`${file}.other`, '#!/bin/sh\necho 2\n', { mode: 0o755 });
    const command = { file, args: [], directory, env: process.env, input: '', maxOutputBytes: 100, killGraceMs: 100 };
    const approved = await library.programTargetOf(file, 'act');
    const running = library.runApprovedProgram(command, new AbortController().signal, approved, 'act', startMs);
    const refused = rejects(running, { code: 'TOOL_FAILED' });
    while (!existsSync(join(directory, 'begun'))) await setTimeout(5);
    change(file);
    writeFileSync(join(directory, 'go'), '');
    await refused;
    strictEqual(text.startsWith('sleep') && existsSync(join(directory, 'over')), false);
  });
}

function payTool(library: TargetLibrary, payments: string[]): LoopsTool<unknown, unknown> {
  return library.loopsTool({
    name: 'pay',
    inputSchema: z.object({}).loose(),
    requestApproval: (_, { mode }) => (mode === 'unsupervised' ? null : 'Pay?'),
    execute: () => payments.push('paid'),
  }) as LoopsTool<unknown, unknown>;
}

/** Runs a turn of two agents without an answer. Returns its status and the number of payments. */
async function runWithoutAnswer(
  library: TargetLibrary,
  rules: { outer?: Partial<AgentSpec>; inner?: Partial<AgentSpec> },
  allow: boolean,
) {
  const payments: string[] = [];
  const pay = payTool(library, payments);
  const loops = [
    library.loopFromTool(allow ? pay.withApproval('always_allow') : pay),
    agentDef('helper', { backend: { id: 'help' }, tools: ['pay'], ...rules.inner }),
    agentDef('boss', { tools: ['helper'], ...rules.outer }),
  ];
  const { status } = await hostOf(library, loops, tmpdir(), ['helper', 'pay']).run({ loop: 'boss', input: GO });
  return [status, payments.length];
}

export const targetChecks = {
  'a program that changed after its approval was requested does not run': (library) =>
    inDirectory(async (directory) => {
      const file = join(directory, 'act.sh');
      writeFileSync(file, script('first', directory), { mode: 0o755 });
      const change = (): void => writeFileSync(file, script('other', directory));
      strictEqual(
        await approveAfterChange(library, directory, toolWithApproval('exec:./act.sh'), {}, change),
        'TOOL_NOT_ADMITTED',
      );
    }),
  'a program that changes between its check and its start does not run': (library) =>
    inDirectory(async (directory) => {
      writeFileSync(join(directory, 'act.sh'), script('first', directory), { mode: 0o755 });
      const run = await approvedProgram(library, directory);
      appendFileSync(join(directory, 'act.sh'), 'echo more >&2\n');
      strictEqual(await run(), 'TOOL_NOT_ADMITTED');
    }),
  'a module runs with the approved bytes': (library) =>
    inDirectory(async (directory) => {
      const file = join(directory, 'act.mjs');
      const host = hostOf(library, [toolWithApproval('module:./act.mjs#act')], directory);
      for (const mark of ['first', 'second']) {
        writeFileSync(file, moduleText(mark));
        const { turnId } = await host.run({ loop: 'act', input: {} });
        strictEqual(await approve(host, turnId), 'ok');
        strictEqual(outputOf(await host.resume(turnId)), mark);
      }
    }),
  'a CommonJS module runs with the approved bytes': (library) =>
    inDirectory(async (directory) => {
      const host = hostOf(library, [toolWithApproval('module:./act.cjs#act')], directory);
      for (const mark of ['first', 'second']) {
        writeFileSync(join(directory, 'act.cjs'), `exports.act = () => '${mark}';\n`);
        const { turnId } = await host.run({ loop: 'act', input: {} });
        strictEqual(await approve(host, turnId), 'ok');
        strictEqual(outputOf(await host.resume(turnId)), mark);
      }
    }),
  'a program whose file changes during its start never counts as approved': (library) =>
    changedAtStart(library, 'echo 1', 60_000, (file) => renameSync(`${file}.other`, file)),
  'a running program is stopped if its file changed during its start': (library) =>
    changedAtStart(library, 'sleep 8; echo 1', 2000, (file) => renameSync(`${file}.other`, file)),
  'a program whose file was changed and restored never counts as approved': (library) =>
    changedAtStart(library, 'echo 1', 60_000, (file) => {
      const approved = readFileSync(file);
      writeFileSync(file, readFileSync(`${file}.other`));
      writeFileSync(file, approved);
    }),
  'a program whose file keeps changing is not started': (library) =>
    inDirectory(async (directory) => {
      const file = join(directory, 'act.sh');
      writeFileSync(file, '#!/bin/sh\necho 1\n', { mode: 0o755 });
      const read = library.fingerprintProgram(file, 'act', () => statSync(file).ctimeMs);
      await rejects(read, { code: 'TOOL_NOT_ADMITTED' });
    }),
  'no code of a module runs if its file changes before Node reads it': (library) =>
    inDirectory(async (directory) => {
      const file = join(directory, 'act.mjs');
      const mark = `globalThis[Symbol.for(${JSON.stringify(directory)})] = true;`;
      writeFileSync(file, mark);
      await library.importApprovedModule(file, 'another', 1).catch(() => undefined);
      strictEqual(Reflect.get(globalThis, Symbol.for(directory)), undefined);
    }),
  'a file is written only to the approved path': (library) =>
    inDirectory(async (directory) => {
      for (const name of ['real', 'other']) {
        mkdirSync(join(directory, name));
        writeFileSync(join(directory, name, 'a.txt'), 'one\n');
      }
      const roots = library.toolbox({ roots: [directory] });
      const input = { path: 'real/a.txt', content: 'new\n' };
      const approvedTarget = await roots.write_file.approvalTarget?.(input);
      rmSync(join(directory, 'real'), { recursive: true });
      symlinkSync(join(directory, 'other'), join(directory, 'real'));
      const { execute } = roots.write_file.withApproval('always_allow');
      const options = { toolCallId: 'c', messages: [], approvedTarget };
      const outcome = await Promise.resolve(execute(input, options)).then(
        String,
        (error: { code: string }) => error.code,
      );
      deepStrictEqual(
        [outcome, readFileSync(join(directory, 'other', 'a.txt'), 'utf8')],
        ['TOOL_NOT_ADMITTED', 'one\n'],
      );
    }),
  'a new file replaces no file that was created after the approval': (library) =>
    inDirectory(async (directory) => {
      const loop = { ...toolWithApproval('toolbox:write_file') };
      const change = (): void => writeFileSync(join(directory, 'a.txt'), 'mine\n');
      const input = { path: 'a.txt', content: 'new\n' };
      strictEqual(await approveAfterChange(library, directory, loop, input, change), 'TOOL_NOT_ADMITTED');
    }),
  'a standing grant ends when its program changes': (library) =>
    inDirectory(async (directory) => {
      const file = join(directory, 'act.sh');
      writeFileSync(file, script('first', directory), { mode: 0o755 });
      const host = hostOf(library, [toolWithApproval('exec:./act.sh')], directory);
      const turn = { loop: 'act', input: { to: 'ada' }, sessionId: 's' };
      const { turnId } = await host.run(turn);
      strictEqual(await approve(host, turnId, { standing: { properties: { to: { const: 'ada' } } } }), 'ok');
      writeFileSync(file, script('other', directory));
      strictEqual((await host.run(turn)).status, 'paused');
    }),
  'the mode of a sub-agent does not cancel the approval policy of an enclosing agent': async (library) => {
    const rules = { outer: { approvals: { pay: 'ask' } }, inner: { mode: 'unsupervised' } } as const;
    deepStrictEqual(await runWithoutAnswer(library, rules, true), ['paused', 0]);
  },
  'an inner mode does not cancel the approvals of an outer mode': async (library) => {
    const rules = { outer: { mode: 'day' }, inner: { mode: 'unsupervised' } };
    deepStrictEqual(await runWithoutAnswer(library, rules, false), ['paused', 0]);
  },
  'a tool that defines requestApproval requires approval by default': async (library) => {
    deepStrictEqual(await runWithoutAnswer(library, {}, false), ['paused', 0]);
  },
  'only the agent that has a tool can allow it': async (library) => {
    const rules = { outer: { approvals: { pay: 'always_allow' } } } as const;
    deepStrictEqual(await runWithoutAnswer(library, rules, false), ['paused', 0]);
    const star = { inner: { approvals: { '*': 'always_allow' } } } as const;
    deepStrictEqual(await runWithoutAnswer(library, star, false), ['paused', 0]);
  },
  'a standing grant must limit the value of an argument': async (library) => {
    const everyValue = { properties: { urgent: { enum: [true, false] } } };
    for (const standing of [{ minProperties: 1 }, { properties: { to: { pattern: '.' } } }, everyValue]) {
      const host = hostOf(library, [toolWithApproval('builtin:echo')]);
      await host.run({ loop: 'act', input: { to: 'ada', urgent: true } });
      const [{ id = '' } = {}] = await host.archive.approvals();
      const outcome = await host.answer({ id, approved: true, by: 'ada', standing }).then(
        () => 'accepted',
        (error: { message: string }) => error.message,
      );
      match(outcome, /limits the value or the range/);
    }
  },
  'a standing grant covers no call without an argument that it limits': async (library) => {
    const host = hostOf(library, [toolWithApproval('builtin:echo')]);
    const { turnId } = await host.run({ loop: 'act', input: { amount: 5, to: 'ada' }, sessionId: 's' });
    const standing = { properties: { amount: { maximum: 10 }, to: { const: 'ada' } } };
    strictEqual(await approve(host, turnId, { standing }), 'ok');
    strictEqual((await host.run({ loop: 'act', input: { to: 'ada' }, sessionId: 's' })).status, 'paused');
  },
} as const satisfies Record<string, TargetCheck>;
