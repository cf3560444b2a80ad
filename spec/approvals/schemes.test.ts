import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createListener, type Server as Listener } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { composeHost, loadLoops, loadSettings } from '../../src/surfaces/compose.js';
import { onlyPending } from '../support/approval-fixture.js';
import { verifies } from '../verifies.js';

/** A project on the disk that is trusted, with a file for each of these definitions. */
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

/** A tool of one scheme that leaves a trace, and how to see whether it did. */
interface Case {
  readonly files: { readonly [name: string]: string | object };
  readonly input: object;
  /** How often it acted; for a scheme that cannot be seen from outside, undefined. */
  acted(cwd: string): number | undefined;
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
    acted: () => undefined,
  }),
  exec: async () => ({
    files: {
      'loops/act.json': definition('exec:./act.sh'),
      'loops/act.sh': '#!/bin/sh\ncat > /dev/null\necho done > "$(dirname "$0")/trace"\necho 1\n',
    },
    input: {},
    acted: inFile,
  }),
  module: async () => ({
    files: {
      'loops/act.json': definition('module:./code/act.mjs#act'),
      'loops/code/act.mjs': MODULE,
    },
    input: {},
    acted: inFile,
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
      acted: () => hits,
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
      acted: () => hits,
    };
  },
  toolbox: async () => ({
    files: { 'loops/act.json': definition('toolbox:write_file') },
    input: { path: 'trace', content: 'done' },
    acted: inFile,
  }),
};

/** The ways to run a tool that the composed registry names when it is asked for one that there is not. */
async function schemes(): Promise<readonly string[]> {
  const { settings } = project({ 'loops/act.json': definition('nosuch:thing') });
  const { badFiles } = await loadLoops(await settings);
  return [...(badFiles[0]?.reason ?? '').matchAll(/\b([a-z]+):(?=,|\.|$)/g)].map((match) => match[1] ?? '').sort();
}

verifies('approval.gate', 'a new way to run tools has no test of its gate', async () => {
  const known = await schemes();
  expect(known).toEqual(expect.arrayContaining(['builtin', 'exec', 'http', 'https', 'module']));
  expect(known.filter((scheme) => !Object.hasOwn(CASES, scheme))).toEqual([]);
});

verifies('approval.gate', 'a tool of some scheme starts before anybody said yes', async () => {
  for (const scheme of await schemes()) {
    const { files, input, acted } = await (CASES[scheme]?.() ?? Promise.reject(new Error(`no case for ${scheme}`)));
    const { cwd, settings } = project(files);
    const { host, badFiles, close } = await composeHost(await settings);
    expect(badFiles, scheme).toEqual([]);
    const { turnId, status } = await host.run({ loop: 'act', input });
    expect([status, acted(cwd) ?? 0], scheme).toEqual(['paused', 0]);
    await host.resume(turnId);
    await host.replay(turnId);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const started = (await host.archive.trace(turnId)).filter(({ type }) => type === 'call.tool.invoked');
    expect([started.length, acted(cwd) ?? 0], scheme).toEqual([0, 0]);
    const { id } = await onlyPending(host);
    await host.answer({ id, approved: true, by: 'ada' });
    const result = await host.resume(turnId);
    // The listener behind https speaks no TLS; that it was called is enough.
    expect([result.status, acted(cwd) ?? 1], scheme).toEqual([scheme === 'https' ? 'error' : 'ok', 1]);
    await close();
  }
});
