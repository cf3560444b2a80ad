import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';

verifies('docs.reference', 'the pages of the API reference are those that the comments of the code produce', () => {
  const script = fileURLToPath(new URL('../../scripts/api-reference.mjs', import.meta.url));
  expect(() => execFileSync(process.execPath, [script, '--check'], { encoding: 'utf8' })).not.toThrow();
});
