/** `run_command`: a command line, confined, in bounds, with its exit code as a result: that a test fails is no failure of ours. */
import { mkdtemp, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { type Redactor, redactorOf } from '../../base/redact.js';
import { isSecretVariable } from '../../base/secret-parts.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import { type Answer, actingTool, type BoxTool } from './box.js';
import { type Ending, type Program, run } from './child.js';
import { runExposed } from './exposure.js';
import { type Fitting, inputOf } from './input.js';
import { limitsOf, sizeOf } from './limits.js';
import type { CommandOptions } from './options.js';
import { notApproved, refusal } from './refusal.js';
import { assertApproved, type Roots } from './roots.js';
import { HOME, PATH, sandboxed, shell, usable } from './sandbox.js';

const TIMEOUT = 120_000;
const OUTPUT = 64 * 1024;

const inputSchema = inputOf({
  command: { type: 'string', min: 1, max: 20_000, description: 'What /bin/sh is to run.' },
  directory: { type: 'string', optional: true, description: 'Where it runs; the first root unless told.' },
  timeoutSeconds: {
    type: 'integer',
    optional: true,
    min: 1,
    max: 3600,
    description: 'When it is killed, if sooner than usual.',
  },
});

type Running = Fitting<typeof inputSchema>;

/** A program, and what its output must not tell. */
interface Command extends Program {
  readonly secrets: Redactor;
}

export function runCommand(roots: Roots, options: CommandOptions = {}): BoxTool<Running> {
  return actingTool({
    name: 'run_command',
    description:
      'Runs a command line with /bin/sh and answers with its exit code and what it printed. ' +
      'It sees the system’s programs and the roots, nothing is on its stdin, and nothing that it starts outlives it.',
    inputSchema,
    safety: 'once',
    ask: async ({ command, directory = '.' }) => {
      const how = confinementOf(await sandboxOf(options), options);
      return `Run in ${roots.shown(await realDirectory(roots, directory))}, ${how}:\n${command}`;
    },
    target: async ({ directory = '.' }) => {
      const confinement = confinementOf(await sandboxOf(options), options);
      const path = await realDirectory(roots, directory);
      return {
        kind: 'directory',
        path,
        confinement,
        ...(!roots.isOwnPath(directory, path) && { isLinked: true }),
      };
    },
    execute: async (input, { abortSignal, onToolOutputDelta, approvedTarget }) => {
      if (input.command.includes('\0')) throw refusal('command has a NUL character in it, which no command line has.');
      // Each root is still where it was: whatever stands there now is what the sandbox shows.
      for (const root of roots.all) await realDirectory(roots, root);
      const directory = await realDirectory(roots, input.directory ?? '.');
      const bubblewrap = await sandboxOf(options);
      assertApproved(input.directory ?? '.', approvedTarget, directory);
      assertConfined(approvedTarget, confinementOf(bubblewrap, options));
      const limit = options.timeoutMs ?? TIMEOUT;
      const secrets = secretsIn(options);
      const stream = streamed(onToolOutputDelta, options.maxOutputBytes ?? OUTPUT, secrets);
      const bounds = {
        timeoutMs: Math.min(limit, (input.timeoutSeconds ?? Number.POSITIVE_INFINITY) * 1000),
        maxOutputBytes: options.maxOutputBytes ?? OUTPUT,
        heard: stream.heard,
        secrets,
      };
      const { command } = input;
      if (bubblewrap === undefined) {
        return ended(await bare(command, { ...bounds, directory }, options, abortSignal), stream);
      }
      const { network = false } = options;
      const answer = await runExposed(roots, abortSignal, async ({ mounts, sources }) => {
        const confinement = { mounts, sources, directory, network, limits: limitsOf(options) };
        const program = { ...bounds, ...sandboxed(bubblewrap, confinement, command), env: environment(HOME, options) };
        return answerOf(await run(program, abortSignal), program, true);
      });
      return ended(answer, stream);
    },
  });
}

/** How a command is confined, as a person reads it. */
function confinementOf(bubblewrap: string | undefined, { network }: CommandOptions): string {
  if (bubblewrap === undefined) return 'WITHOUT a sandbox';
  return `in a sandbox ${network ? 'with network' : 'without network'}`;
}

function assertConfined(approved: ApprovalTarget | undefined, confinement: string): void {
  if (approved === undefined || approved.confinement === confinement) return;
  throw notApproved(`the command was approved ${approved.confinement}, and would run ${confinement}`);
}

/** The program to confine with; undefined to run without, which only an option can ask for. */
async function sandboxOf({ sandbox = 'required', bubblewrap }: CommandOptions): Promise<string | undefined> {
  if (sandbox === 'off') return undefined;
  const found = await usable(bubblewrap);
  if ('bubblewrap' in found) return found.bubblewrap;
  if (sandbox === 'preferred') return undefined;
  throw refusal(
    `Nothing was run: commands need the sandbox bubblewrap, and ${found.flaw}. ` +
      'Install it, or let the operator set commands.sandbox to "preferred" or "off".',
  );
}

/** Without a sandbox: the same bounds, and a home that is gone afterwards, but all that this user may do. */
async function bare(
  command: string,
  bounds: Omit<Command, 'argv' | 'env'>,
  options: CommandOptions,
  abort: AbortSignal | undefined,
): Promise<Answer> {
  const home = await mkdtemp(join(tmpdir(), 'rondo-home-'));
  try {
    const program = { ...bounds, argv: shell(command), env: environment(home, options) };
    return answerOf(await run(program, abort), program, false);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Nothing of ours: it may be secret. */
function environment(home: string, { env = {} }: CommandOptions): { readonly [name: string]: string } {
  const path = [...new Set([dirname(process.execPath), ...PATH])].join(':');
  return { PATH: path, LANG: 'C.UTF-8', HOME: home, ...env };
}

async function realDirectory(roots: Roots, path: string): Promise<string> {
  return roots.open(path, 'directory', async ({ real }) => real);
}

/** What of a command's environment its output must not tell. */
function secretsIn({ env = {} }: CommandOptions): Redactor {
  return redactorOf(Object.entries(env).flatMap(([name, value]) => (isSecretVariable(name, value) ? [value] : [])));
}

interface Streamed {
  heard(piece: Buffer): void;
  end(): void;
}

/** Hands on what is printed as text, as much of it as is kept. */
function streamed(onToolOutputDelta: (delta: string) => void, most: number, secrets: Redactor): Streamed {
  const decoder = new StringDecoder('utf8');
  const redacted = secrets.stream();
  let left = most;
  const tell = (text: string): void => void (text !== '' && onToolOutputDelta(text));
  return {
    heard: (piece) => {
      if (left <= 0) return;
      const text = decoder.write(piece.subarray(0, left));
      left -= piece.length;
      tell(redacted.push(text));
      if (left <= 0) tell(`${redacted.end()}\n… the rest is not streamed …\n`);
    },
    end: () => tell(redacted.end()),
  };
}

/** The answer, once all that was held back is streamed. */
function ended(answer: Answer, stream: Streamed): Answer {
  stream.end();
  return answer;
}

function answerOf(ending: Ending, program: Command, inSandbox: boolean): Answer {
  const { exitCode, signal, output } = ending;
  const text = output.text(program.secrets);
  const note = noteOf(ending, program, text);
  return {
    exitCode,
    ...(signal === null ? {} : { signal }),
    output: text,
    ...(output.cut === 0 ? {} : { cutBytes: output.cut }),
    sandboxed: inSandbox,
    ...(note === undefined ? {} : { note }),
  };
}

/** The exit code of a shell whose command was ended by SIGXFSZ. */
const FILE_TOO_LARGE = 128 + constants.signals.SIGXFSZ;

/** What shells and programs print if a process below them has hit that limit: the kernel reports it to that process only. */
const SAYS_TOO_LARGE = /File size limit exceeded|File too large|\bEFBIG\b/;

/** Which limit the command has hit. */
function noteOf(ending: Ending, { timeoutMs, sandbox }: Program, text: string): string | undefined {
  const { exitCode, signal, output, stopped } = ending;
  const { limits } = sandbox ?? {};
  if (stopped === 'time') return `It was killed after ${timeoutMs} ms.`;
  if (stopped === 'flood') return `It was killed: it printed more than anybody can read (${output.total} bytes).`;
  if (limits === undefined) return undefined;
  if (stopped === 'processes') return `It was killed: it had more than ${limits.processes} processes.`;
  if (stopped === 'memory') return `It was killed: it used more than ${sizeOf(limits.memoryBytes)} of memory.`;
  if (stopped === 'unwatched') return 'It was killed: what it uses cannot be watched on this machine.';
  const size = sizeOf(limits.fileBytes);
  if (exitCode === FILE_TOO_LARGE || signal === 'SIGXFSZ') {
    return `It was stopped: a file would have become larger than ${size}.`;
  }
  return SAYS_TOO_LARGE.test(text) ? `By its output, a file would have become larger than ${size}.` : undefined;
}
