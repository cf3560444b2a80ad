// What the tools did: one line per idempotency key in the file that LEDGER names.

import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** @param {object} input @param {{ idempotencyKey: string }} context */
export function record(input, { idempotencyKey: key }) {
  const file = process.env.LEDGER ?? 'ledger.ndjson';
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  // After a crash the tool is called again with the same key, and the line may exist already.
  if (!lines.some((line) => JSON.parse(line).key === key))
    appendFileSync(file, `${JSON.stringify({ key, ...input })}\n`);
  return { done: true };
}
