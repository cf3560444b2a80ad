/** The authority of hosted loops: one budget for all turns, limits of each turn, and turns that ask for more. */
import { expect } from 'vitest';
import { sequence } from '../../../spec/support/host-fixture.js';
import { counter, type HostedFixture, hostedFixture } from '../../../spec/support/hosted-fixture.js';
import { expectGoesOn, expectStopped } from '../../../spec/support/hosted-stops.js';
import { verifies } from '../../../spec/verifies.js';
import type { GrantLimits } from '../../protocol/grant.js';
import type { HostedLoopDocument, TurnGrant } from '../../protocol/hosted-loop.js';
import { receiptsIn } from '../../views/receipt/sealed-receipts.js';

const HOUR_MS = 3_600_000;
const definitions = [sequence('thrice', 'count', 'count', 'count')];

/** Runs turns of three calls each until nothing is due. */
async function worked(
  limits: GrantLimits,
  grant: TurnGrant | undefined,
  more: Partial<HostedLoopDocument> = {},
): Promise<HostedFixture> {
  const fixture = hostedFixture({ definitions });
  const narrowed = grant === undefined ? {} : { turn: { grant } };
  const authority = { grant: { allowedTools: ['count', 'thrice'], limits }, ...narrowed };
  await fixture.start(counter({ loop: 'thrice', stop: { maxTurns: 5 }, ...authority, ...more }));
  await fixture.work();
  return fixture;
}

const statuses = async ({ host }: HostedFixture) => (await host.hosted.turns('counter')).map(({ status }) => status);

verifies('hosted.grant', 'all turns share the budget of the loop, and reaching it stops the loop', async () => {
  const fixture = await worked({ effects: 6 }, undefined);
  expect(fixture.inputs).toHaveLength(6);
  expect(await statuses(fixture)).toEqual(['ok', 'ok', 'cancelled']);
  await expectStopped(fixture, 'budget');
});

verifies('hosted.grant', 'a budget that is used up in the middle of a turn stops it there', async () => {
  const fixture = await worked({ effects: 4 }, undefined);
  expect(fixture.inputs).toHaveLength(4);
  expect(await statuses(fixture)).toEqual(['ok', 'cancelled']);
  await expectStopped(fixture, 'budget');
});

verifies(
  'hosted.grant',
  'a turn at the end of the budget ends as one thing, and nobody is told to continue it',
  async () => {
    for (const limits of [{ effects: 1 }, { turns: 0 }]) {
      const fixture = hostedFixture({ definitions });
      await fixture.start(counter({ loop: 'thrice', grant: { allowedTools: ['count', 'thrice'], limits } }));
      const [result] = await fixture.work();
      const [turn] = await fixture.host.hosted.turns('counter');
      if (limits.effects !== undefined) expect(result?.status, 'two words for one end').toBe(turn?.status);
      const texts = JSON.stringify([result, turn, await fixture.host.hosted.status('counter')]);
      expect(texts, 'a loop that has stopped is said to continue').not.toContain('another grant');
    }
  },
);

verifies('hosted.grant', 'a budget that all turns fit in stops nothing', async () => {
  const fixture = await worked({ effects: 15 }, undefined);
  expect(fixture.inputs).toHaveLength(15);
  await expectStopped(fixture, 'max_turns');
});

verifies('hosted.grant', 'the turns of a grant are counted, and without one left no turn starts', async () => {
  const fixture = await worked({ turns: 1 }, undefined);
  expect(fixture.inputs).toHaveLength(3);
  const { turns } = await fixture.host.hosted.status('counter');
  expect(turns, 'the refused turn is counted as requested').toBe(2);
  expect(await statuses(fixture)).toEqual(['ok', 'cancelled']);
  await expectStopped(fixture, 'budget');
});

verifies('hosted.grant', 'each turn has the limits of turn.grant for itself', async () => {
  const fixture = await worked({}, { limits: { effects: 3 } });
  expect(fixture.inputs).toHaveLength(15);
  await expectStopped(fixture, 'max_turns');
});

