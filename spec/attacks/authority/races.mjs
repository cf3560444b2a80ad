// Files that are swapped while an approved call starts: only the approved bytes run, at any timing.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createHost, expect, singleToolAgent, toolboxLibrary } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

const swapper = fileURLToPath(new URL('file-swapper.mjs', import.meta.url));
/** The duration of a race. */
const RACE_MS = 12_000;

/**
 * Starts to swap files: `files` lists triples of a target path and two files. Returns a function that stops it.
 * @param {AuthorityFixture} fixture
 * @param {string} how
 * @param {readonly string[]} files
 */
async function startSwapping(fixture, how, ...files) {
  const child = spawn(process.execPath, [swapper, how, ...files], { stdio: ['ignore', 'pipe', 'ignore'] });
  fixture.atEnd(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return async () => {
    child.kill('SIGKILL');
    await once(child, 'close');
  };
}

/**
 * Runs, approves and resumes calls until the time is over; `inspect` receives each approval and result.
 * @param {any} host
 * @param {string} loop
 * @param {(round: number) => Promise<object> | object} inputOf
 * @param {(round: number, approval: any, result: any) => void} inspect
 */
async function runRounds(host, loop, inputOf, inspect) {
  const until = performance.now() + RACE_MS;
  for (let n = 0; performance.now() < until; n++) {
    const input = await inputOf(n);
    const paused = await host.run({ loop, input, sessionId: `s${n}` });
    if (paused.status !== 'paused') continue;
    const [approval] = await host.archive.approvals(`s${n}`);
    await host.answer({ id: approval.id, approved: true, by: 'ada' });
    inspect(n, approval, await host.resume(paused.turnId));
  }
}

/**
 * A program is swapped while approved calls start: only the approved bytes run.
 * @param {AuthorityFixture} fixture
 * @param {string} how
 */
async function execRace(fixture, how) {
  const { host, registry } = await createHost();
  const target = fixture.write('loops/tool.sh', fixture.shell('A'), 0o755);
  const other = fixture.write('loops/other.sh', fixture.shell('B'), 0o755);
  const one = fixture.path('loops/one.sh');
  copyFileSync(target, one);
  const def = { id: 'pay', name: 'pay', version: '1.0.0', kind: 'tool', inputSchema: {}, outputSchema: true };
  const tool = { implementation: 'exec:./tool.sh' };
  registry.add({ ...def, tool, policy: { approval: 'ask' } }, { directory: fixture.path('loops'), trusted: true });
  const { createHash } = await import('node:crypto');
  const letters = new Map(
    [one, other].map((file, n) => [createHash('sha256').update(readFileSync(file)).digest('hex'), 'AB'[n]]),
  );
  const stop = await startSwapping(fixture, how, target, one, other);
  const violations = [];
  let ran = 0;
  await runRounds(
    host,
    'pay',
    () => ({}),
    (_, { target: approvedTarget }, { output }) => {
      if (output === undefined) return;
      ran += 1;
      const approved = letters.get(approvedTarget.sha256);
      if (output.ran !== approved) violations.push(`${approved} was approved, ${output.ran} ran`);
    },
  );
  await stop();
  expect(
    violations.length === 0,
    'only the approved bytes to run',
    `${violations.length} of ${ran} runs: ${violations[0]}`,
  );
}

const MODULE_COUNT = 6;

/**
 * Several modules are swapped from their approval on: only the approved bytes are executed.
 * @param {AuthorityFixture} fixture
 */
async function moduleRace(fixture) {
  const { host, registry } = await createHost();
  const def = { name: 'pay', version: '1.0.0', kind: 'tool', inputSchema: {}, outputSchema: true };
  const names = Array.from({ length: MODULE_COUNT }, (_, n) => `pay${n}`);
  for (const id of names) {
    const tool = { implementation: `module:./${id}.mjs#run` };
    registry.add(
      { ...def, id, tool, policy: { approval: 'ask' } },
      { directory: fixture.path('loops'), trusted: true },
    );
  }
  const until = performance.now() + RACE_MS;
  let round = 0;
  for (; performance.now() < until && fixture.executed().every((line) => !line.includes('B')); round++) {
    const sets = names.map((id) => {
      const one = fixture.write(`loops/one/${id}-${round}.mjs`, fixture.module(`A ${id} ${round}`));
      const other = fixture.write(`loops/other/${id}-${round}.mjs`, fixture.module(`B ${id} ${round}`));
      const target = fixture.path(`loops/${id}.mjs`);
      copyFileSync(one, `${target}.x`);
      renameSync(`${target}.x`, target);
      return [target, one, other];
    });
    const turns = [];
    for (const id of names) {
      const { turnId, sessionId } = await host.run({ loop: id, input: {}, sessionId: `${id}-${round}` });
      const [approval] = await host.archive.approvals(sessionId);
      await host.answer({ id: approval.id, approved: true, by: 'ada' });
      turns.push(turnId);
    }
    const stop = await startSwapping(fixture, 'link', ...sets.flat());
    await Promise.all(turns.map((turnId) => host.resume(turnId)));
    await stop();
  }
  const violations = fixture.executed().filter((line) => line.includes('B'));
  expect(violations.length === 0, 'only the approved bytes to be executed', `round ${round}: ${violations.join(', ')}`);
}

/**
 * A directory or file is repeatedly replaced by a link to the outside: nothing outside is written.
 * @param {AuthorityFixture} fixture
 * @param {'directory' | 'file'} kind
 * @param {'write_file' | 'edit_file'} name
 */
async function fileRace(fixture, kind, name) {
  const { toolbox } = await toolboxLibrary();
  const { host } = await createHost();
  const rootDirectory = fixture.path('work');
  mkdirSync(join(rootDirectory, 'd'), { recursive: true });
  writeFileSync(join(rootDirectory, 'd/f.txt'), 'inside');
  mkdirSync(join(fixture.outside, 'd'), { recursive: true });
  writeFileSync(join(fixture.outside, 'd/f.txt'), 'inside');
  const tool = toolbox({ roots: [rootDirectory] })[name];
  const target = join(rootDirectory, kind === 'directory' ? 'd' : 'd/f.txt');
  const outside = join(fixture.outside, kind === 'directory' ? 'd' : 'd/f.txt');
  const original = `${target}.keep`;
  const violations = [];
  const loop = await singleToolAgent(tool);
  const swap = spawn(process.execPath, ['-e', SWAP, target, original, outside], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  fixture.atEnd(() => swap.kill('SIGKILL'));
  await once(swap.stdout, 'data');
  const inputOf = () =>
    name === 'write_file' ? { path: 'd/f.txt', content: 'evil' } : { path: 'd/f.txt', old: 'inside', new: 'evil' };
  await runRounds(host, loop, inputOf, (n) => {
    const content = readFileSync(join(fixture.outside, 'd/f.txt'), 'utf8');
    if (content !== 'inside') violations.push(`round ${n}: ${content}`);
  });
  swap.kill('SIGKILL');
  rmSync(original, { force: true, recursive: true });
  expect(
    violations.length === 0 && existsSync(join(fixture.outside, 'd/f.txt')),
    'nothing outside to be written',
    violations[0],
  );
}

/** A script that repeatedly replaces a file by a link and restores it. */
const SWAP = `const { renameSync, symlinkSync, unlinkSync } = require('fs');
const [, target, original, outside] = process.argv; process.stdout.write('ready');
for (;;) { try { renameSync(target, original); symlinkSync(outside, target); } catch {} try { unlinkSync(target); } catch {} try { renameSync(original, target); } catch {} }`;

/** @returns {import('../runner.mjs').Case[]} */
export const cases = () => [
  { id: 'approvals.race.exec.link', run: (fixture) => execRace(fixture, 'link') },
  { id: 'approvals.race.exec.symlink', run: (fixture) => execRace(fixture, 'symlink') },
  { id: 'approvals.race.module', run: moduleRace },
  ...['write_file', 'edit_file'].flatMap((name) =>
    ['directory', 'file'].map((kind) => ({
      id: `targets.race.${name}.${kind}`,
      run: (/** @type {AuthorityFixture} */ fixture) =>
        fileRace(fixture, /** @type {any} */ (kind), /** @type {any} */ (name)),
    })),
  ),
];
