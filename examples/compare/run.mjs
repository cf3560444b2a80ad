/**
 * Runs one version of a program of the comparison: `node examples/compare/run.mjs smallest-loop rondo`. The program is
 * compiled into a folder `dist`, where it finds its packages, and runs in a temporary directory.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** The last line that every version of a program prints. @type {Readonly<Record<string, string>>} */
export const RESULTS = {
  'smallest-loop': 'Hello Ada',
  'agent-approval': 'Your refund is on its way.',
  'durable-workflow': 'lamp for 5 lamp on Monday',
};

const root = fileURLToPath(new URL('../..', import.meta.url));
const programs = join(root, 'examples', 'compare');

/**
 * Runs a program and returns what it prints. Rejects if it exits with an error.
 * @param {string} program @param {string} version @returns {Promise<string>}
 */
export async function runProgram(program, version) {
  // The versions for Mastra have a package of their own.
  const dist = join(version === 'mastra' ? join(programs, version) : root, 'dist');
  mkdirSync(dist, { recursive: true });
  const compiled = mkdtempSync(join(dist, 'compare-'));
  const directory = mkdtempSync(join(tmpdir(), 'rondo-compare-'));
  try {
    for (const folder of ['shared', version]) compile(join(programs, folder), join(compiled, folder));
    const child = spawn(process.execPath, [join(compiled, version, `${program}.js`)], { cwd: directory });
    /** @type {Promise<number | null>} */
    const exited = new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
    if (code !== 0) throw new Error(`${version}/${program}.ts exited with ${code}:\n${stdout}${stderr}`);
    return stdout;
  } finally {
    for (const folder of [compiled, directory]) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Compiles the files of a folder one by one, without checking their types. @param {string} from @param {string} to */
function compile(from, to) {
  mkdirSync(to);
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023, verbatimModuleSyntax: true };
  for (const file of readdirSync(from).filter((name) => name.endsWith('.ts'))) {
    const { outputText } = ts.transpileModule(readFileSync(join(from, file), 'utf8'), { compilerOptions });
    writeFileSync(join(to, file.replace(/\.ts$/, '.js')), outputText);
  }
}

const [, script, program, version] = process.argv;
if (script === fileURLToPath(import.meta.url) && program !== undefined && version !== undefined) {
  process.stdout.write(await runProgram(program, version));
}
