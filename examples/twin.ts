/** Runs the verifiers of the examples for tests, with their own definitions or with one text of them replaced. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface VerifierResult {
  readonly status: number | null;
  readonly stdout: string;
}

const root = fileURLToPath(new URL('.', import.meta.url));

/** Runs the verifier of an example: `run.sh` or `verify.mjs`. */
export function verifyExample(name: string, ...args: string[]): VerifierResult {
  const script = join(root, name, 'run.sh');
  if (existsSync(script)) return spawnSync('sh', [script, ...args], { encoding: 'utf8' });
  return spawnSync(process.execPath, [join(root, name, 'verify.mjs'), ...args], { encoding: 'utf8' });
}

/** Runs the verifier of an example on a broken twin: a copy of its definitions with one text replaced in one file. */
export function verifyTwin(name: string, file: string, text: string, replacement: string): VerifierResult {
  // The copy is inside the package, so that code in it can import the package by name.
  const loops = mkdtempSync(join(root, '..', 'dist', 'twin-'));
  try {
    cpSync(join(root, name, 'loops'), loops, { recursive: true });
    const before = readFileSync(join(loops, file), 'utf8');
    const after = before.replace(text, replacement);
    if (after === before) throw new Error(`${file} of ${name} does not contain "${text}", so nothing was replaced.`);
    writeFileSync(join(loops, file), after);
    return verifyExample(name, loops);
  } finally {
    rmSync(loops, { recursive: true });
  }
}
