/**
 * The tool `run_command`: runs a command line with limits, in a sandbox unless the options allow it to run without one.
 * A nonzero exit code is a result, not a failure.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { LoopError } from '../../base/errors.js';
import { type Redactor, redactorOf } from '../../base/redact.js';
import { mayHoldSecret } from '../../base/secret-parts.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import type { Confinement } from '../../protocol/body.js';
import type { LoopsToolOptions } from '../../protocol/tool.js';
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
  command: { type: 'string', min: 1, max: 20_000, description: 'The command line for /bin/sh.' },
  directory: { type: 'string', optional: true, description: 'The working directory. Default: the first root.' },
  timeoutSeconds: {
    type: 'integer',
    optional: true,
    min: 1,
    max: 3600,
    description: 'The time after which the command is killed, if shorter than the configured one.',
  },
});

type RunCommandInput = InferInput<typeof inputSchema>;

/** A process whose output is redacted. */
interface CommandProcess extends ProcessSpec {
  readonly redactor: Redactor;
}

/** Creates the tool `run_command`. */
export function runCommandTool(roots: Roots, options: CommandOptions = {}): ToolboxTool<RunCommandInput> {
  return defineActionTool({
    name: 'run_command',
    description:
      'Runs a command line with /bin/sh and returns its exit code and output. ' +
      'It can use the programs of the system and the roots; stdin is empty, and no process that it starts outlives it.',
    inputSchema,
    safety: 'once',
    approvalMessage: async ({ command, directory = '.' }) => {
      const confinement = describeConfinement(await findSandbox(options), options);
      return `Run in ${roots.displayPath(await realDirectoryOf(roots, directory))}, ${confinement}:\n${command}`;
    },
    approvalTarget: async ({ directory = '.' }) => {
      const confinement = describeConfinement(await findSandbox(options), options);
      const path = await realDirectoryOf(roots, directory);
      return {
        kind: 'directory',
        path,
        confinement,
        ...(!roots.isDirectPath(directory, path) && { isIndirect: true }),
      };
    },
    execute: (input, callOptions) => executeCommand(roots, options, input, callOptions),
  });
}

async function executeCommand(
  roots: Roots,
  options: CommandOptions,
  input: RunCommandInput,
  { abortSignal, onToolOutputDelta, approvedTarget, confinement }: LoopsToolOptions,
): Promise<ToolOutput> {
  const { command } = input;
  if (command.includes('\0')) throw toolError('command contains a NUL character, which no command line can contain.');
  // The sandbox shows what is at the paths of the roots now, so each root must still be where it was.
  const visibleRoots = roots.narrowedTo(confinement);
  for (const root of visibleRoots.realPaths) await realDirectoryOf(visibleRoots, root);
  const directory = await realDirectoryOf(roots.confinedTo(confinement), input.directory ?? '.');
  const bubblewrap = await findSandbox(options);
  if (confinement !== undefined) assertConfinable(confinement, bubblewrap, options);
  assertPathApproved(input.directory ?? '.', approvedTarget, directory);
  assertConfinementApproved(approvedTarget, describeConfinement(bubblewrap, options));
  const { timeoutMs = DEFAULT_TIMEOUT_MS, maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES } = options;
  const redactor = secretsRedactor(options);
  const stream = createOutputStreamer(onToolOutputDelta, maxOutputBytes, redactor);
  const settings = {
    directory,
    timeoutMs: Math.min(timeoutMs, (input.timeoutSeconds ?? Number.POSITIVE_INFINITY) * 1000),
    maxOutputBytes,
    onOutput: stream.push,
    redactor,
  };
  const output =
    bubblewrap === undefined
      ? await runUnsandboxed(command, settings, options, abortSignal)
      : await runSandboxed(bubblewrap, visibleRoots, command, settings, options, abortSignal);
  stream.end();
  return output;
}

/** Throws TOOL_NOT_ADMITTED if the sandbox cannot hold a command to the roots and destinations of a grant. */
function assertConfinable(
  { destinations }: Confinement,
  bubblewrap: string | undefined,
  { network = false }: CommandOptions,
): void {
  // guard: command-confined-to-grant
  if (bubblewrap !== undefined && (destinations === undefined || !network)) return;
  const problem = bubblewrap === undefined ? 'it runs without a sandbox' : 'its network cannot be limited to hosts';
  throw new LoopError('TOOL_NOT_ADMITTED', `run_command cannot be confined to the grant: ${problem}.`, {
    name: 'run_command',
  });
}

/** Describes the confinement of a command for people. Approvals store this text, so changing it invalidates them. */
function describeConfinement(bubblewrap: string | undefined, { network }: CommandOptions): string {
  if (bubblewrap === undefined) return 'WITHOUT a sandbox';
  return `in a sandbox ${network ? 'with network' : 'without network'}`;
}

function assertConfinementApproved(approved: ApprovalTarget | undefined, confinement: string): void {
  if (approved === undefined || approved.confinement === confinement) return;
  throw notApprovedError(`the command was approved ${approved.confinement}, but would run ${confinement}`);
}

/**
 * Returns the path of bubblewrap; undefined to run without a sandbox. Throws TOOL_FAILED if bubblewrap does not work
 * and the options require it.
 */
async function findSandbox({ sandbox = 'required', bubblewrap }: CommandOptions): Promise<string | undefined> {
  if (sandbox === 'off') return undefined;
  const availability = await probeSandbox(bubblewrap);
  if ('bubblewrap' in availability) return availability.bubblewrap;
  if (sandbox === 'preferred') return undefined;
  throw toolError(
    `Nothing was run: commands need the sandbox bubblewrap, and ${availability.problem}. ` +
      'Install it, or ask the operator to set commands.sandbox to "preferred" or "off".',
  );
}

