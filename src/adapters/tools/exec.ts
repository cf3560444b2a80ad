/** `exec:PATH`: an executable beside the definition. One JSON document goes in on stdin, one comes out on stdout. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { LoopError } from '../../base/errors.js';
import { type Redactor, redactorOf } from '../../base/redact.js';
import { mayHoldSecret } from '../../base/secret-parts.js';
import type { DefinitionOrigin } from '../../loops/origin.js';
import type { ToolCallContext, ToolImplementation } from '../../loops/tool-implementation.js';
import type { Json } from '../../protocol/json.js';
import {
  assertNoProblem,
  type ConfigRule,
  integerBetween,
  isVariableName,
  outputBytesSetting,
  parseConfig,
} from './config.js';
import { parseJsonDocument } from './json-document.js';
import { programTargetOf } from './program.js';
import type { ProcessResult, ProcessSpec } from './run-process.js';
import { sanitizeText, truncateStart } from './sanitize-text.js';
import { findPathProblem, locateToolFile, type ToolFile } from './tool-file.js';

export interface ExecOptions {
  /** Where variables come from; the environment of this process unless told. */
  readonly environment?: NodeJS.ProcessEnv;
}

interface ExecSettings {
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly maxOutputBytes: number;
  readonly killGraceMs: number;
}

/** What a program needs to find its way about; nothing else of ours, as it may be secret. */
const inheritedVariables = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TMPDIR', 'TZ'];
const MAX_STDERR_MESSAGE_CHARS = 2000;
/** Of more than this the beginning is not kept; see command.ts. */
const CAPTURED_STDERR_BYTES = 64 * 1024;
/** EX_TEMPFAIL of sysexits.h: it may pass later. */
const EX_TEMPFAIL = 75;

const configRules: { readonly [K in keyof ExecSettings]: ConfigRule<ExecSettings[K]> } = {
  args: {
    requirement: 'a list of texts without NUL characters',
    accepts: (value): value is string[] =>
      Array.isArray(value) && value.every((item) => typeof item === 'string' && !item.includes('\0')),
  },
  env: {
    requirement: 'a list of names of environment variables',
    accepts: (value): value is string[] => Array.isArray(value) && value.every(isVariableName),
  },
  maxOutputBytes: outputBytesSetting.kind,
  killGraceMs: integerBetween(0, 10_000),
};

const findTargetProblem: ToolImplementation['unavailableReason'] = (target, origin, config) => {
  if (process.platform === 'win32')
    return 'exec: tools need process groups, which Windows has not; use module: or http:.';
  return findPathProblem('exec', target, origin) ?? parseConfig('exec', config, configRules).problem;
};

async function locateExecutable(target: string, origin: DefinitionOrigin): Promise<ToolFile> {
  const place = await locateToolFile('exec', target, origin);
  try {
    await access(place.file, constants.X_OK);
  } catch (error) {
    const message = `exec:${target} may not be run; make it executable: chmod +x ${target}`;
    throw new LoopError('TOOL_FAILED', message, { path: target }, error);
  }
  return place;
}

function pickVariables(source: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  const known = names.filter((name) => Object.hasOwn(source, name));
  return Object.fromEntries(known.map((name) => [name, source[name]]));
}

/** A program that could not be started at all. The file is there, so a missing one is the one that its first line names. */
function startError(target: string, error: unknown): LoopError {
  const { code, message } = error as NodeJS.ErrnoException;
  const missing = 'the interpreter that its first line (#!) names was not found';
  const why = code === 'ENOENT' ? missing : (code ?? message);
  const retryable = ['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM', 'ETXTBSY'].includes(code ?? '');
  return new LoopError(
    'TOOL_FAILED',
    `exec:${target} could not be started: ${why}.`,
    { path: target, retryable },
    error,
  );
}

/** Takes all that a program was given out of its errors. */
function errorRedactor(given: NodeJS.ProcessEnv): Redactor {
  return redactorOf(Object.values(given).map(String));
}

