/** Grants that are narrowed for a turn: what they inherit. */
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { TurnGrant } from '../protocol/hosted-loop.js';
import { narrowGrant } from './narrow-grant.js';

const OUTER = { allowedTools: ['act', 'mail.*'], roots: ['/tmp'], unconfined: ['act', 'mail.send'], limits: {} };

const unconfinedOf = (...grants: readonly TurnGrant[]) => narrowGrant(OUTER, grants).unconfined;

verifies('hosted.grant', 'a turn grant inherits the tools that nothing confines, as far as it allows them', () => {
  const inheriting: readonly TurnGrant[] = [
    {},
    { limits: { effects: 1 } },
    { roots: ['/tmp/a'] },
    { allowedTools: ['act', 'mail.send'] },
  ];
  for (const grant of inheriting) expect(unconfinedOf(grant), JSON.stringify(grant)).toEqual(['act', 'mail.send']);
  expect(unconfinedOf({ allowedTools: ['act'] })).toEqual(['act']);
  expect(unconfinedOf({ allowedTools: ['mail.read'] })).toEqual([]);
  expect(unconfinedOf({ unconfined: ['act'] })).toEqual(['act']);
  expect(unconfinedOf({ unconfined: [] })).toEqual([]);
});

verifies('hosted.grant', 'what one turn grant takes away, a later one does not inherit', () => {
  expect(unconfinedOf({ unconfined: ['act'] }, { limits: { turns: 1 } })).toEqual(['act']);
  expect(unconfinedOf({ allowedTools: ['mail.send'] }, {})).toEqual(['mail.send']);
  expect(() => unconfinedOf({ unconfined: [] }, { unconfined: ['act'] })).toThrow('unconfined');
  expect(() => narrowGrant({ ...OUTER, unconfined: [] }, [{ unconfined: ['act'] }])).toThrow('unconfined');
});
