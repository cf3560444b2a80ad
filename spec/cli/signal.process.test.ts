// A signal to a turn that another process runs.

import { expect } from 'vitest';
import type { TurnStatus } from '../../src/protocol/index.js';
import { until } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { projectWithWaits, type SignalReport } from './signal-project.js';

verifies('cli.signal', 'a turn that another process runs receives the signal there', async () => {
  const project = projectWithWaits();
  const running = project.start(['run', 'served', '--session', 's', '--json']);
  const turnId = await until(
    async () =>
      (await project.json<{ runs?: TurnStatus[] }>(['runs'])).runs?.find(({ pid }) => pid !== undefined)?.turnId,
  );
  const sent = await project.json<SignalReport>(['signal', turnId, 'paid', '--payload', '{"amount": 9}']);
  expect(sent).toMatchObject({ turnId, isNew: true, turn: { status: 'ok', output: { amount: 9 } } });
  const { code, stdout } = await running.ended;
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ turnId, output: { amount: 9 } });
});
