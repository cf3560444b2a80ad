/**
 * `exec:PATH` tools: an executable file in the directory of the definition, or below it, reads JSON from stdin and
 * prints JSON to stdout.
 */
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

/** Options of {@link execTools}. */
export interface ExecOptions {
  /**
   * The environment that the variables of a program are taken from.
   * @default process.env
   */
  readonly environment?: NodeJS.ProcessEnv;
}

interface ExecSettings {
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly maxOutputBytes: number;
  readonly killGraceMs: number;
}

/** The variables that every program inherits. Others may be secrets and must be listed in `config.env`. */
const inheritedVariables = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TMPDIR', 'TZ'];
const MAX_STDERR_MESSAGE_CHARS = 2000;
/** From this length of stderr on, `runProcess` may have discarded its beginning. */
const CAPTURED_STDERR_BYTES = 64 * 1024;
/** EX_TEMPFAIL of sysexits.h, a temporary failure: the call is retryable. */
const EX_TEMPFAIL = 75;

const configRules: { readonly [K in keyof ExecSettings]: ConfigRule<ExecSettings[K]> } = {
  args: {
    requirement: 'an array of strings without NUL characters',
    accepts: (value): value is string[] =>
      Array.isArray(value) && value.every((item) => typeof item === 'string' && !item.includes('\0')),
  },
  env: {
    requirement: 'an array of environment variable names',
    accepts: (value): value is string[] => Array.isArray(value) && value.every(isVariableName),
  },
  maxOutputBytes: outputBytesSetting.rule,
  killGraceMs: integerBetween(0, 10_000),
};

const findTargetProblem: ToolImplementation['unavailableReason'] = (target, origin, config) => {
  if (process.platform === 'win32')
    return 'exec: tools need process groups, which Windows does not have; use module: or http: instead.';
  return findPathProblem('exec', target, origin) ?? parseConfig('exec', config, configRules).problem;
};

async function locateExecutable(target: string, origin: DefinitionOrigin): Promise<ToolFile> {
  const toolFile = await locateToolFile('exec', target, origin);
  try {
    await access(toolFile.file, constants.X_OK);
  } catch (error) {
    const message = `exec:${target} is not executable; run: chmod +x ${target}`;
    throw new LoopError('TOOL_FAILED', message, { path: target }, error);
  }
  return toolFile;
}

function pickVariables(source: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  const setNames = names.filter((name) => Object.hasOwn(source, name));
  return Object.fromEntries(setNames.map((name) => [name, source[name]]));
}

/** Creates the error for a program that could not be started. Its file exists, so ENOENT refers to its interpreter. */
function startError(target: string, error: unknown): LoopError {
  const { code, message } = error as NodeJS.ErrnoException;
  const missing = 'the interpreter in its first line (#!) was not found';
  const reason = code === 'ENOENT' ? missing : (code ?? message);
  const retryable = ['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM', 'ETXTBSY'].includes(code ?? '');
  return new LoopError(
    'TOOL_FAILED',
    `exec:${target} could not be started: ${reason}.`,
    { path: target, retryable },
    error,
  );
}

/** Returns a redactor of the values of all variables of `config.env`, for error messages. */
function errorRedactor(passedEnv: NodeJS.ProcessEnv): Redactor {
  return redactorOf(Object.values(passedEnv).map(String));
}

/**
 * Returns a redactor of only those variables of `config.env` that may be secrets, for results. A result may
 * legitimately contain other values, such as a directory name.
 */
function resultRedactor(passedEnv: NodeJS.ProcessEnv): Redactor {
  const secrets = Object.entries(passedEnv).filter(([name, value = '']) => mayHoldSecret(name, value));
  return redactorOf(secrets.map(([, value]) => String(value)));
}

/**
 * Returns the printed JSON document, redacted. Throws TOOL_FAILED if the program failed, printed too much, or printed
 * anything else.
 */
function parseOutput(
  target: string,
  result: ProcessResult,
  maxOutputBytes: number,
  passedEnv: NodeJS.ProcessEnv,
): Json {
  const { exitCode, signal, stdout, stderr, isOutputTooLarge } = result;
  if (isOutputTooLarge) {
    const message = `exec:${target} printed more than ${maxOutputBytes} bytes and was killed. Print less, or raise config.maxOutputBytes.`;
    throw new LoopError('TOOL_FAILED', message, { maxOutputBytes, retryable: false });
  }
  if (exitCode !== 0) {
    const status = signal === null ? `exit code ${exitCode}` : `signal ${signal}`;
    const cut = stderr.length < CAPTURED_STDERR_BYTES ? undefined : 'start';
    const printed = sanitizeText(stderr.toString(), errorRedactor(passedEnv), cut);
    const message =
      truncateStart(printed, MAX_STDERR_MESSAGE_CHARS) ||
      `exec:${target} ended with ${status} and printed nothing on stderr.`;
    const retry = exitCode === EX_TEMPFAIL ? { retryable: true } : {};
    throw new LoopError('TOOL_FAILED', message, signal === null ? { exitCode, ...retry } : { signal });
  }
  const document = parseJsonDocument(stdout, resultRedactor(passedEnv), errorRedactor(passedEnv));
  if ('value' in document) return document.value;
  throw new LoopError('TOOL_FAILED', `exec:${target} must print one JSON document, but printed ${document.problem}`, {
    exitCode,
  });
}

/**
 * Creates the implementation of `exec:PATH` tools. A program gets only a few environment variables (see above), those
 * of `config.env`, and the ids of the call. Its process group is killed when its call ends.
 */
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
        maxOutputBytes = outputBytesSetting.defaultBytes,
        killGraceMs = 500,
      } = parseSettings(config);
      await locateExecutable(target, origin);
      // Loaded on first use: most hosts start no process.
      const [{ runProcess }, { runApprovedProgram }] = await Promise.all([
        import('./run-process.js'),
        import('./approved-program.js'),
      ]);
      const run: typeof runProcess =
        approved === undefined ? runProcess : (...call) => runApprovedProgram(...call, approved, `exec:${target}`);
      return async (input: Json, { callId, idempotencyKey, signal }: ToolCallContext) => {
        signal.throwIfAborted();
        const { file, directory } = await locateExecutable(target, origin);
        const callVariables = { RONDO_CALL_ID: callId, RONDO_IDEMPOTENCY_KEY: idempotencyKey };
        const passedEnv = pickVariables(source, env);
        const processEnv = { ...pickVariables(source, inheritedVariables), ...passedEnv, ...callVariables };
        const text = `${JSON.stringify(input)}\n`;
        const limits = { maxOutputBytes, killGraceMs };
        const command: ProcessSpec = { file, args, directory, env: processEnv, input: text, ...limits };
        const result = await run(command, signal).catch((error) => {
          if (error instanceof LoopError) throw error;
          throw signal.aborted ? signal.reason : startError(target, error);
        });
        return parseOutput(target, result, maxOutputBytes, passedEnv);
      };
    },
  };
}

function parseSettings(config: ToolCallContext['config']): Partial<ExecSettings> {
  return parseConfig('exec', config, configRules).settings;
}
