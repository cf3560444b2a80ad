// Pays a refund: appends one line per idempotency key to the ledger, the file LEDGER or ledger.ndjson.

import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** @param {{ order: string, amount: number }} input @param {{ idempotencyKey: string }} context */
export function refund({ order, amount }, { idempotencyKey: key }) {
  const file = process.env.LEDGER ?? 'ledger.ndjson';
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  const index = lines.findIndex((line) => JSON.parse(line).key === key);
  // After a crash the tool is called again with the same key, and the line may exist already.
  if (index === -1) appendFileSync(file, `${JSON.stringify({ key, order, amount })}\n`);
  return { receipt: `R-${index === -1 ? lines.length + 1 : index + 1}`, order, amount };
}
