/** The owner's side of a request: finds the verb, checks its arguments, and asks the host. */
import type { TraceEvent } from '../../protocol/trace.js';
import { UsageError } from '../settings.js';
import type { Ask, Decision, Desk, DeskRequest } from './desk.js';

type Args = ReadonlyMap<string, unknown>;
type Say = ((event: TraceEvent) => void) | undefined;
type Answer = (desk: Desk, args: Args, say: Say) => Promise<unknown>;

const hearing = (say: Say): { onEvent?: (event: TraceEvent) => void } => (say === undefined ? {} : { onEvent: say });

const answers = new Map<string, Answer>([
  ['run', (desk, args, say) => desk.run(requestOf(args), hearing(say))],
  ['resume', (desk, args, say) => desk.resume(text(args, 'turnId'), hearing(say))],
  ['cancel', (desk, args) => desk.cancel(text(args, 'turnId'), text(args, 'reason'))],
  ['decide', decide],
  ['turns', (desk, args) => desk.turns(optional(args, 'session'))],
  ['status', (desk, args) => desk.status(text(args, 'id'))],
  ['trace', (desk, args) => desk.trace(text(args, 'turnId'))],
  ['result', (desk, args) => desk.result(text(args, 'turnId'))],
  ['replay', (desk, args) => desk.replay(text(args, 'turnId'), optional(args, 'against') === 'now' ? 'now' : 'then')],
  ['inFlight', (desk) => desk.inFlight()],
]);

/** Whether this is something that can be asked for. */
export function isVerb(verb: unknown): verb is string {
  return typeof verb === 'string' && answers.has(verb);
}

/** Answers for a desk what came over the wire. */
export function answering(desk: Desk): Ask {
  return async (verb, args, say) => {
    const answer = answers.get(verb);
    if (answer === undefined) throw new UsageError(`There is no verb "${verb}".`);
    return answer(desk, new Map(Object.entries(args)), say);
  };
}

function requestOf(args: Args): DeskRequest {
  const members = ['version', 'sessionId', 'key'] as const;
  const named = members.flatMap((name) => {
    const value = optional(args, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const request = { loop: text(args, 'loop'), ...Object.fromEntries(named) };
  return args.has('input') ? { ...request, input: args.get('input') } : request;
}

async function decide(desk: Desk, args: Args): Promise<void> {
  const decision = text(args, 'decision');
  if (!/^(?:retry|supply|fail)$/.test(decision)) throw new UsageError(`There is no decision "${decision}".`);
  const value = args.get('value') as Parameters<Desk['decide']>[3];
  await desk.decide(text(args, 'key'), decision as Decision, text(args, 'by'), value);
}

function text(args: Args, name: string): string {
  const value = optional(args, name);
  if (value === undefined) throw new UsageError(`"${name}" is missing.`);
  return value;
}

function optional(args: Args, name: string): string | undefined {
  const value = args.get(name);
  if (value === undefined || typeof value === 'string') return value;
  throw new UsageError(`"${name}" must be text.`);
}
