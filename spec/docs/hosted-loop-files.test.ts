// The reference of hosted loop files: its example is valid, and its tables have every member.

import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { parseHostedLoopText } from '../../src/adapters/files/hosted-files.js';
import { parseHostedLoop } from '../../src/host/hosted/hosted-document.js';
import type { HostedProjection } from '../../src/protocol/hosted-loop.js';
import { fullHostedLoop } from '../support/random-hosted-documents.js';
import { verifies } from '../verifies.js';

const page = readFileSync('docs/hosted-loop-files.md', 'utf8');

verifies('hosted.document', 'the example of the reference is valid', () => {
  const [, example = ''] = /```toml\n(.*?)```/s.exec(page) ?? [];
  const { document, badFiles } = parseHostedLoopText('triage.toml', example, parseHostedLoop);
  expect(badFiles).toEqual([]);
  expect(document).toMatchObject({ id: 'triage-inbox', stop: { maxTurns: 40, deadline: '2030-01-31T12:00:00.000Z' } });
  const unbounded = parseHostedLoopText('triage.toml', example.replace(/^maxTurns.*$/m, ''), parseHostedLoop);
  expect(unbounded.badFiles).toMatchObject([{ path: '/stop/maxTurns' }]);
});

verifies('hosted.document', 'the tables of the reference have every member', () => {
  const first = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name = '']) => name);
  const { turn, stop, signals, retry, ...others } = fullHostedLoop;
  const nested = [
    ...Object.keys(turn).map((name) => `turn.${name}`),
    ...Object.keys(signals.mail).map((name) => `signals.NAME.${name}`),
    ...Object.keys(retry).map((name) => `retry.${name}`),
  ];
  for (const name of [...Object.keys(others), 'stop', ...Object.keys(stop), ...nested]) expect(first).toContain(name);
});

verifies('hosted.projection', 'the table of paths has every member of the projection', () => {
  const members: Record<keyof HostedProjection, true> = {
    ...{ loop: true, turn: true, head: true, input: true, last: true, signal: true, handoff: true, used: true },
  };
  const [, table = ''] = /^\| Path \|.*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const paths = [...table.matchAll(/`\$\.(\w+)`/g)].map(([, name = '']) => name);
  expect(paths).toEqual(Object.keys(members));
  for (const [, name = ''] of page.matchAll(/\$\.(\w+)\.\w+/g)) expect(paths).toContain(name);
});
