// Projects on disk for approval tests: definitions, programs and files, and a SQLite store.

import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Host } from '../../src/host/host.js';
import type { Approval } from '../../src/protocol/approval.js';
import { composeHost, loadSettings } from '../../src/surfaces/compose.js';
import { errorOf } from '../support/turn-results.js';

/** A trusted project in a temporary directory. */
export interface Project {
  readonly loops: string;
  path(name: string): string;
  write(name: string, content: string | object): void;
  read(name: string): string | undefined;
  /** Runs work with a new host on the project's store, as a new process would. */
  inProcess<T>(work: (host: Host) => Promise<T>): Promise<T>;
}

/** Creates a trusted project with these files in its loops directory. */
export function projectOf(files: { readonly [name: string]: string | object }): Project {
  const cwd = mkdtempSync(join(tmpdir(), 'rondo-target-'));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  const loops = join(cwd, 'loops');
  const path = (name: string): string => join(loops, name);
  const write = (name: string, content: string | object): void => {
    mkdirSync(dirname(path(name)), { recursive: true });
    writeFileSync(path(name), typeof content === 'string' ? content : JSON.stringify(content));
    if (name.endsWith('.sh')) chmodSync(path(name), 0o755);
  };
  for (const [name, content] of Object.entries(files)) write(name, content);
  const inProcess: Project['inProcess'] = async (work) => {
    const settings = await loadSettings({
      flags: { store: `sqlite:${join(cwd, 'data', 'store.db')}`, trust: ['loops'] },
      env: {},
      cwd,
    });
    const { host, badFiles, close } = await composeHost(settings);
    try {
      if (badFiles.length > 0) throw new Error(JSON.stringify(badFiles));
      return await work(host);
    } finally {
      await close();
    }
  };
  const read = (name: string) => (existsSync(path(name)) ? readFileSync(path(name), 'utf8') : undefined);
  return { loops, path, write, read, inProcess };
}

/** Returns the definition of a tool that requires an approval. */
export const asking = (implementation: string, more: object = {}): object => ({
  id: 'act',
  name: 'Act',
  version: '1.0.0',
  inputSchema: true,
  outputSchema: true,
  kind: 'tool',
  tool: { implementation },
  policy: { approval: 'ask' },
  ...more,
});

/** Returns the only pending approval. */
export async function waiting(host: Host): Promise<Approval> {
  const [approval, ...more] = await host.archive.approvals();
  if (approval === undefined || more.length > 0)
    throw new Error(`Expected one pending approval, got ${more.length + Number(approval !== undefined)}.`);
  return approval;
}

/** Approves the pending approval and resumes the turn. Returns the status or the error code. */
export async function approved(host: Host, turnId: string, more: object = {}): Promise<string> {
  await host.answer({ id: (await waiting(host)).id, approved: true, by: 'ada', ...more });
  const result = await host.resume(turnId);
  return errorOf(result)?.code ?? result.status;
}
