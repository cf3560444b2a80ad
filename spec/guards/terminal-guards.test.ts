// The guards of what verbs write, each broken in turn.

import type { RequirementId } from '../requirements.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';
import { type Writing, writing, writingChecks } from './terminal-checks.js';

type Promised = keyof typeof writingChecks;

function guard(id: RequirementId, promise: Promised, file: string, from: string, to: string): Guard<Writing> {
  return { id, disaster: promise, check: writingChecks[promise], file, from, to };
}

const cli = 'surfaces/cli';

proveGuards(
  () => new Workshop<Writing>(writing),
  [
    guard(
      'cli.escape',
      'an answer controls no terminal',
      `${cli}/terminal.ts`,
      'handOver(stdout, printable(text, this.look(stdout).color))',
      'handOver(stdout, text)',
    ),
    guard(
      'cli.escape',
      'an answer controls no terminal',
      `${cli}/paint.ts`,
      '\\\\[(?:1|2|22|31|32|33|36|39)m',
      '\\\\[[0-9;]*[A-Za-z]',
    ),
    guard(
      'cli.escape',
      'a message controls no terminal',
      `${cli}/terminal.ts`,
      'printable(`${line}\\n`, this.look(stderr).color)',
      '`${line}\\n`',
    ),
    guard(
      'cli.escape',
      'a display of progress controls no terminal beyond its line',
      `${cli}/terminal.ts`,
      'cut(printable(text, false), ',
      'cut(text, ',
    ),
    guard(
      'cli.escape',
      'JSON controls no terminal, and is the same value',
      `${cli}/terminal.ts`,
      "return escapeJson(JSON.stringify(value, null, indent) ?? 'null');",
      "return JSON.stringify(value, null, indent) ?? 'null';",
    ),
    guard(
      'cli.escape',
      'JSON controls no terminal, and is the same value',
      'base/shown.ts',
      '\\\\p{Default_Ignorable_Code_Point}',
      '',
    ),
    guard(
      'approval.display',
      'what a person approves is shown with everything that is hidden in it',
      'base/shown.ts',
      'return text.replace(ESCAPED, (character) =>',
      'return text.replace(/\\u001b/g, (character) =>',
    ),
    guard(
      'cli.output',
      'a document that a full disk cuts off is an error',
      `${cli}/output.ts`,
      'at += written;',
      'at = bytes.length;',
    ),
    guard(
      'cli.output',
      'a document that a full disk cuts off is an error',
      `${cli}/output.ts`,
      'isFile(stream.fd) ? new FileOutput(stream.fd, write) : stream',
      'isFile(stream.fd) ? stream : stream',
    ),
    guard(
      'cli.output',
      'a file that takes nothing more is an error',
      `${cli}/output.ts`,
      'if (written === 0) throw',
      'if (written < 0) throw',
    ),
  ],
);
