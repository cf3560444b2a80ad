/** `run_command`: a command line, confined, in bounds, with its exit code as a result: that a test fails is no failure of ours. */
import { mkdtemp, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { type Redactor, redactorOf } from '../../base/redact.js';
import { mayHoldSecret } from '../../base/secret-parts.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import { runAnnouncedCommand } from './announced-command.js';
import { defineActionTool, type ToolboxTool, type ToolOutput } from './define-tool.js';
import { defineInput, type InferInput } from './input-schema.js';
import { formatBytes, limitsOf } from './limits.js';
import type { CommandOptions } from './options.js';
import { assertPathApproved, type Roots } from './roots.js';
import { type ProcessResult, type ProcessSpec, runProcess } from './run-process.js';
import { probeSandbox, SANDBOX_HOME, SEARCH_PATH, sandboxProcess, shellArgs } from './sandbox.js';
import { notApprovedError, toolError } from './tool-error.js';

const DEFAULT_TIMEOUT_MS = 120_000;
const DEFAULT_MAX_OUTPUT_BYTES = 64 * 1024;

const inputSchema = defineInput({
  command: { type: 'string', min: 1, max: 20_000, description: 'What /bin/sh is to run.' },
  directory: { type: 'string', optional: true, description: 'The working directory. Default: the first root.' },
  timeoutSeconds: {
    type: 'integer',
    optional: true,
    min: 1,
    max: 3600,
    description: 'When it is killed, if sooner than usual.',
  },
});

type RunCommandInput = InferInput<typeof inputSchema>;

/** A program, and what its output must not tell. */
interface CommandProcess extends ProcessSpec {
  readonly secrets: Redactor;
}

export function runCommandTool(roots: Roots, options: CommandOptions = {}): ToolboxTool<RunCommandInput> {
  return defineActionTool({
    name: 'run_command',
    description:
      'Runs a command line with /bin/sh and answers with its exit code and what it printed. ' +
      'It sees the system’s programs and the roots, nothing is on its stdin, and nothing that it starts outlives it.',
    inputSchema,
    safety: 'once',
    approvalMessage: async ({ command, directory = '.' }) => {
      const how = describeConfinement(await findSandbox(options), options);
      return `Run in ${roots.displayPath(await realDirectoryOf(roots, directory))}, ${how}:\n${command}`;
    },
    approvalTarget: async ({ directory = '.' }) => {
      const confinement = describeConfinement(await findSandbox(options), options);
      const path = await realDirectoryOf(roots, directory);
      return {
        kind: 'directory',
        path,
        confinement,
        ...(!roots.isDirectPath(directory, path) && { isLinked: true }),
      };
    },
    execute: async (input, { abortSignal, onToolOutputDelta, approvedTarget }) => {
      if (input.command.includes('\0'))
        throw toolError('command has a NUL character in it, which no command line has.');
      // Each root is still where it was: whatever stands there now is what the sandbox shows.
      for (const root of roots.realPaths) await realDirectoryOf(roots, root);
      const directory = await realDirectoryOf(roots, input.directory ?? '.');
      const bubblewrap = await findSandbox(options);
      assertPathApproved(input.directory ?? '.', approvedTarget, directory);
      assertConfinementApproved(approvedTarget, describeConfinement(bubblewrap, options));
      const limit = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
      const secrets = secretsRedactor(options);
      const stream = createOutputStreamer(
        onToolOutputDelta,
        options.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES,
        secrets,
      );
      const bounds = {
        timeoutMs: Math.min(limit, (input.timeoutSeconds ?? Number.POSITIVE_INFINITY) * 1000),
        maxOutputBytes: options.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES,
        onOutput: stream.push,
        secrets,
      };
      const { command } = input;
      if (bubblewrap === undefined) {
        return withStreamEnded(await runUnsandboxed(command, { ...bounds, directory }, options, abortSignal), stream);
      }
      const { network = false } = options;
      const answer = await runAnnouncedCommand(roots, abortSignal, async ({ mounts, sources }) => {
        const confinement = { mounts, sources, directory, network, limits: limitsOf(options) };
        const program = {
          ...bounds,
          ...sandboxProcess(bubblewrap, confinement, command),
          env: environmentFor(SANDBOX_HOME, options),
        };
        return commandOutput(await runProcess(program, abortSignal), program, true);
      });
      return withStreamEnded(answer, stream);
    },
  });
}

/** How a command is confined, as a person reads it. */
function describeConfinement(bubblewrap: string | undefined, { network }: CommandOptions): string {
  if (bubblewrap === undefined) return 'WITHOUT a sandbox';
  return `in a sandbox ${network ? 'with network' : 'without network'}`;
}

function assertConfinementApproved(approved: ApprovalTarget | undefined, confinement: string): void {
  if (approved === undefined || approved.confinement === confinement) return;
  throw notApprovedError(`the command was approved ${approved.confinement}, and would run ${confinement}`);
}

/** The program to confine with; undefined to run without, which only an option can ask for. */
async function findSandbox({ sandbox = 'required', bubblewrap }: CommandOptions): Promise<string | undefined> {
  if (sandbox === 'off') return undefined;
  const found = await probeSandbox(bubblewrap);
  if ('bubblewrap' in found) return found.bubblewrap;
  if (sandbox === 'preferred') return undefined;
  throw toolError(
    `Nothing was run: commands need the sandbox bubblewrap, and ${found.problem}. ` +
      'Install it, or let the operator set commands.sandbox to "preferred" or "off".',
  );
}

/** Without a sandbox: the same bounds, and a home that is gone afterwards, but all that this user may do. */
async function runUnsandboxed(
  command: string,
  bounds: Omit<CommandProcess, 'argv' | 'env'>,
  options: CommandOptions,
  abort: AbortSignal | undefined,
): Promise<ToolOutput> {
  const home = await mkdtemp(join(tmpdir(), 'rondo-home-'));
  try {
    const program = { ...bounds, argv: shellArgs(command), env: environmentFor(home, options) };
    return commandOutput(await runProcess(program, abort), program, false);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Nothing of ours: it may be secret. */
function environmentFor(home: string, { env = {} }: CommandOptions): { readonly [name: string]: string } {
  const path = [...new Set([dirname(process.execPath), ...SEARCH_PATH])].join(':');
  return { PATH: path, LANG: 'C.UTF-8', HOME: home, ...env };
}

async function realDirectoryOf(roots: Roots, path: string): Promise<string> {
  return roots.open(path, 'directory', async ({ realPath }) => realPath);
}

/** What of a command's environment its output must not tell. */
function secretsRedactor({ env = {} }: CommandOptions): Redactor {
  return redactorOf(Object.entries(env).flatMap(([name, value]) => (mayHoldSecret(name, value) ? [value] : [])));
}

interface OutputStreamer {
  push(piece: Buffer): void;
  end(): void;
}

/** Hands on what is printed as text, as much of it as is kept. */
function createOutputStreamer(
  onToolOutputDelta: (delta: string) => void,
  most: number,
  secrets: Redactor,
): OutputStreamer {
  const decoder = new StringDecoder('utf8');
  const redacted = secrets.openStream();
  let left = most;
  const tell = (text: string): void => void (text !== '' && onToolOutputDelta(text));
  return {
    push: (piece) => {
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
function withStreamEnded(answer: ToolOutput, stream: OutputStreamer): ToolOutput {
  stream.end();
  return answer;
}

function commandOutput(ending: ProcessResult, program: CommandProcess, inSandbox: boolean): ToolOutput {
  const { exitCode, signal, output } = ending;
  const text = output.text(program.secrets);
  const note = limitNoteOf(ending, program, text);
  return {
    exitCode,
    ...(signal === null ? {} : { signal }),
    output: text,
    ...(output.omittedBytes === 0 ? {} : { cutBytes: output.omittedBytes }),
    sandboxed: inSandbox,
    ...(note === undefined ? {} : { note }),
  };
}

/** The exit code of a shell whose command was ended by SIGXFSZ. */
const FILE_TOO_LARGE_EXIT_CODE = 128 + constants.signals.SIGXFSZ;

/** What shells and programs print if a process below them has hit that limit: the kernel reports it to that process only. */
const FILE_TOO_LARGE_MESSAGE = /File size limit exceeded|File too large|\bEFBIG\b/;

/** Which limit the command has hit. */
function limitNoteOf(ending: ProcessResult, { timeoutMs, sandbox }: ProcessSpec, text: string): string | undefined {
  const { exitCode, signal, output, stopReason } = ending;
  const { limits } = sandbox ?? {};
  if (stopReason === 'time') return `It was killed after ${timeoutMs} ms.`;
  if (stopReason === 'flood')
    return `It was killed: it printed more than anybody can read (${output.totalBytes} bytes).`;
  if (limits === undefined) return undefined;
  if (stopReason === 'processes') return `It was killed: it had more than ${limits.maxProcesses} processes.`;
  if (stopReason === 'memory')
    return `It was killed: it used more than ${formatBytes(limits.maxMemoryBytes)} of memory.`;
  if (stopReason === 'unwatched') return 'It was killed: what it uses cannot be watched on this machine.';
  const size = formatBytes(limits.maxFileBytes);
  if (exitCode === FILE_TOO_LARGE_EXIT_CODE || signal === 'SIGXFSZ') {
    return `It was stopped: a file would have become larger than ${size}.`;
  }
  return FILE_TOO_LARGE_MESSAGE.test(text) ? `By its output, a file would have become larger than ${size}.` : undefined;
}
