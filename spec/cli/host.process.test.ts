// Hosted loops on a terminal.

import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { projectWithHostedLoops } from './hosted-project.js';
import { hasScript, Pty } from './pty.js';

verifies('cli.output', 'the turns of a hosted loop fit on a terminal', async (context) => {
  context.skip(!hasScript, 'needs script');
  const project = projectWithHostedLoops();
  await project.run(['host', 'start', 'quick']);
  await project.run(['worker', '--once']);
  const screen = new Pty(project, ['host', 'status', 'quick', '--turns']);
  expect(await screen.ended).toBe(0);
  const [head = '', first = '', second = ''] = screen.text.split('\n');
  expect(head.trim().split(/ +/)).toEqual(['TURN', 'STATUS', 'ENDED', 'RECEIPT', 'CAUSE', 'NEXT']);
  expect(first).toMatch(/^quick#1 +ok +just now +sha256:[0-9a-f]{12} +start$/);
  expect(second).toMatch(/^quick#2 +ok +just now +sha256:[0-9a-f]{12} +last turn +stopped: max_turns$/);
  for (const line of [head, first, second]) expect(line.length).toBeLessThanOrEqual(80);
});
