/** Access to the receipts of a host, and the files that hold receipts. */
import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { LoopError } from '../../base/errors.js';
import type { Host } from '../../host/host.js';
import type { ReceiptArchive } from '../../host/receipts/receipt-archive.js';
import type { ReceiptVerdict, VerdictScope, VerdictSubject } from '../../protocol/receipt.js';
import { UsageError } from '../settings.js';
import type { Terminal } from './terminal.js';
import { sanitizeText } from './terminal-text.js';
import { exitCodes } from './verb.js';

/** The maximum size of a file that is read as a whole; a receipt of runx is smaller. */
const MAX_WHOLE_BYTES = 16 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;

/** Returns the receipts of a host. Throws RECEIPT_NOT_FOUND if its store makes none. */
export function receiptsOf({ receipts }: Host): ReceiptArchive {
  if (receipts !== undefined) return receipts;
  throw new LoopError(
    'RECEIPT_NOT_FOUND',
    'There are no receipts: the project has no store yet, or its store is not durable. A run creates a durable store unless another is chosen.',
  );
}

/** Returns the bytes of a file of receipts: all, or those of a large file in parts. Throws a UsageError if it cannot. */
export function readReceiptFile(file: string): Buffer | Iterable<Buffer> {
  return readable(file, () => (statSync(file).size > MAX_WHOLE_BYTES ? chunksOf(file) : readFileSync(file)));
}

function* chunksOf(file: string): Generator<Buffer> {
  const descriptor = readable(file, () => openSync(file, 'r'));
  try {
    for (;;) {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      const length = readable(file, () => readSync(descriptor, chunk));
      if (length === 0) return;
      yield chunk.subarray(0, length);
    }
  } finally {
    closeSync(descriptor);
  }
}

function readable<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    throw new UsageError(`${file} cannot be read: ${thrown instanceof Error ? thrown.message : String(thrown)}.`);
  }
}

/** Prints a verdict and returns the exit code: 3 if something is wrong or known to be missing. */
export async function printVerdict(verdict: ReceiptVerdict, terminal: Terminal, json: boolean): Promise<number> {
  const { valid, complete, checks, reasons, trust } = verdict;
  const isPassed = valid && complete !== false;
  const isEmpty = verdict.subject.file === undefined && reasons.length === 1 && reasons[0] === 'bundle_empty';
  if (json) await terminal.printJson(verdict);
  else if (isEmpty) await terminal.print('There are no receipts, so nothing was verified.\n');
  else {
    const lines = checks.map(({ name, ok, note }) => {
      const isUnsure = ok && name === 'completeness' && complete === 'unknown';
      const mark = isUnsure ? 'unsure' : ok ? 'ok    ' : 'FAILED';
      return sanitizeText(`${mark}  ${name}${note === undefined ? '' : `: ${note.replace(/^unknown: /, '')}`}`);
    });
    await terminal.print(`${[...lines, subjectOf(verdict.subject), summaryOf(verdict)].join('\n')}\n`);
    if (reasons.length > 0) terminal.printToStderr(`Reasons: ${reasons.join(', ')}`);
    if (trust === 'store')
      terminal.printToStderr('The keys are those of the store itself. To choose whom to trust, pass --keys FILE.');
  }
  return isPassed ? exitCodes.ok : exitCodes.unverified;
}

/** Says what a verdict is about. */
function subjectOf({ sessions, receipts, log, file, session, turn, hostedLoop }: VerdictSubject): string {
  const counted = `${receipts} ${receipts === 1 ? 'receipt' : 'receipts'} of ${sessions} ${sessions === 1 ? 'session' : 'sessions'}`;
  const place =
    file !== undefined
      ? `in the file ${file}`
      : turn !== undefined
        ? `in the store, for turn ${turn} of session ${session}`
        : session !== undefined
          ? `in the store, for session ${session}`
          : hostedLoop !== undefined
            ? `in the store, for the hosted loop ${hostedLoop}`
            : 'in the store';
  return sanitizeText(`Checked: ${counted} ${place}${log === undefined ? '' : `; the log has ${log}`}`);
}

function summaryOf({ valid, complete, scope }: ReceiptVerdict): string {
  if (!valid) return 'NOT VALID';
  if (complete === true) return sanitizeText(`valid and complete${scope === undefined ? '' : scopeText(scope)}`);
  return complete === false ? 'valid, but receipts are MISSING' : 'valid so far, completeness unknown';
}

function scopeText({ session, sessions, asOf }: VerdictScope): string {
  const part =
    session !== undefined
      ? `session ${session}`
      : sessions !== undefined
        ? `${sessions.length} sessions`
        : 'the whole store';
  return ` for ${part}, as of receipt ${asOf} of the log`;
}
