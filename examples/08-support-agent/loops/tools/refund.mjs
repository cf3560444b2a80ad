// Money goes out: a line in the ledger, one for each idempotency key. The file is named by LEDGER, or ledger.ndjson.

import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** @param {{ order: string, amount: number }} input @param {{ idempotencyKey: string }} call */
export function refund({ order, amount }, { idempotencyKey: key }) {
  const file = process.env.LEDGER ?? 'ledger.ndjson';
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  const known = lines.findIndex((line) => JSON.parse(line).key === key);
  // After a crash nobody knows whether the line was written, so the tool is called again, with the same key.
  if (known === -1) appendFileSync(file, `${JSON.stringify({ key, order, amount })}\n`);
  return { receipt: `R-${known === -1 ? lines.length + 1 : known + 1}`, order, amount };
}
