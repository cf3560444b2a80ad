/** `exec:PATH`: an executable beside the definition. One JSON document goes in on stdin, one comes out on stdout. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { LoopError } from '../../base/errors.js';
import { type Redactor, redactorOf } from '../../base/redact.js';
import { isSecretVariable } from '../../base/secret-parts.js';
import type { Implementation, ToolCall } from '../../loops/implementation.js';
import type { Origin } from '../../loops/origin.js';
import type { Json } from '../../protocol/json.js';
import type { Command, Ending } from './command.js';
import { isVariable, type Kind, outputBytes, readConfig, refuse, whole } from './config.js';
import { documentOf } from './document.js';
import { type Place, placeFlaw, placeOf } from './place.js';
import { lastOf, plain } from './plain.js';
import { programAt } from './program.js';

export interface ExecOptions {
  /** Where variables come from; the environment of this process unless told. */
  readonly environment?: NodeJS.ProcessEnv;
}

interface Settings {
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly maxOutputBytes: number;
  readonly killGraceMs: number;
}

/** What a program needs to find its way about; nothing else of ours, as it may be secret. */
const inherited = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TMPDIR', 'TZ'];
const STDERR_SHOWN = 2000;
/** Of more than this the beginning is not kept; see command.ts. */
const STDERR_KEPT = 64 * 1024;
/** EX_TEMPFAIL of sysexits.h: it may pass later. */
const TRY_AGAIN = 75;

const kinds: { readonly [K in keyof Settings]: Kind<Settings[K]> } = {
  args: {
    says: 'a list of texts without NUL characters',
    is: (value): value is string[] =>
      Array.isArray(value) && value.every((item) => typeof item === 'string' && !item.includes('\0')),
  },
  env: {
    says: 'a list of names of environment variables',
    is: (value): value is string[] => Array.isArray(value) && value.every(isVariable),
  },
  maxOutputBytes: outputBytes.kind,
  killGraceMs: whole(0, 10_000),
};

const flaw: Implementation['flaw'] = (target, origin, config) => {
  if (process.platform === 'win32')
    return 'exec: tools need process groups, which Windows has not; use module: or http:.';
  return placeFlaw('exec', target, origin) ?? readConfig('exec', config, kinds).flaw;
};

async function executable(target: string, origin: Origin): Promise<Place> {
  const place = await placeOf('exec', target, origin);
  try {
    await access(place.file, constants.X_OK);
  } catch (error) {
    const message = `exec:${target} may not be run; make it executable: chmod +x ${target}`;
    throw new LoopError('TOOL_FAILED', message, { path: target }, error);
  }
  return place;
}

function variables(source: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  const known = names.filter((name) => Object.hasOwn(source, name));
  return Object.fromEntries(known.map((name) => [name, source[name]]));
}

/** A program that could not be started at all. The file is there, so a missing one is the one that its first line names. */
function startFailure(target: string, error: unknown): LoopError {
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
function inErrors(given: NodeJS.ProcessEnv): Redactor {
  return redactorOf(Object.values(given).map(String));
}

/** Takes out of a result only what may be secret: a program may be asked about a directory that a variable names. */
function inResults(given: NodeJS.ProcessEnv): Redactor {
  const secrets = Object.entries(given).filter(([name, value = '']) => isSecretVariable(name, value));
  return redactorOf(secrets.map(([, value]) => String(value)));
}

/** The one document that was printed, or why there is none. */
function outputOf(target: string, ending: Ending, maxOutputBytes: number, given: NodeJS.ProcessEnv): Json {
  const { exitCode, signal, stdout, stderr, flooded } = ending;
  if (flooded) {
    const message = `exec:${target} printed more than ${maxOutputBytes} bytes and was killed. Print less, or raise config.maxOutputBytes.`;
    throw new LoopError('TOOL_FAILED', message, { maxOutputBytes });
  }
  if (exitCode !== 0) {
    const how = signal === null ? `exit code ${exitCode}` : `signal ${signal}`;
    const cut = stderr.length < STDERR_KEPT ? undefined : 'start';
    const told = lastOf(plain(stderr.toString(), inErrors(given), cut), STDERR_SHOWN);
    const message = told || `exec:${target} ended with ${how} and said nothing on stderr.`;
    const again = exitCode === TRY_AGAIN ? { retryable: true } : {};
    throw new LoopError('TOOL_FAILED', message, signal === null ? { exitCode, ...again } : { signal });
  }
  const document = documentOf(stdout, inResults(given), inErrors(given));
  if ('value' in document) return document.value;
  throw new LoopError('TOOL_FAILED', `exec:${target} must print one JSON document, but printed ${document.flaw}`, {
    exitCode,
  });
}

/** `exec:PATH`; the process gets a clean environment and is killed with all its children when its call ends. */
export function execTools(options: ExecOptions = {}): Implementation {
  const source = options.environment ?? process.env;
  return {
    scheme: 'exec',
    question: () => undefined,
    resolve: (target, origin) => async () => programAt((await executable(target, origin)).file, `exec:${target}`),
    flaw,
    open: async (target, origin, config, approved) => {
      refuse(flaw(target, origin, config));
      const { args = [], env = [], maxOutputBytes = outputBytes.usual, killGraceMs = 500 } = settingsOf(config);
      await executable(target, origin);
      // Loaded with the first tool that needs it: most programs start no process.
      const [{ runCommand }, { runApproved }] = await Promise.all([
        import('./command.js'),
        import('./approved-program.js'),
      ]);
      const run: typeof runCommand =
        approved === undefined ? runCommand : (...call) => runApproved(...call, approved, `exec:${target}`);
      return async (input: Json, { callId, idempotencyKey, signal }: ToolCall) => {
        signal.throwIfAborted();
        const { file, directory } = await executable(target, origin);
        const ours = { RONDO_CALL_ID: callId, RONDO_IDEMPOTENCY_KEY: idempotencyKey };
        const given = variables(source, env);
        const all = { ...variables(source, inherited), ...given, ...ours };
        const text = `${JSON.stringify(input)}\n`;
        const command: Command = { file, args, directory, env: all, input: text, maxOutputBytes, killGraceMs };
        const ending = await run(command, signal).catch((error) => {
          if (error instanceof LoopError) throw error;
          throw signal.aborted ? signal.reason : startFailure(target, error);
        });
        return outputOf(target, ending, maxOutputBytes, given);
      };
    },
  };
}

function settingsOf(config: ToolCall['config']): Partial<Settings> {
  return readConfig('exec', config, kinds).settings;
}
