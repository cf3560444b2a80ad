/** The owner's side of a request: finds the verb, checks its arguments, and asks the host. */
import type { ApprovalAnswer } from '../../protocol/approval.js';
import type { Json } from '../../protocol/json.js';
import { UsageError } from '../settings.js';
import type { Ask, Decision, Desk, DeskRequest, Hearing } from './desk.js';

type Args = ReadonlyMap<string, unknown>;
type Answer = (desk: Desk, args: Args, hearing: Hearing) => Promise<unknown>;

const answers = new Map<string, Answer>([
  ['run', (desk, args, hearing) => desk.run(requestOf(args), heard(args, hearing))],
  ['resume', (desk, args, hearing) => desk.resume(text(args, 'turnId'), heard(args, hearing))],
  ['cancel', (desk, args) => desk.cancel(text(args, 'turnId'), text(args, 'reason'))],
  ['decide', decide],
  ['answer', (desk, args) => desk.answer(answerOf(args))],
  ['say', say],
  ['turns', (desk, args) => desk.turns(optional(args, 'session'))],
  ['status', (desk, args) => desk.status(text(args, 'id'))],
  ['trace', (desk, args) => desk.trace(text(args, 'turnId'))],
  ['result', (desk, args) => desk.result(text(args, 'turnId'))],
  ['events', (desk, args) => desk.events(text(args, 'session'))],
  ['approvals', (desk, args) => desk.approvals(optional(args, 'session'))],
  ['replay', (desk, args) => desk.replay(text(args, 'turnId'), optional(args, 'against') === 'now' ? 'now' : 'then')],
  ['inFlight', (desk) => desk.inFlight()],
]);

/** Whether this is something that can be asked for. */
export function isVerb(verb: unknown): verb is string {
  return typeof verb === 'string' && answers.has(verb);
}

/** Answers for a desk what came over the wire. */
export function answering(desk: Desk): Ask {
  return async (verb, args, hearing = {}) => {
    const answer = answers.get(verb);
    if (answer === undefined) throw new UsageError(`There is no verb "${verb}".`);
    return answer(desk, new Map(Object.entries(args)), hearing);
  };
}

/** What the asker wants to hear of: the trace always, the rest if it said so. */
function heard(args: Args, { onEvent, onEnvelope, onDelta }: Hearing): Hearing {
  const traced = onEvent === undefined ? {} : { onEvent };
  if (!args.has('live') || !flag(args, 'live') || onEnvelope === undefined || onDelta === undefined) return traced;
  return { ...traced, onEnvelope, onDelta };
}

function requestOf(args: Args): DeskRequest {
  const approvers = texts(args, 'approvers');
  const request = {
    loop: text(args, 'loop'),
    ...given(args, ['version', 'sessionId', 'key', 'principal']),
    ...(approvers !== undefined && { approvers }),
  };
  return args.has('input') ? { ...request, input: args.get('input') } : request;
}

async function decide(desk: Desk, args: Args): Promise<void> {
  const decision = text(args, 'decision');
  if (!/^(?:retry|supply|fail)$/.test(decision)) throw new UsageError(`There is no decision "${decision}".`);
  const value = args.get('value') as Parameters<Desk['decide']>[3];
  await desk.decide(text(args, 'key'), decision as Decision, text(args, 'by'), value);
}

function answerOf(args: Args): ApprovalAnswer {
  const answer = {
    id: text(args, 'id'),
    approved: flag(args, 'approved'),
    by: text(args, 'by'),
    ...given(args, ['reason', 'sessionId', 'callId', 'tool', 'argumentsDigest']),
  };
  return args.has('standing') ? { ...answer, standing: args.get('standing') as Json } : answer;
}

async function say(desk: Desk, args: Args): Promise<void> {
  const mode = optional(args, 'mode');
  if (mode !== undefined && mode !== 'steer' && mode !== 'queue')
    throw new UsageError(`A message is for steer or queue, not "${mode}".`);
  const message = { sessionId: text(args, 'sessionId'), text: text(args, 'text'), ...given(args, ['id']) };
  await desk.say(mode === undefined ? message : { ...message, mode });
}

/** Those of the members that are there, each of them text. */
function given<K extends string>(args: Args, names: readonly K[]): { readonly [name in K]?: string } {
  const found = names.flatMap((name) => {
    const value = optional(args, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found) as { readonly [name in K]?: string };
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

function texts(args: Args, name: string): readonly string[] | undefined {
  const value = args.get(name);
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw new UsageError(`"${name}" must be a list of texts.`);
}

function flag(args: Args, name: string): boolean {
  const value = args.get(name);
  if (typeof value === 'boolean') return value;
  throw new UsageError(`"${name}" must be true or false.`);
}
