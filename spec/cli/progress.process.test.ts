// The progress of a turn on a terminal, and its absence everywhere else.

import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { hasScript, Pty } from './pty.js';

verifies('cli.progress', 'a terminal shows the time and the current call after a second', async (context) => {
  context.skip(!hasScript, 'needs script');
  const pty = new Pty(new Project(), ['run', 'pair', '--input', '{"name": "Ada", "ms": 2500}']);
  await pty.waitFor('2 s  wait');
  await pty.waitFor('ok after');
  const lastLine = pty.raw.split('ok after')[0]?.split('\r').at(-1) ?? '';
  expect(lastLine.replace('\u001b[2K', '')).not.toContain('wait');
});

verifies('cli.progress', 'a quick turn, a pipe and --json show nothing', async (context) => {
  context.skip(!hasScript, 'needs script');
  const project = new Project();
  const [quick, json, piped] = [
    new Pty(project, ['run', 'echo']),
    new Pty(project, ['run', 'wait', '--input', '{"ms": 1500}', '--json']),
    project.runProcess(['run', 'wait', '--input', '{"ms": 1500}']),
  ];
  for (const shown of [quick, json]) {
    await shown.waitFor('ok after');
    expect(shown.raw).not.toContain('\u001b[2K');
  }
  expect((await piped).stderr).toMatch(/^ok after/);
});
