// Documents of hosted loops: one with every member, and random valid ones.

import fc from 'fast-check';
import type { Grant } from '../../src/protocol/grant.js';
import type { HostedLoopDocument } from '../../src/protocol/hosted-loop.js';
import { randomGrant } from './random-grants.js';

/** The smallest valid document. */
export const smallestHostedLoop: HostedLoopDocument = {
  id: 'smallest',
  loop: 'triage',
  grant: { allowedTools: [], limits: {} },
  stop: { maxTurns: 1 },
};

/** A valid document with every member. */
export const fullHostedLoop = {
  id: 'triage-inbox',
  loop: 'triage',
  input: { since: null },
  next: {
    since: '$.last.turnId',
    mail: '$.last.output',
    handoff: 'optional:$.handoff.input',
    mode: 'literal:fast',
  },
  grant: {
    id: 'triage-2026',
    allowedTools: ['mail.read', 'mail.label', 'notes.*'],
    scopes: ['mail.read'],
    arguments: { 'mail.label': { type: 'object', properties: { label: { type: 'string' } } } },
    review: { 'mail.label': 'ask' },
    limits: {
      turns: 40,
      modelRounds: 400,
      toolRounds: 400,
      inputTokens: 900_000,
      outputTokens: 90_000,
      costMicros: 5_000_000,
      effects: { 'mail.label': 100 },
      wallMs: 3_600_000,
      fanOut: 4,
      depth: 3,
    },
    roots: ['/srv/mail'],
    destinations: ['mail.example.com'],
    unconfined: ['mail.read'],
    approvers: ['ada'],
    expiresAt: '2030-01-31T12:00:00Z',
  },
  turn: {
    grant: { allowedTools: ['mail.read', 'mail.label'], limits: { effects: { 'mail.label': 5 } } },
    contextSkills: ['receipt:previous', 'skill:house-rules', 'rules/labels.md'],
    history: 'none',
  },
  stop: {
    maxTurns: 40,
    deadline: '2030-01-31T12:00:00Z',
    approval: 'denied',
    confidence: { path: '$.confidence', atLeast: 0.95 },
    terminal: { path: "$.items[0]['state']", equals: 'empty' },
    noProgress: 3,
  },
  schedule: { cron: '0 8 * * 1-5', zone: 'Europe/Berlin' },
  overlap: 'skip',
  catchUp: 'one',
  signals: {
    mail: {
      schema: { type: 'object', required: ['messageId'], properties: { messageId: { type: 'string' } } },
      verify: { method: 'hmac-sha256', secret: 'env:MAIL_SECRET', windowMs: 300_000 },
    },
    look: { schema: true },
  },
  retry: { maxFailures: 2, delayMs: 60_000 },
  handoffs: [
    {
      target: 'escalate',
      when: { path: '$.needsHuman', equals: true },
      input: { mail: '$.last.output.mail' },
      grant: { limits: { turns: 1 } },
      reason: 'A mail needs an answer by a person.',
    },
  ],
  acceptsHandoffsFrom: ['sort-spam'],
} as const satisfies HostedLoopDocument;

const isSafe = (name: string): boolean => name !== '__proto__';
const id = fc.stringMatching(/^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,59}$/).filter(isSafe);
const count = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const delay = fc.nat(1_000_000);
const json = fc
  .jsonValue({ maxDepth: 3 })
  .map((value) => JSON.parse(JSON.stringify(value).replaceAll('__proto__', 'proto')));
const outputPath = fc.constantFrom('$', '$.score', "$.items[0]['a b']", '$[-1].x', '$.a.b.c');
const projectionPath = fc.constantFrom('$.last.output', 'optional:$.signal.payload', 'literal:', '$', '$.used.turns');
const mapping = fc.oneof(projectionPath, fc.dictionary(id, projectionPath, { maxKeys: 3, noNullPrototype: true }));
const condition = fc.record({ path: outputPath, equals: json });
const time = fc
  .date({ min: new Date(0), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true })
  .map((date) => date.toISOString());

const stop = fc.record(
  {
    maxTurns: fc.integer({ min: 1, max: 1_000_000 }),
    deadline: time,
    approval: fc.constantFrom('denied', 'pending', 'ignore'),
    confidence: fc.record({
      path: outputPath,
      atLeast: fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n + 0),
    }),
    terminal: condition,
    noProgress: count,
  },
  { requiredKeys: ['maxTurns'] },
);

const schema = fc.constantFrom(true, { type: 'object' }, { properties: { n: { maximum: 3 } } });
const signals = fc
  .uniqueArray(fc.stringMatching(/^[A-Za-z0-9_.-]{1,64}$/).filter(isSafe), { maxLength: 4 })
  .chain((names) => fc.tuple(fc.constant(names), fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }), schema))
  .map(([names, verified, payload]) =>
    Object.fromEntries(
      names.map((name, index) => [
        name,
        {
          schema: payload,
          ...(verified[index] && { verify: { method: 'hmac-sha256', secret: `env:SECRET_${index}` } }),
        },
      ]),
    ),
  );

const timing = fc.oneof(
  fc.constant({}),
  fc.record({ schedule: fc.record({ delayMs: delay }) }),
  fc.record(
    {
      schedule: fc.oneof(
        fc.record({ everyMs: fc.integer({ min: 1000, max: 86_400_000 }) }),
        fc.record({
          cron: fc.constantFrom('* * * * *', '*/5 0 1 * *', '30 0 8 * * 1-5'),
          zone: fc.constantFrom('Europe/Berlin', 'UTC', 'America/New_York'),
        }),
      ),
      overlap: fc.constantFrom('skip', 'queue-one'),
      catchUp: fc.constantFrom('none', 'one', 'all'),
    },
    { requiredKeys: ['schedule'] },
  ),
);

/** Returns the random grant of one turn: it has no rules of its own. */
const turnGrant = fc.record(
  { limits: fc.record({ turns: fc.nat(5) }, { requiredKeys: [] }), approvers: fc.constant(['ada']), expiresAt: time },
  { requiredKeys: [] },
);

const handoff = fc.record(
  {
    target: id.map((text) => `${text.slice(0, 50)}.other`),
    when: condition,
    input: mapping,
    grant: turnGrant,
    reason: fc.constant('Because.'),
  },
  { requiredKeys: ['target', 'input', 'reason'] },
);

/** Random valid documents. */
export const randomHostedLoop: fc.Arbitrary<HostedLoopDocument> = fc
  .tuple(
    fc.record(
      {
        id: id.map((text) => text.slice(0, 50)),
        loop: fc.constantFrom('triage', 'shop/sync', 'a.b'),
        input: json,
        next: mapping,
        grant: randomGrant as fc.Arbitrary<Grant>,
        turn: fc.record(
          {
            grant: turnGrant,
            contextSkills: fc.subarray(['receipt:previous', 'skill:a', 'b.md', 'receipt:s.t1']),
            history: fc.constantFrom('none', 'session'),
          },
          { requiredKeys: [] },
        ),
        stop,
        signals,
        retry: fc.record({ maxFailures: count, delayMs: delay }, { requiredKeys: ['maxFailures'] }),
        handoffs: fc.array(handoff, { maxLength: 3 }),
        acceptsHandoffsFrom: fc.array(id, { maxLength: 3 }),
      },
      { requiredKeys: ['id', 'loop', 'grant', 'stop'] },
    ),
    timing,
  )
  .map(([document, times]) => ({ ...document, ...times }) as unknown as HostedLoopDocument);
