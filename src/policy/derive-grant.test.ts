import fc from 'fast-check';
import { expect } from 'vitest';
import {
  narrowed,
  randomEffect,
  randomGrant,
  randomNarrowing,
  randomPath,
  randomUrl,
} from '../../spec/support/random-grants.js';
import { repetitions } from '../../spec/support/repetitions.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import { matchesDestination } from '../base/permits.js';
import type { Effect } from '../protocol/body.js';
import type { Grant } from '../protocol/grant.js';
import { containsPath, deriveGrant } from './derive-grant.js';
import { type EnforcedGrant, parseGrant } from './grant.js';
import { assertAdmitted, assertBodyAdmitted, reviewOf } from './grant-admission.js';

const parse = (grant: Grant): EnforcedGrant => parseGrant(grant, { isOperators: true });

function isAdmitted(grant: EnforcedGrant, effect: Effect): boolean {
  try {
    assertAdmitted(grant, effect);
    return true;
  } catch {
    return false;
  }
}

const RANK = { none: 0, ask: 1, blocked: 2 };

/** Expects that whatever `inner` permits is permitted by `outer`. */
function expectInside(inner: EnforcedGrant, outer: EnforcedGrant, effect: Effect, url: URL, path: string): void {
  if (isAdmitted(inner, effect)) expect(isAdmitted(outer, effect), `${effect.name} is admitted below only`).toBe(true);
  const rank = (grant: EnforcedGrant): number => RANK[reviewOf(grant, effect.name) ?? 'none'];
  expect(rank(inner), 'a review was dropped').toBeGreaterThanOrEqual(rank(outer));
  for (const [counter, limit] of Object.entries(outer.limits))
    expect(inner.limits[counter], `the limit of ${counter} grew`).toBeLessThanOrEqual(limit);
  const reaches = ({ destinations }: EnforcedGrant): boolean =>
    destinations?.some((entry) => matchesDestination(entry, url)) ?? true;
  if (reaches(inner)) expect(reaches(outer), `${url} is reached below only`).toBe(true);
  const opens = ({ roots }: EnforcedGrant): boolean => roots?.some((root) => containsPath(root, path)) ?? true;
  if (opens(inner)) expect(opens(outer), `${path} is opened below only`).toBe(true);
  for (const approver of inner.approvers ?? []) if (outer.approvers) expect(outer.approvers).toContain(approver);
  if (outer.approvers !== undefined) expect(inner.approvers, 'the list of approvers was dropped').toBeDefined();
  expect(inner.expiresAt ?? Infinity, 'it ends later').toBeLessThanOrEqual(outer.expiresAt ?? Infinity);
  for (const id of inner.unconfined) expect(outer.unconfined, 'another body is unconfined').toContain(id);
}

/** Returns the derived grant; undefined if it is refused, which must be as wider. */
function derive(outer: EnforcedGrant, inner: Grant): EnforcedGrant | undefined {
  try {
    return deriveGrant(outer, parse(inner));
  } catch (thrown) {
    expect((thrown as LoopError).code).toBe('GRANT_WIDENED');
    expect(thrown).toBeInstanceOf(LoopError);
    return undefined;
  }
}

const RUNS = repetitions(10_000, 200);

verifies(
  'grant.derive',
  `a chain of derived grants never permits more than any grant above (${RUNS} chains)`,
  () => {
    let derivations = 0;
    fc.assert(
      fc.property(
        randomGrant,
        fc.array(fc.oneof(randomGrant, randomNarrowing), { minLength: 1, maxLength: 5 }),
        fc.array(fc.tuple(randomEffect, randomUrl, randomPath), { minLength: 3, maxLength: 8 }),
        (document, links, probes) => {
          const chain = [parse(document)];
          let current = document;
          for (const link of links) {
            const next = Array.isArray(link) ? narrowed(current, link) : (link as Grant);
            const derived = derive(chain.at(-1) as EnforcedGrant, next);
            if (Array.isArray(link) && chain.length === 1)
              expect(derived, 'a narrower grant was refused').toBeDefined();
            if (derived === undefined) continue;
            derivations += 1;
            chain.push(derived);
            current = { ...current, ...next };
          }
          for (const [effect, url, path] of probes)
            chain.forEach((inner, at) => {
              for (const outer of chain.slice(0, at)) expectInside(inner, outer, effect, url, path);
            });
        },
      ),
      { numRuns: RUNS },
    );
    expect(derivations, 'nothing was derived').toBeGreaterThan(RUNS / 2);
  },
  300_000,
);

