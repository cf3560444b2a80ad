/** How the tests of the examples run them: as they are, and as a twin with one definition changed for the worse. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Told {
  readonly status: number | null;
  readonly stdout: string;
}

const root = fileURLToPath(new URL('.', import.meta.url));

/** Runs the verifier of an example. */
export function verifyExample(name: string, ...args: string[]): Told {
  return spawnSync(process.execPath, [join(root, name, 'verify.mjs'), ...args], { encoding: 'utf8' });
}

/** Runs the verifier of an example over a copy of its definitions, with one text in one file changed. */
export function verifyTwin(name: string, file: string, text: string, changed: string): Told {
  // Inside the package, so that code among the definitions can import it by name.
  const loops = mkdtempSync(join(root, '..', 'dist', 'twin-'));
  try {
    cpSync(join(root, name, 'loops'), loops, { recursive: true });
    const before = readFileSync(join(loops, file), 'utf8');
    const after = before.replace(text, changed);
    if (after === before) throw new Error(`${file} of ${name} does not hold "${text}", so nothing was changed.`);
    writeFileSync(join(loops, file), after);
    return verifyExample(name, loops);
  } finally {
    rmSync(loops, { recursive: true });
  }
}
