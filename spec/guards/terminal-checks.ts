// Checks of what commands write: no text controls the terminal, and a truncated write is an error.

import { execFile } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { attacks, HARMFUL, withoutStyles } from '../cli/attacks.js';
import type { LibraryParts } from './library.js';

export const terminalParts: LibraryParts = [
  'surfaces/cli/terminal.js',
  'surfaces/cli/output.js',
  'base/escape-text.js',
];

type TerminalLibrary = typeof import('../../src/surfaces/cli/terminal.js') &
  typeof import('../../src/surfaces/cli/output.js') &
  typeof import('../../src/base/escape-text.js') & { readonly folder: string };

type Terminal = InstanceType<TerminalLibrary['Terminal']>;

const hostile = attacks.filter((attack) => attack.length < 100);

/** Returns everything that is written to both streams, without the colors of the command line. */
async function outputOf(
  { Terminal }: TerminalLibrary,
  isTTY: boolean,
  write: (terminal: Terminal) => unknown,
): Promise<string> {
  const pieces: string[] = [];
  const stream = () =>
    Object.assign(
      new Writable({
        write: (piece, _encoding, done) => {
          pieces.push(String(piece));
          done();
        },
      }),
      { isTTY, columns: 10_000 },
    );
  const terminal = new Terminal({ stdin: process.stdin, stdout: stream(), stderr: stream(), env: {}, cwd: '/' });
  await write(terminal);
  await terminal.flush();
  return withoutStyles(pieces.join(''));
}

/** Checks each hostile text, on a terminal and elsewhere. `ownOutput` is what the command line adds to it. */
async function checkHarmless(
  library: TerminalLibrary,
  write: (terminal: Terminal, text: string) => unknown,
  ownOutput = '',
): Promise<void> {
  for (const isTTY of [true, false]) {
    for (const text of hostile) {
      const output = await outputOf(library, isTTY, (terminal) => write(terminal, text));
      expect(output.replace(ownOutput, ''), JSON.stringify(text)).not.toMatch(HARMFUL);
    }
  }
}

/** Returns a program that writes a document to its stdout, as the command line does, and exits with 70 on failure. */
const program = (folder: string): string => `
import { createOutput } from ${JSON.stringify(pathToFileURL(join(folder, 'surfaces/cli/output.js')).href)};
const output = createOutput(process.stdout);
output.on('error', () => undefined);
output.write('x'.repeat(500_000), (error) => process.exit(error ? 70 : 0));
`;

export const terminalChecks = {
  'an answer cannot control the terminal': (library: TerminalLibrary) =>
    checkHarmless(library, (terminal, text) => terminal.print(text)),
  'a message cannot control the terminal': (library: TerminalLibrary) =>
    checkHarmless(library, (terminal, text) => terminal.printToStderr(text)),
  'a progress line cannot control the terminal beyond its line': (library: TerminalLibrary) =>
    checkHarmless(library, (terminal, text) => terminal.showProgress(text), '\r\u001b[2K'),
  'JSON output cannot control the terminal, and keeps its value': async (library: TerminalLibrary) => {
    for (const isTTY of [true, false]) {
      for (const text of hostile) {
        const output = await outputOf(library, isTTY, (terminal) => terminal.printJson({ [text]: text }));
        expect(output).not.toMatch(HARMFUL);
        expect(JSON.parse(output)).toEqual({ [text]: text });
      }
    }
  },
  'an approval shows every invisible character': async ({ escapeForDisplay }: TerminalLibrary) => {
    for (const text of hostile)
      expect(escapeForDisplay(text, 1000).replaceAll('\t', ''), JSON.stringify(text)).not.toMatch(HARMFUL);
  },
  'a document that a full disk truncates is an error': async ({ folder }: TerminalLibrary) => {
    const directory = mkdtempSync(join(tmpdir(), 'rondo-output-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    writeFileSync(join(directory, 'write.mjs'), program(folder));
    // With a limit on the size of files, the first write is short, as on a disk that is almost full.
    const line = 'trap "" XFSZ; ulimit -f 8; "$NODE" write.mjs > out.json; echo $?';
    const code = await new Promise<string>((resolve) => {
      const env = { PATH: process.env.PATH, NODE: process.execPath };
      execFile('bash', ['-c', line], { cwd: directory, env }, (_error, stdout) => resolve(stdout.trim()));
    });
    expect(statSync(join(directory, 'out.json')).size).toBeLessThan(500_000);
    expect(code).toBe('70');
  },
  'a write without progress is an error': async ({ createOutput }: TerminalLibrary) => {
    const descriptor = openSync('/dev/null', 'w');
    let calls = 0;
    const write = (): number => {
      calls += 1;
      if (calls > 3) throw new Error('the write is repeated without progress');
      return 0;
    };
    const output = createOutput(Object.assign(new Writable(), { fd: descriptor }), write);
    const error = await new Promise<Error>((resolve) => output.once('error', resolve).write('x'));
    closeSync(descriptor);
    expect(error.message).toBe('ENOSPC: nothing was written');
  },
} satisfies Record<string, (library: TerminalLibrary) => Promise<void>>;
