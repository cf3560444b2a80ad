// Files that are swapped while an approved call begins: what runs must be what was approved, however the moments fall.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, handOf, hostOf, toolboxLibrary } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

const flipper = fileURLToPath(new URL('flipper.mjs', import.meta.url));
const MS = 12_000;

/** Swaps files; each set is a place and the two files for it. @param {World} world @param {string} how @param {readonly string[]} files */
async function flipping(world, how, ...files) {
  const child = spawn(process.execPath, [flipper, how, ...files], { stdio: ['ignore', 'pipe', 'ignore'] });
  world.atEnd(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return async () => {
    child.kill('SIGKILL');
    await once(child, 'close');
  };
}

/** Asks, answers and goes on, again and again; `look` is told of each call. @param {any} host @param {string} loop @param {(round: number) => Promise<object> | object} begin @param {(round: number, asked: any, result: any) => void} look */
async function rounds(host, loop, begin, look) {
  const until = performance.now() + MS;
  for (let n = 0; performance.now() < until; n++) {
    const input = await begin(n);
    const paused = await host.run({ loop, input, sessionId: `s${n}` });
    if (paused.status !== 'paused') continue;
    const [asked] = await host.archive.approvals(`s${n}`);
    await host.answer({ id: asked.id, approved: true, by: 'ada' });
    look(n, asked, await host.resume(paused.turnId));
  }
}

/** @param {World} world @param {string} how */
async function execRace(world, how) {
  const { host, registry } = await hostOf();
  const place = world.write('loops/tool.sh', world.shell('A'), 0o755);
  const other = world.write('loops/other.sh', world.shell('B'), 0o755);
  const one = world.path('loops/one.sh');
  copyFileSync(place, one);
  const def = { id: 'pay', name: 'pay', version: '1.0.0', kind: 'tool', inputSchema: {}, outputSchema: true };
  const tool = { implementation: 'exec:./tool.sh' };
  registry.add({ ...def, tool, policy: { approval: 'ask' } }, { directory: world.path('loops'), trusted: true });
  const { createHash } = await import('node:crypto');
  const letters = new Map(
    [one, other].map((file, n) => [createHash('sha256').update(readFileSync(file)).digest('hex'), 'AB'[n]]),
  );
  const stop = await flipping(world, how, place, one, other);
  const wrong = [];
  let ran = 0;
  await rounds(
    host,
    'pay',
    () => ({}),
    (_, { target }, { output }) => {
      if (output === undefined) return;
      ran += 1;
      const approved = letters.get(target.sha256);
      if (output.ran !== approved) wrong.push(`${approved} was approved, ${output.ran} ran`);
    },
  );
  await stop();
  expect(wrong.length === 0, 'only the approved bytes to run', `${wrong.length} of ${ran} runs: ${wrong[0]}`);
}

const TOGETHER = 6;

/** Several approved modules, each quiet while it is asked about, and swapped from the answer on. @param {World} world */
async function moduleRace(world) {
  const { host, registry } = await hostOf();
  const def = { name: 'pay', version: '1.0.0', kind: 'tool', inputSchema: {}, outputSchema: true };
  const names = Array.from({ length: TOGETHER }, (_, n) => `pay${n}`);
  for (const id of names) {
    const tool = { implementation: `module:./${id}.mjs#run` };
    registry.add({ ...def, id, tool, policy: { approval: 'ask' } }, { directory: world.path('loops'), trusted: true });
  }
  const until = performance.now() + MS;
  let rounds = 0;
  for (; performance.now() < until && world.executed().every((line) => !line.includes('B')); rounds++) {
    const sets = names.map((id) => {
      const one = world.write(`loops/one/${id}-${rounds}.mjs`, world.module(`A ${id} ${rounds}`));
      const other = world.write(`loops/other/${id}-${rounds}.mjs`, world.module(`B ${id} ${rounds}`));
      const place = world.path(`loops/${id}.mjs`);
      copyFileSync(one, `${place}.x`);
      renameSync(`${place}.x`, place);
      return [place, one, other];
    });
    const turns = [];
    for (const id of names) {
      const { turnId, sessionId } = await host.run({ loop: id, input: {}, sessionId: `${id}-${rounds}` });
      const [asked] = await host.archive.approvals(sessionId);
      await host.answer({ id: asked.id, approved: true, by: 'ada' });
      turns.push(turnId);
    }
    const stop = await flipping(world, 'link', ...sets.flat());
    await Promise.all(turns.map((turnId) => host.resume(turnId)));
    await stop();
  }
  const wrong = world.executed().filter((line) => line.includes('B'));
  expect(wrong.length === 0, 'only the approved bytes to be executed', `round ${rounds}: ${wrong.join(', ')}`);
}

/** A directory or a file of a root that flips between itself and a link to the outside. @param {World} world @param {'directory' | 'file'} what @param {'write_file' | 'edit_file'} name */
async function fileRace(world, what, name) {
  const { toolbox } = await toolboxLibrary();
  const { host } = await hostOf();
  const rootDirectory = world.path('work');
  mkdirSync(join(rootDirectory, 'd'), { recursive: true });
  writeFileSync(join(rootDirectory, 'd/f.txt'), 'inside');
  mkdirSync(join(world.outside, 'd'), { recursive: true });
  writeFileSync(join(world.outside, 'd/f.txt'), 'inside');
  const tool = toolbox({ roots: [rootDirectory] })[name];
  const place = join(rootDirectory, what === 'directory' ? 'd' : 'd/f.txt');
  const outer = join(world.outside, what === 'directory' ? 'd' : 'd/f.txt');
  const keep = `${place}.keep`;
  const wrong = [];
  const loop = await handOf(tool);
  const swap = spawn(process.execPath, ['-e', SWAP, place, keep, outer], { stdio: ['ignore', 'pipe', 'ignore'] });
  world.atEnd(() => swap.kill('SIGKILL'));
  await once(swap.stdout, 'data');
  const begin = () =>
    name === 'write_file' ? { path: 'd/f.txt', content: 'evil' } : { path: 'd/f.txt', old: 'inside', new: 'evil' };
  await rounds(host, loop, begin, (n) => {
    const outside = readFileSync(join(world.outside, 'd/f.txt'), 'utf8');
    if (outside !== 'inside') wrong.push(`round ${n}: ${outside}`);
  });
  swap.kill('SIGKILL');
  rmSync(keep, { force: true, recursive: true });
  expect(wrong.length === 0 && existsSync(join(world.outside, 'd/f.txt')), 'nothing outside to be written', wrong[0]);
}

/** Puts a link in place of what is there, and what was there back again. */
const SWAP = `const { renameSync, symlinkSync, unlinkSync } = require('fs');
const [, place, keep, outer] = process.argv; process.stdout.write('ready');
for (;;) { try { renameSync(place, keep); symlinkSync(outer, place); } catch {} try { unlinkSync(place); } catch {} try { renameSync(keep, place); } catch {} }`;

/** @returns {import('../authority.mjs').Case[]} */
export const cases = () => [
  { id: 'approvals.race.exec.link', run: (world) => execRace(world, 'link') },
  { id: 'approvals.race.exec.symlink', run: (world) => execRace(world, 'symlink') },
  { id: 'approvals.race.module', run: moduleRace },
  ...['write_file', 'edit_file'].flatMap((name) =>
    ['directory', 'file'].map((what) => ({
      id: `targets.race.${name}.${what}`,
      run: (/** @type {World} */ world) => fileRace(world, /** @type {any} */ (what), /** @type {any} */ (name)),
    })),
  ),
];
