import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createListener, type Server as Listener } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { composeHost, loadLoops, loadSettings } from '../../src/surfaces/compose.js';
import { onlyPending } from '../support/approval-fixture.js';
import { verifies } from '../verifies.js';

/** Creates a trusted project on disk with these files. */
function project(files: { readonly [name: string]: string | object }) {
  const cwd = mkdtempSync(join(tmpdir(), 'rondo-gate-'));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  for (const [name, content] of Object.entries({ 'loops/.keep': '', ...files })) {
    mkdirSync(join(cwd, name, '..'), { recursive: true });
    writeFileSync(join(cwd, name), typeof content === 'string' ? content : JSON.stringify(content));
    if (name.endsWith('.sh')) chmodSync(join(cwd, name), 0o755);
  }
  return { cwd, settings: loadSettings({ flags: { store: 'memory:', trust: ['loops'] }, env: {}, cwd }) };
}

const definition = (implementation: string, config?: object): object => ({
  id: 'act',
  name: 'Act',
  version: '1.0.0',
  inputSchema: true,
  outputSchema: true,
  kind: 'tool',
  tool: { implementation, ...(config !== undefined && { config }) },
  policy: { approval: 'ask' },
});

/** A tool of one scheme and a probe for its side effect. */
interface Case {
  readonly files: { readonly [name: string]: string | object };
  readonly input: object;
  /** Returns the number of side effects, or undefined if the scheme has no observable one. */
  actionCount(cwd: string): number | undefined;
}

const inFile = (cwd: string): number => Number(existsSync(join(cwd, 'loops', 'trace')));

async function listening<S extends Server | Listener>(server: S): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

const MODULE = `import { writeFileSync } from 'node:fs';
export function act() {
  writeFileSync(new URL('../trace', import.meta.url), 'done');
  return 1;
}
`;

const CASES: { readonly [scheme: string]: () => Promise<Case> } = {
  builtin: async () => ({
    files: { 'loops/act.json': definition('builtin:echo') },
    input: { amount: 5 },
    actionCount: () => undefined,
  }),
  exec: async () => ({
    files: {
      'loops/act.json': definition('exec:./act.sh'),
      'loops/act.sh': '#!/bin/sh\ncat > /dev/null\necho done > "$(dirname "$0")/trace"\necho 1\n',
    },
    input: {},
    actionCount: inFile,
  }),
  module: async () => ({
    files: {
      'loops/act.json': definition('module:./code/act.mjs#act'),
      'loops/code/act.mjs': MODULE,
    },
    input: {},
    actionCount: inFile,
  }),
  http: async () => {
    let hits = 0;
    const port = await listening(
      createServer((request, response) => {
        hits += 1;
        request.resume();
        response.setHeader('content-type', 'application/json').end('1');
      }),
    );
    return {
      files: { 'loops/act.json': definition(`http:http://127.0.0.1:${port}/act`) },
      input: {},
      actionCount: () => hits,
    };
  },
  https: async () => {
    let hits = 0;
    const port = await listening(
      createListener((socket) => {
        hits += 1;
        socket.destroy();
      }),
    );
    return {
      files: { 'loops/act.json': definition(`https://127.0.0.1:${port}/act`) },
      input: {},
      actionCount: () => hits,
    };
  },
  toolbox: async () => ({
    files: { 'loops/act.json': definition('toolbox:write_file') },
    input: { path: 'trace', content: 'done' },
    actionCount: inFile,
  }),
};

/** Returns the schemes that the composed registry lists in the error about an unknown one. */
async function schemes(): Promise<readonly string[]> {
  const { settings } = project({ 'loops/act.json': definition('nosuch:thing') });
  const { badFiles } = await loadLoops(await settings);
  return [...(badFiles[0]?.reason ?? '').matchAll(/\b([a-z]+):(?=,|\.|$)/g)].map((match) => match[1] ?? '').sort();
}

verifies('approval.gate', 'every tool scheme has a test of its gate', async () => {
  const registered = await schemes();
  expect(registered).toEqual(expect.arrayContaining(['builtin', 'exec', 'http', 'https', 'module']));
  expect(registered.filter((scheme) => !Object.hasOwn(CASES, scheme))).toEqual([]);
});

verifies('approval.gate', 'a tool of any scheme starts only after an approval', async () => {
  for (const scheme of await schemes()) {
    const { files, input, actionCount } = await (CASES[scheme]?.() ??
      Promise.reject(new Error(`no case for ${scheme}`)));
    const { cwd, settings } = project(files);
    const { host, badFiles, close } = await composeHost(await settings);
    expect(badFiles, scheme).toEqual([]);
    const { turnId, status } = await host.run({ loop: 'act', input });
    expect([status, actionCount(cwd) ?? 0], scheme).toEqual(['paused', 0]);
    await host.resume(turnId);
    await host.replay(turnId);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const started = (await host.archive.trace(turnId)).filter(({ type }) => type === 'call.tool.invoked');
    expect([started.length, actionCount(cwd) ?? 0], scheme).toEqual([0, 0]);
    const { id } = await onlyPending(host);
    await host.answer({ id, approved: true, by: 'ada' });
    const result = await host.resume(turnId);
    // The listener behind https does not implement TLS; the connection proves the call.
    expect([result.status, actionCount(cwd) ?? 1], scheme).toEqual([scheme === 'https' ? 'error' : 'ok', 1]);
    await close();
  }
});