const outer: Grant = {
  id: 'team',
  allowedTools: ['files.*', 'act'],
  scopes: ['repo:*'],
  limits: { turns: 3, effects: { act: 2 } },
  roots: ['/data'],
  destinations: ['*.example.com'],
  unconfined: ['act'],
  approvers: ['ada'],
  expiresAt: '2030-01-01T00:00:00Z',
};

const widened: readonly [member: string, change: Partial<Grant>][] = [
  ['id', { id: 'other' }],
  ['allowedTools', { allowedTools: ['*'] }],
  ['allowedTools', { allowedTools: ['files.a.*'] }],
  ['allowedTools', { allowedTools: ['files'] }],
  ['scopes', { scopes: ['*'] }],
  ['scopes', { scopes: ['org:x'] }],
  ['limits', { limits: { turns: 4 } }],
  ['limits', { allowedTools: ['act'], limits: { effects: { act: 3 } } }],
  ['roots', { roots: ['/'] }],
  ['roots', { roots: ['/database'] }],
  ['destinations', { destinations: ['example.com'] }],
  ['destinations', { destinations: ['*.com'] }],
  ['destinations', { destinations: ['evil.com'] }],
  ['destinations', { destinations: ['a.example.com:443'] }],
  ['unconfined', { allowedTools: ['files.*'], unconfined: ['files.read'] }],
  ['approvers', { approvers: ['ada', 'eve'] }],
  ['expiresAt', { expiresAt: '2030-01-01T00:00:01Z' }],
];

verifies(
  'grant.derive',
  `each of ${widened.length} widened or forged grants is refused and the member is named`,
  () => {
    for (const [member, change] of widened) {
      const inner = { allowedTools: [], limits: {}, ...change };
      try {
        deriveGrant(parse(outer), parse(inner));
        expect.fail(`${member} was widened: ${JSON.stringify(change)}`);
      } catch (thrown) {
        expect((thrown as LoopError).code, String(thrown)).toBe('GRANT_WIDENED');
        const { problems } = (thrown as LoopError).data as { problems: { member: string }[] };
        expect(problems.map((problem) => problem.member)).toEqual([member]);
      }
    }
  },
);

verifies('grant.derive', 'what a derived grant omits is inherited, and schemas and reviews of both apply', () => {
  const derived = deriveGrant(parse({ ...outer, review: { act: 'blocked', 'files.*': 'ask' } }), {
    ...parse({ allowedTools: ['act', 'files.read'], limits: {}, review: { act: 'ask', '*': 'ask' } }),
  });
  const { id, scopes, limits, roots, destinations, approvers } = derived;
  expect({ id, scopes, roots, destinations, approvers }).toEqual({
    id: 'team',
    scopes: ['repo:*'],
    roots: ['/data'],
    destinations: ['*.example.com'],
    approvers: ['ada'],
  });
  expect({ ...limits }).toEqual({ turns: 3, 'effects:act': 2 });
  expect(derived.unconfined, 'an omitted list of unconfined tools names none').toEqual([]);
  expect(reviewOf(derived, 'act')).toBe('blocked');
  expect(reviewOf(derived, 'files.read')).toBe('ask');
});

verifies('grant.derive', 'a rule for a loop that the derived grant does not permit as a tool still applies', () => {
  const rules = { review: { steps: 'blocked' }, limits: { effects: { steps: 1 } } } as const;
  const derived = deriveGrant(parse({ allowedTools: ['*'], ...rules }), parse({ allowedTools: ['act'], limits: {} }));
  const call = { name: 'steps', input: {}, isChosen: false, isCode: false, isRoot: false };
  expect(() => assertBodyAdmitted(derived, call), 'no model chose it, so allowedTools is not asked').toThrow('blocked');
  expect({ ...derived.limits }).toEqual({ 'effects:steps': 1 });
});