/** Takes out of a result only what may be secret: a program may be asked about a directory that a variable names. */
function resultRedactor(given: NodeJS.ProcessEnv): Redactor {
  const secrets = Object.entries(given).filter(([name, value = '']) => mayHoldSecret(name, value));
  return redactorOf(secrets.map(([, value]) => String(value)));
}

/** The one document that was printed, or why there is none. */
function parseOutput(target: string, ending: ProcessResult, maxOutputBytes: number, given: NodeJS.ProcessEnv): Json {
  const { exitCode, signal, stdout, stderr, isOutputTooLarge } = ending;
  if (isOutputTooLarge) {
    const message = `exec:${target} printed more than ${maxOutputBytes} bytes and was killed. Print less, or raise config.maxOutputBytes.`;
    throw new LoopError('TOOL_FAILED', message, { maxOutputBytes });
  }
  if (exitCode !== 0) {
    const how = signal === null ? `exit code ${exitCode}` : `signal ${signal}`;
    const cut = stderr.length < CAPTURED_STDERR_BYTES ? undefined : 'start';
    const told = truncateStart(sanitizeText(stderr.toString(), errorRedactor(given), cut), MAX_STDERR_MESSAGE_CHARS);
    const message = told || `exec:${target} ended with ${how} and said nothing on stderr.`;
    const again = exitCode === EX_TEMPFAIL ? { retryable: true } : {};
    throw new LoopError('TOOL_FAILED', message, signal === null ? { exitCode, ...again } : { signal });
  }
  const document = parseJsonDocument(stdout, resultRedactor(given), errorRedactor(given));
  if ('value' in document) return document.value;
  throw new LoopError('TOOL_FAILED', `exec:${target} must print one JSON document, but printed ${document.flaw}`, {
    exitCode,
  });
}

/** `exec:PATH`; the process gets a clean environment and is killed with all its children when its call ends. */
export function execTools(options: ExecOptions = {}): ToolImplementation {
  const source = options.environment ?? process.env;
  return {
    scheme: 'exec',
    approvalDescriber: () => undefined,
    targetResolver: (target, origin) => async () =>
      programTargetOf((await locateExecutable(target, origin)).file, `exec:${target}`),
    unavailableReason: findTargetProblem,
    open: async (target, origin, config, approved) => {
      assertNoProblem(findTargetProblem(target, origin, config));
      const {
        args = [],
        env = [],
        maxOutputBytes = outputBytesSetting.usual,
        killGraceMs = 500,
      } = parseSettings(config);
      await locateExecutable(target, origin);
      // Loaded with the first tool that needs it: most programs start no process.
      const [{ runProcess }, { runApprovedProgram }] = await Promise.all([
        import('./run-process.js'),
        import('./approved-program.js'),
      ]);
      const run: typeof runProcess =
        approved === undefined ? runProcess : (...call) => runApprovedProgram(...call, approved, `exec:${target}`);
      return async (input: Json, { callId, idempotencyKey, signal }: ToolCallContext) => {
        signal.throwIfAborted();
        const { file, directory } = await locateExecutable(target, origin);
        const ours = { RONDO_CALL_ID: callId, RONDO_IDEMPOTENCY_KEY: idempotencyKey };
        const given = pickVariables(source, env);
        const all = { ...pickVariables(source, inheritedVariables), ...given, ...ours };
        const text = `${JSON.stringify(input)}\n`;
        const command: ProcessSpec = { file, args, directory, env: all, input: text, maxOutputBytes, killGraceMs };
        const ending = await run(command, signal).catch((error) => {
          if (error instanceof LoopError) throw error;
          throw signal.aborted ? signal.reason : startError(target, error);
        });
        return parseOutput(target, ending, maxOutputBytes, given);
      };
    },
  };
}

function parseSettings(config: ToolCallContext['config']): Partial<ExecSettings> {
  return parseConfig('exec', config, configRules).settings;
}