type CommandSettings = Omit<CommandProcess, 'argv' | 'env'>;

async function runSandboxed(
  bubblewrap: string,
  roots: Roots,
  command: string,
  settings: CommandSettings,
  options: CommandOptions,
  abort: AbortSignal | undefined,
): Promise<ToolOutput> {
  const { network = false } = options;
  return runAnnouncedCommand(roots, abort, async ({ mounts, sources }) => {
    const confinement = { mounts, sources, directory: settings.directory, network, limits: limitsOf(options) };
    const program = {
      ...settings,
      ...sandboxProcess(bubblewrap, confinement, command),
      env: environmentFor(SANDBOX_HOME, options),
    };
    return commandOutput(await runProcess(program, abort), program, true);
  });
}

/** Runs a command with the permissions of this user. Time and output are limited, and HOME is a temporary directory. */
async function runUnsandboxed(
  command: string,
  settings: CommandSettings,
  options: CommandOptions,
  abort: AbortSignal | undefined,
): Promise<ToolOutput> {
  const home = await mkdtemp(join(tmpdir(), 'rondo-home-'));
  try {
    const program = { ...settings, argv: shellArgs(command), env: environmentFor(home, options) };
    return commandOutput(await runProcess(program, abort), program, false);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Returns the environment of a command. It inherits no variables of this process, because they may be secrets. */
function environmentFor(home: string, { env = {} }: CommandOptions): { readonly [name: string]: string } {
  const path = [...new Set([dirname(process.execPath), ...SEARCH_PATH])].join(':');
  return { PATH: path, LANG: 'C.UTF-8', HOME: home, ...env };
}

async function realDirectoryOf(roots: Roots, path: string): Promise<string> {
  return roots.open(path, 'directory', async ({ realPath }) => realPath);
}

/** Returns a redactor for the variables of a command that may be secrets. */
function secretsRedactor({ env = {} }: CommandOptions): Redactor {
  return redactorOf(Object.entries(env).flatMap(([name, value]) => (mayHoldSecret(name, value) ? [value] : [])));
}

interface OutputStreamer {
  push(chunk: Buffer): void;
  /** Emits the text that redaction has withheld. */
  end(): void;
}

/** Creates an object that streams redacted output as text, up to `maxBytes`. */
function createOutputStreamer(
  onToolOutputDelta: (delta: string) => void,
  maxBytes: number,
  redactor: Redactor,
): OutputStreamer {
  const decoder = new StringDecoder('utf8');
  const redactingStream = redactor.openStream();
  let remainingBytes = maxBytes;
  const emit = (text: string): void => void (text !== '' && onToolOutputDelta(text));
  return {
    push: (chunk) => {
      if (remainingBytes <= 0) return;
      const text = decoder.write(chunk.subarray(0, remainingBytes));
      remainingBytes -= chunk.length;
      emit(redactingStream.push(text));
      if (remainingBytes <= 0) emit(`${redactingStream.end()}\n… the rest is not streamed …\n`);
    },
    end: () => emit(redactingStream.end()),
  };
}

function commandOutput(result: ProcessResult, program: CommandProcess, isSandboxed: boolean): ToolOutput {
  const { exitCode, signal, output } = result;
  const text = output.text(program.redactor);
  const note = limitNoteOf(result, program, text);
  return {
    exitCode,
    ...(signal === null ? {} : { signal }),
    output: text,
    ...(output.omittedBytes === 0 ? {} : { cutBytes: output.omittedBytes }),
    sandboxed: isSandboxed,
    ...(note === undefined ? {} : { note }),
  };
}

/** The exit code of a shell whose command was terminated by SIGXFSZ. */
const FILE_TOO_LARGE_EXIT_CODE = 128 + constants.signals.SIGXFSZ;

/**
 * Matches the messages that shells and programs print if a child process exceeds the maximum file size. The kernel
 * reports this to the child only.
 */
const FILE_TOO_LARGE_MESSAGE = /File size limit exceeded|File too large|\bEFBIG\b/;

/** Returns a note about the limit that the command exceeded; undefined if none is known. */
function limitNoteOf(result: ProcessResult, { timeoutMs, sandbox }: ProcessSpec, text: string): string | undefined {
  const { exitCode, signal, output, stopReason } = result;
  const { limits } = sandbox ?? {};
  if (stopReason === 'time') return `It was killed after ${timeoutMs} ms.`;
  if (stopReason === 'output') return `It was killed: it printed too much (${output.totalBytes} bytes).`;
  if (limits === undefined) return undefined;
  if (stopReason === 'processes') return `It was killed: it had more than ${limits.maxProcesses} processes.`;
  if (stopReason === 'memory')
    return `It was killed: it used more than ${formatBytes(limits.maxMemoryBytes)} of memory.`;
  if (stopReason === 'unmonitored') return 'It was killed: its resource usage cannot be monitored on this machine.';
  const size = formatBytes(limits.maxFileBytes);
  if (exitCode === FILE_TOO_LARGE_EXIT_CODE || signal === 'SIGXFSZ') {
    return `It was stopped: a file would have become larger than ${size}.`;
  }
  return FILE_TOO_LARGE_MESSAGE.test(text)
    ? `According to its output, a file would have become larger than ${size}.`
    : undefined;
}
