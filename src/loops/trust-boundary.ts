/**
 * What a file of a directory that is not trusted may run: only loops that run without trust. Code, and tools that are
 * refused in such a directory, are out of its reach, through other loops too: its inputs, its grant and its answers must
 * not decide what they do.
 */
import { trustAdvice } from '../base/permits.js';
import { type Callee, calleesOf, type RegisteredLoop, type Registry } from './registry.js';

/**
 * Returns the reason why a file in a directory that is not trusted must not call these loops, without a full stop;
 * undefined if it may.
 */
export function trustProblem(registry: Registry, callees: readonly Callee[], directory: string): string | undefined {
  const path = pathToTrusted(registry, callees);
  if (path === undefined) return undefined;
  const through = path.length === 1 ? '' : ` (through ${path.slice(0, -1).map(quoteId).join(', ')})`;
  const subject = `it runs ${quoteId(path.at(-1) ?? '')}${through}`;
  const advice = trustAdvice(directory).replace(/\.$/, '');
  return `${subject}, which is code or a tool that needs trust, and ${directory} is not trusted. ${advice}`;
}

const quoteId = (id: string): string => `"${id}"`;

/** Returns the ids from one of the loops to the nearest one that needs trust, both included; undefined if there is none. */
function pathToTrusted(registry: Registry, callees: readonly Callee[]): readonly string[] | undefined {
  const seen = new Set<RegisteredLoop>();
  const queue = callees.map((callee) => ({ callee, path: [] as readonly string[] }));
  for (const { callee, path } of queue) {
    const registered = registry.find(callee.loopId, callee.loopVersion);
    if (registered === undefined || seen.has(registered)) continue;
    seen.add(registered);
    const reached = [...path, callee.loopId];
    if (registry.needsTrust(registered)) return reached;
    queue.push(...calleesOf(registered.definition.composite).map((next) => ({ callee: next, path: reached })));
  }
  return undefined;
}