verifies('hosted.grant', 'a turn that reaches its own limits stops the loop', async () => {
  const fixture = await worked({}, { limits: { effects: 2 } });
  expect(fixture.inputs).toHaveLength(2);
  await expectStopped(fixture, 'budget');
});

verifies('hosted.grant', 'turns with limits of their own share the budget of the loop', async () => {
  const fixture = await worked({ effects: 8 }, { limits: { effects: 3 } });
  expect(fixture.inputs).toHaveLength(8);
  await expectStopped(fixture, 'budget');
});

verifies('hosted.grant', 'limits hold after a restart in the middle of a turn', async () => {
  const schedule = { everyMs: HOUR_MS };
  const fixture = await worked({ effects: 4 }, { limits: { effects: 3 } }, { schedule });
  await expectGoesOn(fixture, 1);
  await fixture.clock.advance(HOUR_MS);
  await fixture.restart().work();
  expect(fixture.inputs).toHaveLength(4);
  await expectStopped(fixture, 'budget');
});

verifies('hosted.grant', 'the projection says what the turns have used', async () => {
  const fixture = hostedFixture();
  await fixture.start(counter({ next: { used: '$.used.effects' }, stop: { maxTurns: 3 } }));
  await fixture.work();
  expect(fixture.inputs).toEqual([{ from: 0 }, { used: 1 }, { used: 2 }]);
});

const wider: { readonly [what: string]: TurnGrant } = {
  'more tools': { allowedTools: ['count', 'thrice', 'pay'] },
  'all tools': { allowedTools: ['*'] },
  'more effects': { limits: { effects: 21 } },
  'more scopes': { scopes: ['mail.send'] },
  'more time': { expiresAt: '2099-01-01T00:00:00.000Z' },
  'more directories': { roots: ['/'] },
};

for (const [what, grant] of Object.entries(wider))
  verifies('hosted.grant', `a turn that asks for ${what} than its loop may have is refused and sealed`, async () => {
    const fixture = hostedFixture({ definitions });
    const outer = { scopes: ['mail.read'], roots: ['/tmp'], review: { thrice: 'blocked' as const } };
    const expiresAt = '2027-01-01T00:00:00.000Z';
    await fixture.start(
      counter({
        grant: { allowedTools: ['count', 'thrice'], ...outer, expiresAt, limits: { effects: 20 } },
        turn: { grant },
      }),
    );
    const results = await fixture.work();
    expect(fixture.inputs).toEqual([]);
    const { host } = fixture;
    const [turn] = await host.hosted.turns('counter');
    expect(turn?.next).toMatchObject({ stopped: 'refused', message: expect.stringContaining('GRANT_WIDENED') });
    const [refusal] = receiptsIn(await host.archive.storedEntriesOf('hosted:counter:1'));
    const statement = JSON.parse(Buffer.from(refusal?.envelope.payload ?? '', 'base64').toString());
    expect(statement.predicate).toMatchObject({ state: 'refused' });
    expect(await host.receipts?.verify(undefined)).toMatchObject({ valid: true });
    expect(results).toMatchObject([{ status: 'error', error: { code: 'GRANT_WIDENED' } }]);
    await expectStopped(fixture, 'refused');
  });

verifies('hosted.grant', 'a turn that asks for less gets less', async () => {
  const fixture = hostedFixture({ definitions });
  const document = counter({ loop: 'thrice', grant: { allowedTools: ['count', 'thrice'], limits: {} } });
  await fixture.start({ ...document, turn: { grant: { allowedTools: ['thrice'] } } });
  await fixture.work();
  expect(fixture.inputs).toEqual([]);
  await expectStopped(fixture, 'turn_failed');
});

verifies('hosted.grant', 'a turn whose tools are review-blocked by turn.grant cannot run them', async () => {
  const fixture = hostedFixture();
  await fixture.start(counter({ turn: { grant: { review: { count: 'blocked' } } } }));
  await fixture.work();
  expect(fixture.inputs).toEqual([]);
  await expectStopped(fixture, 'turn_failed');
});
