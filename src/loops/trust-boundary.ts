/**
 * The boundary of trust: a turn that runs anything which needs trust consists of trusted parts only. Its parts are the
 * definitions that its loop reaches, the `rondo.toml` that decides a part of one of them, and the file that drives it (a
 * hosted loop, a harness). What is not trusted decides nothing about trusted code: not that it runs, nor with what.
 */
import { LoopError } from '../base/errors.js';
import { trustAdvice } from '../base/permits.js';
import { innerLoopOf } from './defined-loop.js';
import { type Callee, calleesOf, type RegisteredLoop, type Registry } from './registry.js';

/** A definition that a loop reaches. */
interface Part {
  readonly registered: RegisteredLoop;
  /** The ids from the first loop to it, both included. */
  readonly path: readonly string[];
}

/**
 * Returns the reason why a file in a directory that is not trusted must not drive these loops, without a full stop;
 * undefined if it may.
 */
export function trustProblem(registry: Registry, callees: readonly Callee[], directory: string): string | undefined {
  const roots = callees.flatMap(({ loopId, loopVersion }) => registry.find(loopId, loopVersion) ?? []);
  return drivenProblem(registry, roots, directory);
}

/** The same for loops that are known. */
export function drivenProblem(
  registry: Registry,
  roots: readonly RegisteredLoop[],
  directory: string,
): string | undefined {
  const needy = partNeedingTrust(registry, partsOf(registry, roots));
  return needy && `${needText(needy.path)}, and ${distrustText(directory)}`;
}

/**
 * Returns the reason why a loop must not run, without a full stop: it needs trust, or code calls it, and has parts without;
 * otherwise undefined.
 */
export function mixedTrustProblem(
  registry: Registry,
  root: RegisteredLoop,
  isCalledByCode = false,
): string | undefined {
  const parts = partsOf(registry, [root]);
  const untrusted = parts.find(({ registered }) => isUntrustedPart(registered));
  if (untrusted === undefined) return undefined;
  const needy = partNeedingTrust(registry, parts);
  if (needy === undefined && !isCalledByCode) return undefined;
  const { origin, definition } = untrusted.registered;
  const name = definition === root.definition ? undefined : `"${definition.id}" ${definition.version}`;
  const need = needy === undefined ? 'code runs it' : needText(needy.path.slice(1));
  if (isForeignDefinition(untrusted.registered)) {
    const where = origin.directory === undefined ? 'it is recorded without its file' : distrustText(origin.directory);
    return `${need}${name === undefined ? '' : `, together with ${name}`}, and ${where}`;
  }
  const { file = '', directory = '' } = origin.config ?? {};
  return `${need}, ${file} decides a part of ${name ?? 'it'}, and ${distrustText(directory)}`;
}

/** Returns the error of a loop with such a problem. */
export function mixedTrustError({ definition: { id } }: RegisteredLoop, reason: string): LoopError {
  const data = { loopId: id, path: '', reason };
  return new LoopError('DEFINITION_INVALID', `The loop "${id}" must not run: ${reason}.`, data);
}

/** True if a definition, or a file that decides a part of it, is of a directory that the operator does not trust. */
export function isUntrustedPart(registered: RegisteredLoop): boolean {
  // guard: untrusted-config-is-a-part
  return isForeignDefinition(registered) || registered.origin.config?.trusted === false;
}

/** Code is imported from a trusted directory only. It and definitions without a file are those of a program. */
function isForeignDefinition({ origin: { directory, trusted, isForeign }, definedLoop }: RegisteredLoop): boolean {
  return definedLoop === undefined && (isForeign ?? (directory !== undefined && !trusted));
}

/** Returns the loops and everything that they reach, the nearest first. */
function partsOf(registry: Registry, roots: readonly RegisteredLoop[]): readonly Part[] {
  const parts = new Map<RegisteredLoop, Part>(
    roots.map((registered) => [registered, { registered, path: [registered.definition.id] }]),
  );
  // A map iterates over what is added meanwhile.
  for (const [{ definition, definedLoop }, { path }] of parts)
    for (const { loopId, loopVersion } of calleesOf(definition.composite)) {
      const inner = innerLoopOf(definedLoop, loopId);
      const registered = inner === undefined ? registry.find(loopId, loopVersion) : registry.registrationOf(inner);
      if (registered !== undefined && !parts.has(registered))
        parts.set(registered, { registered, path: [...path, loopId] });
    }
  return [...parts.values()];
}

function partNeedingTrust(registry: Registry, parts: readonly Part[]): Part | undefined {
  return parts.find(({ registered }) => registry.needsTrust(registered));
}

/** Describes the loop at the end of a path; an empty path is the loop that the sentence is about. */
function needText(path: readonly string[]): string {
  const subject = path.length === 0 ? 'it' : `it runs ${quoteId(path.at(-1) ?? '')}`;
  const through = path.length < 2 ? '' : ` (through ${path.slice(0, -1).map(quoteId).join(', ')})`;
  return `${subject}${through}${path.length === 0 ? ' is' : ', which is'} code or a tool that needs trust`;
}

const distrustText = (directory: string): string =>
  `${directory} is not trusted. ${trustAdvice(directory).replace(/\.$/, '')}`;

const quoteId = (id: string): string => `"${id}"`;
