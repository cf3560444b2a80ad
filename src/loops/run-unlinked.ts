/** The body of loops in code that are linked like documents: agents and plans. */
import type { Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { DefinedLoop } from './defined-loop.js';
import { servicesOf } from './services.js';

/**
 * The body of an agent or plan that code calls with `scope.call`: links it in the registry of the host and runs it. A
 * host that runs it as a turn, or as a step or tool of another loop, links it beforehand.
 */
export function runUnlinked(this: DefinedLoop, input: unknown, scope: Scope): unknown {
  return servicesOf(scope)
    .link(this)
    .body(input as Json, scope);
}
