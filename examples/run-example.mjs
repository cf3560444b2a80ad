/**
 * Runs the verifier of an example (02 and up) in a temporary directory. A verifier runs Rondo's command line from the
 * root of the repository and checks the results. The process exits with code 1 if a check fails.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** @typedef {{ code: number | null, stdout: string, stderr: string }} CommandResult */
/**
 * @typedef {object} ExampleContext
 * @property {string} loops The definitions: the directory `loops` of the example, or the one named on the command line.
 * @property {string} folder A temporary directory, removed when the verifier ends.
 * @property {(...args: string[]) => Promise<CommandResult>} rondo Runs a command line, and prints it with its output.
 * @property {(statement: string, isTrue: boolean) => void} check Prints a statement and whether it is true.
 */

const root = fileURLToPath(new URL('..', import.meta.url));
const command = join(root, 'lib', 'surfaces', 'cli', 'main.js');

/**
 * Runs a verifier.
 * @param {string} title
 * @param {string} exampleUrl The `import.meta.url` of the verifier.
 * @param {(context: ExampleContext) => Promise<void>} verify
 */
export async function runExample(title, exampleUrl, verify) {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-example-'));
  const loops = process.argv[2] ?? relative(root, fileURLToPath(new URL('loops', exampleUrl)));
  let failures = 0;
  /** @type {ExampleContext['check']} */
  const check = (statement, isTrue) => {
    if (!isTrue) failures += 1;
    console.log(`  ${isTrue ? '✓' : '✗'} ${statement}`);
  };
  console.log(title);
  try {
    if (!existsSync(command)) throw new Error('Rondo is not built yet: npm ci && npm run build');
    await verify({ loops, folder, check, rondo: (...args) => run(args, folder) });
  } catch (thrown) {
    check(thrown instanceof Error ? thrown.message : String(thrown), false);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
  console.log(failures === 0 ? '\nAll checks passed.' : `\nFailed checks: ${failures}.`);
  process.exitCode = failures === 0 ? 0 : 1;
}

/** @param {string[]} args @param {string} folder @returns {Promise<CommandResult>} */
async function run(args, folder) {
  const child = spawn(process.execPath, [command, ...args], { cwd: root, env: environmentFor(folder) });
  child.stdin.end();
  /** @type {Promise<number | null>} */
  const exited = new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  console.log(`\n  $ rondo ${args.map(quoteForShell).join(' ')}`);
  // JSON output is for the verifier only.
  const printed = (args.includes('--json') ? stderr : stderr + stdout).trimEnd();
  if (printed !== '') console.log(printed.replace(/^/gm, '    '));
  return { code, stdout, stderr };
}

/** Returns the environment without Rondo's variables, and with a separate data directory. @param {string} folder */
function environmentFor(folder) {
  const otherVariables = Object.entries(process.env).filter(([name]) => !name.startsWith('RONDO_'));
  return { ...Object.fromEntries(otherVariables), RONDO_DATA: join(folder, 'data') };
}

/** @param {string} argument */
function quoteForShell(argument) {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}
