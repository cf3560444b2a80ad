/**
 * What examples 02 and up stand on: a story is told in a folder of its own, runs Rondo as a person would from the root
 * of the repository, says what must hold, and ends with code 1 if something does not.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** @typedef {{ code: number | null, stdout: string, stderr: string }} Ended */
/**
 * @typedef {object} Stage
 * @property {string} loops The definitions of the example: its folder `loops`, or the one named on the command line.
 * @property {string} folder For the files of this story; it goes when the story ends.
 * @property {(...args: string[]) => Promise<Ended>} rondo Runs a command line and shows it with what it printed.
 * @property {(what: string, is: boolean) => void} holds Says what must hold, and whether it does.
 */

const root = fileURLToPath(new URL('..', import.meta.url));
const command = join(root, 'lib', 'surfaces', 'cli', 'main.js');

/** Tells a story; `here` is the address of the example. @param {string} title @param {string} here @param {(stage: Stage) => Promise<void>} story */
export async function tell(title, here, story) {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-example-'));
  const loops = process.argv[2] ?? relative(root, fileURLToPath(new URL('loops', here)));
  let faults = 0;
  /** @type {Stage['holds']} */
  const holds = (what, is) => {
    if (!is) faults += 1;
    console.log(`  ${is ? '✓' : '✗'} ${what}`);
  };
  console.log(title);
  try {
    if (!existsSync(command)) throw new Error('Rondo is not built yet: npm ci && npm run build');
    await story({ loops, folder, holds, rondo: (...args) => run(args, folder) });
  } catch (thrown) {
    holds(thrown instanceof Error ? thrown.message : String(thrown), false);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
  console.log(faults === 0 ? '\nIt holds.' : '\nIt does not hold.');
  process.exitCode = faults === 0 ? 0 : 1;
}

/** @param {string[]} args @param {string} folder @returns {Promise<Ended>} */
async function run(args, folder) {
  const child = spawn(process.execPath, [command, ...args], { cwd: root, env: environment(folder) });
  child.stdin.end();
  /** @type {Promise<number | null>} */
  const exited = new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  console.log(`\n  $ rondo ${args.map(quoted).join(' ')}`);
  // A document for programs is for the story to read.
  const shown = (args.includes('--json') ? stderr : stderr + stdout).trimEnd();
  if (shown !== '') console.log(shown.replace(/^/gm, '    '));
  return { code, stdout, stderr };
}

/** Nothing that the reader has set for other projects, and a journal of its own. @param {string} folder */
function environment(folder) {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith('RONDO_'));
  return { ...Object.fromEntries(others), RONDO_DATA: join(folder, 'data') };
}

/** @param {string} word */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
