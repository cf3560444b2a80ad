import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample } from '../twin.js';

const exampleFolder = fileURLToPath(new URL('.', import.meta.url));

verifies('lsem.suite.driver', 'the example driver connects the suite to a runtime in another process', () => {
  const { status, stdout } = verifyExample('09-conformance');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('All checks passed.');
});

verifies('example.runs', 'the conformance example fails when its runtime skips the check of outputs', () => {
  const folder = mkdtempSync(join(exampleFolder, '..', '..', 'dist', 'twin-'));
  try {
    cpSync(exampleFolder, folder, { recursive: true });
    const runtime = join(folder, 'runtime.mjs');
    const before = readFileSync(runtime, 'utf8');
    const after = before.replace("check(loop.outputSchema, output, 'OUTPUT')", "check(true, output, 'OUTPUT')");
    expect(after).not.toBe(before);
    writeFileSync(runtime, after);
    const { status, stdout } = verifyExample('09-conformance', join(folder, 'driver.mjs'));
    expect(status, stdout).toBe(1);
    expect(stdout).toContain('✗ it is conformant');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
